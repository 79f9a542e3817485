"""Chosen cells with their columns in few coordinates: what the solver sees of an operator."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.solver.compress import CUT, range_of
from sfumato.sensing.recovery.solver.operator_cache import cached
from sfumato.sensing.recovery.solver.price import HeatOnLine, heat_on_line, most_promising

FEW = 384
"""Up to so many cells the first block has them all."""


@dataclass(frozen=True, slots=True)
class Block:
    """Cells and their columns: directions by cells, in coordinates of `basis` (None: the readings)."""

    cells: IntArray
    rows: FloatArray
    basis: FloatArray | None

    def split(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coordinates of readings, and what is left of them outside the basis."""
        if self.basis is None:
            return y.copy(), np.zeros_like(y)  # a copy: compiled code tells locked arrays apart
        b = self.basis.T @ y
        rest = y - self.basis @ b
        again = self.basis.T @ rest
        return b + again, rest - self.basis @ again

    def out(self, inner: FloatArray, rest: FloatArray) -> FloatArray:
        """The vector of the sensors with these coordinates and this rest."""
        return rest + (inner if self.basis is None else self.basis @ inner)


def first_block(operator: Operator, y: FloatArray) -> Block:
    """Cells to begin with: all of a few, a comb on a line, elsewhere those that fit the readings best."""
    n = operator.space.size
    if n > FEW and heat_on_line(operator) is None:
        fit = operator.adjoint(y)
        return wider(
            operator, None, most_promising(operator, fit, -math.inf, np.zeros(0, dtype=np.int64))
        )
    return cached(operator, "first block", lambda: wider(operator, None, _first_cells(operator)))


def wider(operator: Operator, block: Block | None, new: IntArray) -> Block:
    """A block with more cells; where columns are longer than they are many, their own span is the basis."""
    found = range_of(operator)
    columns = operator.columns(new)
    if block is None:
        if found.basis is not None:
            return Block(new, np.ascontiguousarray(found.basis.T @ columns), found.basis)
        if new.size >= columns.shape[0]:
            return Block(new, np.ascontiguousarray(columns), None)
        basis, rows = np.linalg.qr(columns)
        return Block(new, np.ascontiguousarray(rows), basis)
    cells = np.concatenate([block.cells, new])
    if found.basis is not None:
        return Block(cells, _beside(block.rows, found.basis.T @ columns), found.basis)
    if block.basis is None:
        return Block(cells, _beside(block.rows, columns), None)
    if cells.size >= columns.shape[0]:  # now that cells fill all directions
        return Block(cells, _beside(block.basis @ block.rows, columns), None)
    inside = block.basis.T @ columns
    more = _outside(block.basis, columns, columns - block.basis @ inside)
    old, count = block.rows.shape
    rows = np.zeros((old + more.shape[1], cells.size))
    rows[:old, :count] = block.rows
    rows[:old, count:] = inside
    rows[old:, count:] = more.T @ columns
    return Block(cells, rows, np.concatenate([block.basis, more], axis=1))


def _outside(basis: FloatArray, columns: FloatArray, left: FloatArray) -> FloatArray:
    """Orthonormal directions that columns need beyond a basis; none for what is rounding."""
    more, corner, _ = linalg.qr(left, mode="economic", pivoting=True)
    size = float(np.sqrt((columns * columns).sum(axis=0).max()))
    more = more[:, np.abs(corner.diagonal()) > CUT * size]
    # What is left of a nearly dependent column is small, so its direction is not orthogonal yet.
    return np.asarray(np.linalg.qr(more - basis @ (basis.T @ more))[0], dtype=np.float64)


def factored(operator: Operator, block: Block, places: IntArray) -> tuple[FloatArray, FloatArray]:
    """Columns of some cells as basis and triangle, from the block's span where new ones are dear."""
    if operator.costly_columns and block.basis is not None and range_of(operator).basis is None:
        small, triangle = np.linalg.qr(block.rows[:, places])
        return block.basis @ small, triangle
    basis, triangle = np.linalg.qr(operator.columns(block.cells[places]))
    return basis, triangle


def _first_cells(operator: Operator) -> IntArray:
    n, line = operator.space.size, heat_on_line(operator)
    return np.arange(n) if n <= FEW or line is None else _comb(line)


def _comb(line: HeatOnLine) -> IntArray:
    places = line.places
    count = int(min(max(64, 4 * (places[-1] - places[0]) / line.width), FEW))
    cells = np.searchsorted(places, np.linspace(places[0], places[-1], count))
    return np.unique(np.minimum(cells, places.size - 1))


def _beside(rows: FloatArray, more: FloatArray) -> FloatArray:
    return np.ascontiguousarray(np.concatenate([rows, more], axis=1))
