"""The few directions in which sources can move readings: an orthonormal basis of an operator's range.

Heat forgets: 50 sensors on a line hear some 15 numbers at T = 0.05. Readings outside those
directions are noise; they only use up radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.model.operators.protocol import Operator, column_chunks
from sfumato.sensing.recovery.solver.operator_cache import cached
from sfumato.sensing.recovery.solver.price import HeatOnLine, heat_on_line

CUT = 1e-15
"""Directions below this share of the strongest are rounding."""

SPANNED = 1e-13
"""A column that leaves a basis by less than this share of the largest column is in its span."""

LARGE = 1 << 22
"""Entries above which a matrix is not formed to find its range."""


@dataclass(frozen=True, slots=True)
class Range:
    """An orthonormal basis (sensors by directions); None stands for all directions of the readings."""

    basis: FloatArray | None
    rank: int

    def into(self, columns: FloatArray) -> FloatArray:
        """Columns of the operator in coordinates, one row for each: cells by directions."""
        return np.ascontiguousarray(columns.T if self.basis is None else columns.T @ self.basis)


def range_of(operator: Operator) -> Range:
    """The range of an operator, found once: every recovery asks for it."""
    return cached(operator, "range", lambda: _find(operator))


def _find(operator: Operator) -> Range:
    m, n = operator.shape
    if (line := heat_on_line(operator)) is not None:
        return _basis(_line_sample(operator, line), m)
    if operator.factors is not None:
        return _basis(_grid_sample(*operator.factors), m)
    if operator.kernel_width is not None:
        return _points_range(operator)
    # Symmetric and positive definite, as exp(-rate L) with every node sensed: it has no kernel.
    if m * n > LARGE or m <= 2 or operator.symmetric:
        return Range(None, min(m, n))
    return _basis(operator.columns(np.arange(n)), m)


def _basis(sample: FloatArray, m: int) -> Range:
    """Pivoted QR, cut where its diagonal falls to rounding."""
    if (
        sample.shape[1] > 2 * sample.shape[0]
    ):  # pivots are dear: first as many columns as there are rows
        sample = np.asarray(np.linalg.qr(sample.T, mode="r")).T
    room = 2 * sample.shape[1] + 32 * (
        sample.shape[1] + 1
    )  # for blocks; without it, one column at a time
    factored, _, scales, _, _ = lapack.dgeqp3(sample, lwork=room)
    diagonal = np.abs(factored.diagonal())
    rank = int(np.count_nonzero(diagonal > CUT * diagonal[0])) if diagonal.size else 0
    if rank == m:
        return Range(None, m)
    rank = max(rank, 1)
    basis, _, _ = lapack.dorgqr(factored[:, :rank], scales[:rank])
    return Range(np.asfortranarray(basis), rank)


def _line_sample(operator: Operator, line: HeatOnLine) -> FloatArray:
    """Columns at the cells, or at so many Chebyshev points that they span the rest to rounding."""
    places = line.places
    count = 24 + 8 * (places[-1] - places[0]) / line.width
    if places.size <= count or places.size * len(operator.sensors) <= 1 << 13:
        return operator.columns(np.arange(places.size))
    middle, half = (places[-1] + places[0]) / 2, (places[-1] - places[0]) / 2
    points = middle + half * np.cos(np.pi * (np.arange(int(count)) + 0.5) / int(count))
    return line.columns_at(points)


def _points_range(operator: Operator) -> Range:
    """From every so many-th point where there are many, and from those that turn out not to be spanned."""
    m, n = operator.shape
    cells = np.arange(0, n, max(1, math.ceil(m * n / LARGE)))
    while True:
        found = _basis(operator.columns(cells), m)
        if found.basis is None or cells.size == n:
            return found
        outside = _outside(operator, found.basis)
        if not outside.size:
            return found
        cells = np.union1d(cells, outside)


def _outside(operator: Operator, basis: FloatArray) -> IntArray:
    """The cells, those furthest out, that read by more than SPANNED of the largest outside a basis."""
    m, n = operator.shape
    left, size = np.empty(n), 0.0
    for part in column_chunks(operator, np.arange(n)):
        columns = operator.columns(part)
        size = max(size, float(np.linalg.norm(columns, axis=0).max()))
        left[part] = np.linalg.norm(columns - basis @ (basis.T @ columns), axis=0)
    out = np.flatnonzero(left > SPANNED * size)
    return out if out.size <= 4 * m else np.sort(out[np.argpartition(-left[out], 4 * m)[: 4 * m]])


def _grid_sample(columns: FloatArray, rows: FloatArray) -> FloatArray:
    """A small matrix with the range, and the singular values, of an operator on a grid by its factors.

    With the factors E = U S V' and N of columns and rows, the operator is K (V_E x V_N)', where K
    has the products of entries of U_E S_E and U_N S_N; the second factor is orthonormal.
    """
    east, north = _scaled(columns), _scaled(rows)
    weights = np.linalg.norm(east, axis=0)[:, np.newaxis] * np.linalg.norm(north, axis=0)
    a, b = np.nonzero(weights > 1e-17 * weights.max())
    return np.asarray(east[:, a] * north[:, b])


def _scaled(factor: FloatArray) -> FloatArray:
    left, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    return np.asarray(left * sizes)
