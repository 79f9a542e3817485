"""What cannot be told apart: how far two sources must be from each other to be seen as two, at this noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.reading_unit import AS_READ, ReadingUnit
from sfumato.spaces import Grid, Line

MAX_ENTRIES = 1 << 25  # sensors times cells, where all cells are tried
SCAN, FINER, ROUNDS = (
    48,
    24,
    2,
)  # separations tried at first, then between two of them, so many times
ITERATIONS, SETTLED = 30, 1e-12  # of Gauss and Newton, and the gain below which they end
ANCHORS, PARTNERS, BANDS = (
    16,
    4,
    32,
)  # cells that pairs start from, pairs of each at a distance, distances


@dataclass(frozen=True, slots=True)
class Resolution:
    """How far apart two sources of this mass must be to be told from one, at this noise; inf if never.

    `separation` is the answer: on a line or grid for two sources around the middle, elsewhere the
    smallest distance at which a share `confidence` of pairs of cells can be told apart. `best` and
    `worst` are that of the best and the worst place, elsewhere the smallest distance at which some
    pairs can, and at which all can. `shares` are pairs (distance, share that can be told apart),
    where cells were looked at.
    """

    separation: float
    best: float
    worst: float
    shares: tuple[tuple[float, float], ...]
    sigma: float
    mass: float
    confidence: float

    @property
    def message(self) -> str:
        """The answer in a sentence."""
        return self.sentence(AS_READ)

    def sentence(self, unit: ReadingUnit) -> str:
        """The same, with the noise in the unit of a site."""
        two = f"two sources of mass {self.mass:g}"
        sure = f"with {100 * self.confidence:g} % certainty at noise {unit.text(self.sigma)}"
        if self.best == math.inf:
            return f"{two} cannot be told from a single one of any mass {sure} at any distance looked at"
        places = (
            f"the middle it takes {_far(self.separation)}, at the worst place {_far(self.worst)}"
        )
        if self.shares:
            share = f"{100 * self.confidence:g} % of pairs"
            places = f"{_far(self.separation)} {share} can be, at {_far(self.worst)} all"
        one = "a single one of any mass"
        closer = f"{two} closer than {_far(self.best)} cannot be told from {one} {sure}"
        return f"{closer}, at the places looked at; at {places}"


def resolution(
    operator: Operator, *, sigma: float, mass: float = 1.0, confidence: float = 0.95
) -> Resolution:
    """The smallest separation that two sources can have and still be told from one, by anybody.

    Two sources of this mass each, against the single source that comes nearest in what it reads:
    any place, any mass. (Against any measure there is nothing to tell, the pair is one.) They are
    told apart where

        min |M(two) - M(one)|_2 >= 2 z sigma,  z the quantile of the normal law at `confidence`:

    the likelihood ratio test between the two then errs either way with a chance of at most 1 -
    confidence, and no test does with less [shahram04]. A test that must hold against all single
    sources at once has no more power, so closer pairs cannot be told apart. Nor is it far from what
    can be had: on the papers' line at epsilon 4 the ratio test of the best two sources against the
    best one, all masses free, had a power of 0.93 at this separation where 0.95 is the most, and of
    0.998 at 1.2 times it (400 draws). [gilbert17, sec. 4.2] has the idea, and the order of a bound
    in T and m.

    For small separations d, min |M(two) - M(one)| is mass d**2 / 4 times the length of the second
    derivative of readings by place, less its part along the readings and their first derivative: so
    the separation grows as the root of sigma.

    Heat on a line or grid is looked at between cells too: two sources around the middle of it (the
    worse of both axes), and pairs that begin at 9 places of a line or of a grid, and go inwards
    along an axis. Elsewhere pairs of cells are, from up to 16 cells and 32 steps apart, and single
    sources are on cells. The smallest separation is meant: if sensors leave gaps, a larger one may
    be told apart no longer.

    Args:
        operator: Maps masses to readings.
        sigma: Standard deviation of the noise of one reading.
        mass: The mass of each of the two sources.
        confidence: How sure one must be, between 1/2 and 1.

    Returns:
        Separations in the unit of the space; inf where sources are never told apart.

    Raises:
        InvalidParameter: If a parameter is out of range.

    >>> from sfumato.sensing import heat_line
    >>> found = resolution(heat_line(sources=100, sensors=50, diffusion_time=0.05), sigma=0.06598)
    >>> round(found.separation, 3), round(found.best, 3), round(found.worst, 3)
    (0.161, 0.161, 0.228)
    """
    for name, value in (("sigma", sigma), ("mass", mass)):
        if not 0 < value < math.inf:
            raise InvalidParameter(
                f"{name} must be positive and finite, got {value}; nothing was computed"
            )
    if not 0.5 < confidence < 1:
        raise InvalidParameter(
            f"confidence must be above 1/2 and below 1, got {confidence}; nothing was computed"
        )
    # Readings are linear in the mass, so a larger mass is a smaller noise.
    least = 2 * float(ndtri(confidence)) * sigma / mass
    if operator.kernel_width is not None and isinstance(operator.space, Line | Grid):
        separation, best, worst = _between_cells(operator, least)
        return Resolution(separation, best, worst, (), sigma, mass, confidence)
    shares = _shares(operator, least)
    separation, best, worst = (
        min((far for far, share in shares if share >= wanted), default=math.inf)
        for wanted in (confidence, 1e-300, 1.0)
    )
    return Resolution(separation, best, worst, shares, sigma, mass, confidence)


def gap(operator: Operator, first: FloatArray, second: FloatArray) -> FloatArray:
    """How far the readings of two unit sources are from those of any single source: a number for each pair.

    `first` and `second` are rows of coordinates, not only of cells. The single source is looked for
    by Gauss and Newton's steps, its mass eliminated [golub73], from between the two; and from each
    of them where they are more than two widths apart, so that what they read has two peaks.
    """
    readings = _readings(operator, first) + _readings(operator, second)
    off = _nearest_single(operator, readings, (first + second) / 2)
    peaks = np.linalg.norm(second - first, axis=1) > math.sqrt(8 * _time(operator))
    for start in (first, second) if peaks.any() else ():
        off[peaks] = np.minimum(
            off[peaks], _nearest_single(operator, readings[peaks], start[peaks])
        )
    return off


def _time(operator: Operator) -> float:
    """The diffusion time of heat that is known between cells."""
    return operator.time or 0.0


def _readings(operator: Operator, places: FloatArray) -> FloatArray:
    """What a unit at each place reads: places by sensors."""
    time = _time(operator)
    squares = np.zeros((len(places), len(operator.sensors)))
    for axis in range(places.shape[1]):
        squares += (operator.sensors.positions[:, axis] - places[:, [axis]]) ** 2
    return np.asarray(np.exp(-squares / (4 * time)) / (4 * math.pi * time) ** (places.shape[1] / 2))


def _nearest_single(operator: Operator, readings: FloatArray, start: FloatArray) -> FloatArray:
    """The distance of each row of readings from those of a single source near a start, of any mass."""
    low, high = _ends(operator)
    places, damping = start.copy(), np.full(len(start), 1e-3)
    masses, unit, rest = _fit(operator, readings, places)
    off = np.linalg.norm(rest, axis=1)
    for _ in range(ITERATIONS):
        ahead = operator.sensors.positions[np.newaxis] - places[:, np.newaxis]
        slopes = unit[:, :, np.newaxis] * ahead / (2 * _time(operator))
        along = (
            np.einsum("ksd,ks->kd", slopes, unit)
            / np.maximum((unit**2).sum(axis=1), 1e-300)[:, np.newaxis]
        )
        slopes = masses[:, np.newaxis, np.newaxis] * (
            slopes - along[:, np.newaxis] * unit[:, :, np.newaxis]
        )
        normal = np.einsum("ksd,kse->kde", slopes, slopes)
        size = np.maximum(np.trace(normal, axis1=1, axis2=2), 1e-300)
        normal += (size * damping)[:, np.newaxis, np.newaxis] * np.eye(places.shape[1])
        step = np.linalg.solve(normal, np.einsum("ksd,ks->kd", slopes, rest)[:, :, np.newaxis])[
            :, :, 0
        ]
        tried = np.clip(places + step, low, high)
        found = _fit(operator, readings, tried)
        closer = np.linalg.norm(found[2], axis=1)
        better = closer < off
        ends = bool((closer >= off * (1 - SETTLED)).all())
        places[better], off[better] = tried[better], closer[better]
        masses, unit, rest = (
            np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
            for new, old in zip(found, (masses, unit, rest), strict=True)
        )
        if ends:
            break
        damping = np.where(better, damping / 10, damping * 10)
    return np.asarray(off)


def _fit(
    operator: Operator, readings: FloatArray, places: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The best mass at each place, what a unit there reads, and what is left of the readings."""
    unit = _readings(operator, places)
    masses = (unit * readings).sum(axis=1) / np.maximum((unit**2).sum(axis=1), 1e-300)
    return masses, unit, readings - masses[:, np.newaxis] * unit


