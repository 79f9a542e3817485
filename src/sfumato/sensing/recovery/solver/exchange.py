"""The optimum over all cells from optima over a few: solve, price every cell, add the best, solve again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.solver.block import Block, factored, first_block, wider
from sfumato.sensing.recovery.solver.compress import range_of
from sfumato.sensing.recovery.solver.crossover_kernel import (
    FOUND,
    FULL,
    INFEASIBLE,
    LOST,
    crossover,
)
from sfumato.sensing.recovery.solver.interior_kernel import interior
from sfumato.sensing.recovery.solver.norms import length, power_of_two
from sfumato.sensing.recovery.solver.price import SLACK, worth_adding

WORK = 1 << 32
"""Products in one step of the interior point up to which a block may have all cells."""

ROUNDS = 60
"""Blocks that are tried at most."""
NONE: IntArray = np.zeros(0, dtype=np.int64)
_EMPTY: FloatArray = np.zeros((0, 0))


@dataclass(frozen=True, slots=True)
class Problem:
    """Least total in a box that explains readings within a radius."""

    operator: Operator
    readings: FloatArray
    radius: float
    max_mass: float


@dataclass(frozen=True, slots=True)
class Vertex:
    """What an exchange ends with: `found`, with free cells, full ones and a dual vector; a `ray`; or `lost`.

    `basis` (sensors by cells) times `triangle` are the columns of the free cells.
    """

    kind: Literal["found", "ray", "lost"]
    free: IntArray
    full: IntArray
    basis: FloatArray
    triangle: FloatArray
    dual: FloatArray


@dataclass(frozen=True, slots=True)
class _Units:
    """Powers of two near the largest reading and near a total that explains it: what is solved is near 1."""

    reading: float
    source: float


@dataclass(frozen=True, slots=True)
class _Solved:
    """An optimum over a block; f, mu and the residual, which is one of the sensors, in units."""

    status: int
    f: FloatArray
    residual: FloatArray
    mu: float
    free: IntArray
    full: IntArray


def exchange(problem: Problem, *, everywhere: bool = False) -> Vertex:
    """A vertex whose dual vector prices no cell above 1, or a ray that no cell can turn.

    With `everywhere` the first block has all cells.
    """
    operator = problem.operator
    n = operator.space.size
    block = (
        wider(operator, None, np.arange(n))
        if everywhere
        else first_block(operator, problem.readings)
    )
    units = _units(problem, block)
    guess, mu = np.zeros(0), 0.0
    for _ in range(ROUNDS):
        found = _solve(problem, block, units, guess, mu)
        if found.status == LOST:
            break
        optimal = found.status == FOUND
        if optimal:
            dual = found.residual / found.mu * (units.source / units.reading)
        else:
            dual = found.residual / float(length(found.residual))
        if block.cells.size < n:
            if 4 * found.full.size > block.cells.size + 64 and fits(operator):
                # Where the box holds whole stretches of cells, all of them are needed.
                block, guess = wider(operator, None, np.arange(n)), np.zeros(0)
                continue
            new = worth_adding(operator, dual, 1.0 if optimal else 0.0, block.cells)
            if new.size:
                block = wider(operator, block, new)
                guess, mu = np.concatenate([found.f, np.zeros(new.size)]), found.mu
                if not optimal:
                    guess = np.zeros(0)
                continue
        basis, triangle = factored(operator, block, found.free) if optimal else (_EMPTY, _EMPTY)
        free, full = block.cells[found.free], block.cells[found.full]
        return Vertex("found" if optimal else "ray", free, full, basis, triangle, dual)
    return Vertex("lost", NONE, NONE, _EMPTY, _EMPTY, np.zeros(0))


def fits(operator: Operator) -> bool:
    """Whether all cells together are still a block of a bearable size."""
    return operator.space.size * range_of(operator).rank ** 2 <= WORK


def _units(problem: Problem, block: Block) -> _Units:
    """A source is max_mass, or |y|^2 / max M'y if that is less: no total explains all with less."""
    reading = power_of_two(float(np.abs(problem.readings).max()))
    b, rest = block.split(problem.readings / reading)
    top = float((b @ block.rows).max())
    least = reading * (float(b @ b + rest @ rest) / top) if top > 0 else math.inf
    return _Units(reading, power_of_two(min(least, problem.max_mass)))


def _solve(problem: Problem, block: Block, units: _Units, guess: FloatArray, mu: float) -> _Solved:
    """The optimum over a block: from the last one if there is a guess, else from an interior point."""
    rows = np.multiply(block.rows, units.source / units.reading)
    b, rest = block.split(problem.readings / units.reading)
    whole, size = problem.radius / units.reading, math.sqrt(rest @ rest)
    if size >= whole:  # what nothing is outside of proves nothing
        status = INFEASIBLE if rest.any() else LOST
        return _Solved(status, np.zeros(block.cells.size), rest, 0.0, NONE, NONE)
    radius = near = math.sqrt((whole - size) * (whole + size))
    max_mass = problem.max_mass / units.source
    status = LOST
    if guess.size:
        status, f, inner, mu, free, state, _ = crossover(
            rows, b, radius, max_mass, guess, mu, SLACK, 1000
        )
    if status == LOST:
        guess, z, near = interior(rows, b, radius, max_mass, 1e-7, 80)
        mu = radius / max(math.sqrt(z @ z), 1e-300)
        status, f, inner, mu, free, state, _ = crossover(
            rows, b, radius, max_mass, guess, mu, SLACK, 1000
        )
    if status == LOST:
        # The radius leaves no room, or hardly any: walk from a wider one that surely does.
        room = 1.01 * max(near, radius)
        guess, z, _ = interior(rows, b, room, max_mass, 1e-10, 80)
        mu = room / max(math.sqrt(z @ z), 1e-300)
        status, f, inner, mu, free, state, _ = crossover(
            rows, b, radius, max_mass, guess, mu, SLACK, 20_000
        )
    return _Solved(status, f, block.out(inner, rest), mu, free, np.flatnonzero(state == FULL))
