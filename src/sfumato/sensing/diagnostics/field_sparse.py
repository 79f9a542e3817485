"""The few sources that explain readings best: a fit of positions and masses for each number of sources."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.diagnostics.misfit import box_fit, least_square
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.recovery.solver.compress import Range
from sfumato.spaces import Line

SWEEPS = 4
"""Rounds in which every source may move to the best cell, after which a fit is taken as it is."""
MAX_PAIRED = 400
"""Cells up to which two sources move at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Some cells, their masses, and the square of what they leave unexplained."""

    cells: IntArray
    masses: FloatArray
    square: float


def few_sources(
    rows: FloatArray,
    target: FloatArray,
    *,
    most: int,
    max_mass: float,
    earn: float = 0.0,
    starts: tuple[IntArray, ...] = (),
) -> list[Fit]:
    """For 0, 1, ..., most sources the best found fit of rows (what a unit in each cell reads) to readings.

    Greedy, then a source, or on up to 400 cells two at once, move to the cells that are best given
    the others, until none does [tropp04, sec. 3 is the greedy part]. `starts` are cells to begin
    from as well. It may stop at a fit that three sources moving at once would better. Where a
    source must `earn` its place, lowering the square by so much, it ends when no further ones
    could, by the square of the best of all sources in the box.
    """
    floor = _floor(rows, target, max_mass=max_mass) if earn else 0.0
    fits = [Fit(np.empty(0, dtype=np.int64), np.empty(0), float(target @ target))]
    for count in range(1, min(most, len(rows)) + 1):
        before = fits[-1]
        best = min(fit.square + earn * fit.cells.size for fit in fits)
        if earn and floor + earn * count >= best:
            break
        begins = [np.append(before.cells, _best(rows, target, before, max_mass=max_mass))]
        begins += [start for start in starts if start.size == count]
        tried = [
            _settle(rows, target, _fit(rows, target, one, max_mass=max_mass), 1, max_mass=max_mass)
            for one in begins
        ]
        found = min(tried, key=lambda fit: fit.square)
        if len(rows) <= MAX_PAIRED:
            found = _settle(rows, target, found, 2, max_mass=max_mass)
        fits.append(found if found.square < before.square else before)
    return fits


def _settle(
    rows: FloatArray, target: FloatArray, fit: Fit, at_once: int, *, max_mass: float
) -> Fit:
    """The fit after its sources moved, so many at once, until none does."""
    for _ in range(SWEEPS):
        start = fit.square
        for move in combinations(range(fit.cells.size), at_once):
            fit = _moved(rows, target, fit, move, max_mass=max_mass)
        if not fit.square < start * (1 - 1e-6):
            break
    return fit


def _moved(
    rows: FloatArray, target: FloatArray, fit: Fit, move: tuple[int, ...], *, max_mass: float
) -> Fit:
    """The fit after one or two of its sources went where they are best, or the same if nothing is gained."""
    kept = np.delete(fit.cells, move)
    others = _fit(rows, target, kept, max_mass=max_mass)
    best = (
        [_best(rows, target, others, max_mass=max_mass)]
        if len(move) == 1
        else _best_pair(rows, target, others, max_mass=max_mass)
    )
    if set(best) == set(fit.cells[list(move)].tolist()):
        return fit
    trial = _fit(rows, target, np.concatenate([kept, best]), max_mass=max_mass)
    return trial if trial.square < fit.square else fit


def _fit(rows: FloatArray, target: FloatArray, cells: IntArray, *, max_mass: float) -> Fit:
    columns = rows[cells]
    masses = box_fit(columns, target, max_mass=max_mass, start=np.full(cells.size, max_mass / 2))
    left = target - masses @ columns
    return Fit(cells, masses, float(left @ left))


def _best(rows: FloatArray, target: FloatArray, fit: Fit, *, max_mass: float) -> int:
    """The cell whose source would lower the square most, those within the box being refitted."""
    own, pull = _beyond(rows, target, fit, max_mass=max_mass)
    sizes = np.sum(own**2, axis=1)
    able = sizes > 1e-10 * np.sum(rows**2, axis=1)  # not the others' own cells
    mass = np.clip(pull / np.where(able, sizes, 1.0), 0.0, max_mass)
    gain = np.where(able, mass * (2 * pull - mass * sizes), -1.0)
    gain[fit.cells] = -1.0
    return int(np.argmax(gain))


def _best_pair(rows: FloatArray, target: FloatArray, fit: Fit, *, max_mass: float) -> list[int]:
    """The two cells whose sources would lower the square most, all pairs being tried."""
    own, pull = _beyond(rows, target, fit, max_mass=max_mass)
    products = own @ own.T
    sizes = np.maximum(products.diagonal(), 1e-300)
    area = np.outer(sizes, sizes) - products**2
    apart = area > 1e-9 * np.outer(sizes, sizes)
    # The first of each pair at its least square in the box, and the second at its own then: for
    # both orders one of the two is the best in the box.
    first = (pull[:, np.newaxis] * sizes - products * pull) / np.where(apart, area, 1.0)
    first = np.clip(first, 0.0, max_mass)
    second = np.clip((pull - products * first) / sizes, 0.0, max_mass)
    gain = 2 * (first * pull[:, np.newaxis] + second * pull)
    gain -= first**2 * sizes[:, np.newaxis] + 2 * first * second * products + second**2 * sizes
    gain[~apart] = -1.0
    gain[fit.cells] = gain[:, fit.cells] = -1.0
    one, other = divmod(int(np.argmax(gain)), len(rows))
    return [one, other]


def _beyond(
    rows: FloatArray, target: FloatArray, fit: Fit, *, max_mass: float
) -> tuple[FloatArray, FloatArray]:
    """What cells read that the fit's free sources could not make up for, and how much of it is wanted."""
    left = target - fit.masses @ rows[fit.cells]
    free = fit.cells[(fit.masses > 0) & (fit.masses < max_mass)]
    basis = np.linalg.qr(rows[free].T)[0] if free.size else np.empty((target.size, 0))
    own = rows - (rows @ basis) @ basis.T
    return own, own @ left


def _floor(rows: FloatArray, target: FloatArray, *, max_mass: float) -> float:
    """A square below which no sources in the box come."""
    found = linear(rows.T, Line(len(rows)))
    close = 1e-3 * float(target @ target) / max(1, target.size)
    return least_square(found, Range(None, target.size), target, max_mass=max_mass, close=close)