def _ends(operator: Operator) -> tuple[FloatArray, FloatArray]:
    """The corners of the box that all cells lie in."""
    space = operator.space
    places = space.places(np.arange(space.size)) if not isinstance(space, Grid) else _corners(space)
    return places.min(axis=0), places.max(axis=0)


def _corners(grid: Grid) -> FloatArray:
    return grid.places(grid.encode([0, grid.side - 1], [0, grid.side - 1]))


def _between_cells(operator: Operator, least: float) -> tuple[float, float, float]:
    """The separation around the middle, that of the best place and that of the worst."""
    low, high = _ends(operator)
    axes = np.flatnonzero(high > low)
    if not axes.size:
        return math.inf, math.inf, math.inf
    middle = [
        _separation(
            operator,
            (low + high) / 2,
            -np.eye(low.size)[axis] / 2,
            np.eye(low.size)[axis] / 2,
            least,
        )
        for axis in axes
    ]
    lines = [
        np.linspace(begin, end, 9 if low.size == 1 else 3)
        for begin, end in zip(low, high, strict=True)
    ]
    places = np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, low.size)
    elsewhere = []
    for place in places:
        for axis in axes:
            inwards = np.zeros(low.size)
            inwards[axis] = 1.0 if 2 * place[axis] <= low[axis] + high[axis] else -1.0
            elsewhere.append(_separation(operator, place, 0 * inwards, inwards, least))
    return max(middle), min(middle + elsewhere), max(middle + elsewhere)


def _separation(
    operator: Operator,
    origin: FloatArray,
    back: FloatArray,
    ahead: FloatArray,
    least: float,
) -> float:
    """The smallest d at which sources at origin + d back and origin + d ahead are told from one."""
    low, high = _ends(operator)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = [
            np.where(way > 0, (high - origin) / way, (low - origin) / way) for way in (back, ahead)
        ]
    farthest = float(
        np.min(
            np.concatenate([ways[way != 0] for ways, way in zip(room, (back, ahead), strict=True)])
        )
    )
    tried, before = np.geomspace(1e-4 * farthest, farthest, SCAN), 0.0
    for finer in range(ROUNDS + 1):
        steps = tried[:, np.newaxis]
        told = np.flatnonzero(gap(operator, origin + steps * back, origin + steps * ahead) >= least)
        if not told.size:
            # Between two that were looked at it was told at the upper one, but for rounding.
            return math.inf if finer == 0 else float(tried[-1])
        at = int(told[0])
        before, after = (float(tried[at - 1]) if at else before), float(tried[at])
        tried = np.linspace(before, after, FINER + 1)[1:]
    return after


def _shares(operator: Operator, least: float) -> tuple[tuple[float, float], ...]:
    """At each of some distances, the share of pairs of cells that are told from any single cell."""
    sensors, cells = operator.shape
    if sensors * cells > MAX_ENTRIES:
        raise InvalidParameter(
            f"sensors times cells must be at most {MAX_ENTRIES} to look at pairs, got {sensors} by {cells}; "
            "nothing was computed"
        )
    columns = operator.columns(np.arange(cells))
    first, second, far, bands = _pairs(operator)
    parts = np.array_split(np.arange(far.size), max(1, far.size * cells >> 22))
    told = np.concatenate(
        [_cell_gap(columns, first[part], second[part]) >= least for part in parts]
    )
    return tuple(
        (float(np.median(far[bands == band])), float(told[bands == band].mean()))
        for band in np.unique(bands).tolist()
    )


def _cell_gap(columns: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """How far the readings of units in two cells are from those of any one cell, of any mass."""
    units = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    readings = columns[:, first] + columns[:, second]
    along = np.maximum(units.T @ readings, 0.0)
    nearest = along.argmax(axis=0)
    rest = readings - along[nearest, np.arange(nearest.size)] * units[:, nearest]
    return np.asarray(np.linalg.norm(rest, axis=0))


def _pairs(operator: Operator) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Pairs of cells, chosen evenly at every distance: both cells, how far apart, and that in whole steps.

    A step is the median, over cells, of how far the nearest other cell is.
    """
    space, cells = operator.space, np.arange(operator.space.size)
    anchors = _evenly(cells, ANCHORS)
    apart = space.distances_between(space.places(anchors), space.places(cells))
    apart[~np.isfinite(apart)] = 0.0
    nearest = np.where(apart > 0, apart, np.inf).min(axis=1)
    step = float(np.median(nearest[np.isfinite(nearest)])) if np.isfinite(nearest).any() else 1.0
    bands = np.where(apart > 0, np.maximum(1, np.rint(apart / step)), 0).astype(np.int64)
    rows, ends = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for row in range(anchors.size):
        for band in range(1, min(BANDS, int(bands[row].max())) + 1):
            ends.append(_evenly(np.flatnonzero(bands[row] == band), PARTNERS))
            rows.append(np.full(ends[-1].size, row))
    begin, end = np.concatenate(rows), np.concatenate(ends)
    return anchors[begin], end, apart[begin, end], bands[begin, end]


def _evenly(cells: IntArray, most: int) -> IntArray:
    """So many of the cells at most, evenly spaced."""
    return cells[np.unique(np.linspace(0, cells.size - 1, min(most, cells.size)).astype(np.int64))]


def _far(distance: float) -> str:
    return "no distance" if distance == math.inf else f"{distance:.3g}"
