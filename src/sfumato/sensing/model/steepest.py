"""Where heat changes fastest: the largest change over all places of a line or a plane, proven from above.

People stand anywhere, so cells are not looked at: boxes of places are. In the unit sqrt(2T) a heat
kernel is exp(-u**2 / 2), its k-th derivative by the place He_k(u) exp(-u**2 / 2) with a Hermite
polynomial [abramowitz64, sec. 22], and those of all sensors are a vector F(x). In a box of places
its square is a polynomial around the center, by Taylor's theorem, and a rest that the largest
derivatives in the box bound. Boxes that might hold more than was found are cut, until none is left.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from operator import mul

import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermeval

from sfumato._types import FloatArray, IntArray

Orders = tuple[int, ...]
Derivatives = Callable[[Orders], FloatArray]
_Factor = Callable[[FloatArray, FloatArray, int], FloatArray]

UNIT = 2.0**-53
# A computed derivative is off by less than this share of its majorant: u**2 / 2 takes four
# roundings and is below 746 where exp is not 0, 3000 units; a Hermite polynomial loses at most 40
# units of the sum of its terms, and that sum is below 40 times the majorant. 2**17 units are far
# more than all of it.
LOST = 2.0**-36
# Squares of what is smaller leave the doubles: so much is added for each sensor.
VANISHED = 1e-150
# The more work (entries of boxes by sensors) it takes, the more is left open, relatively, and all
# of it at the end. That costs noise, never the promise.
OPEN = ((5e5, 1e-6), (2e6, 1e-4), (8e6, 1e-3), (4e7, 1e-2), (2e8, 5e-2))
SIDES = {1: 256, 2: 16}  # boxes to begin with, along each axis
CHUNK = 1 << 17  # entries at a time
ALONE = 16  # what a box costs beside its sensors, in entries

HIGHEST = 5
# Where |He_k(u)| exp(-u**2 / 2), u >= 0, has its maxima: at the roots of He_(k+1).
PEAKS = tuple(
    tuple(root for root in hermegauss(order + 1)[0].tolist() if root > -1e-9)
    for order in range(HIGHEST + 1)
)


@dataclass(frozen=True, slots=True, eq=False)
class Heat:
    """Sensors by axes and the boxes of places, in the unit sqrt(2T); kernels have height 1 there.

    Times a gain of each sensor, where sensors have such.
    """

    sensors: FloatArray
    low: FloatArray
    high: FloatArray
    gains: FloatArray | None = None

    @property
    def rounding(self) -> float:
        """How far a place may be off: it was scaled, and boxes are halved."""
        largest = max(float(np.abs(part).max()) for part in (self.sensors, self.low, self.high))
        return 32 * UNIT * largest


@dataclass(frozen=True, slots=True)
class Steepest:
    """No place has more than `bound`; `place` has `attained`, which is as much unless `closed` is False."""

    bound: float
    attained: float
    place: tuple[float, ...]
    closed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Boxes by axes: their centers and half their sides."""

    centers: FloatArray
    halves: FloatArray


Bounds = Callable[[Heat, Boxes, tuple[Orders, ...], FloatArray | None], FloatArray]


def steepest(
    heat: Heat,
    columns: tuple[Orders, ...],
    *,
    shift: FloatArray | None = None,
    bounds: Bounds | None = None,
) -> Steepest:
    """The largest length of derivatives over all places: of one, or of two in the direction that is steepest.

    `columns` are the orders of a derivative along each axis. With a `shift` it is the change of the
    readings F(x + shift) - F(x) instead, for every place x of the boxes. With `bounds` lengths are not
    Euclidean: they bound another norm in boxes.

    >>> one = Heat(np.zeros((1, 1)), np.array([-5.0]), np.array([5.0]))
    >>> found = steepest(one, ((1,),))
    >>> round(found.bound, 5), round(math.exp(-0.5), 5), round(abs(found.place[0]), 2)
    (0.60653, 0.60653, 1.0)
    """
    boxes = _first(heat)
    settled, found, place, work = 0.0, -1.0, heat.low, 0
    each = len(heat.sensors) + ALONE
    least = (
        2 * VANISHED * math.sqrt(len(heat.sensors))
    )  # where nothing is read, nothing is left open
    while len(boxes.centers):
        upper, lower, point = _bounds(heat, boxes, columns, shift, bounds or l2_bounds)
        work += len(upper) * each
        at = int(lower.argmax())
        if lower[at] > found:
            found, place = float(lower[at]), boxes.centers[at]
        open_ = np.zeros(len(upper), dtype=bool)
        for most, share in OPEN:
            # Where rounding is all that is left, smaller boxes are of no use.
            open_ = (upper > (found + least) * (1 + share)) & (upper - lower > 2 * (point - lower))
            if work + (int(open_.sum()) << heat.low.size) * each <= most:
                break
        else:
            open_[:] = False
        settled = max(settled, float(upper[~open_].max(initial=0.0)))
        boxes = _cut(boxes, np.flatnonzero(open_))
    closed = settled <= (found + least) * (1 + 2 * OPEN[0][1])
    return Steepest(settled, found, tuple(place.tolist()), closed)


def roughly(heat: Heat, columns: tuple[Orders, ...]) -> float:
    """A bound on the same, at a glance."""
    return float(_bounds(heat, _first(heat), columns, None, l2_bounds)[0].max())


def _first(heat: Heat) -> Boxes:
    """Boxes that cover all places, not much wider than the kernel where that takes few of them."""
    wide = heat.high - heat.low
    counts = [int(min(SIDES[wide.size], max(1.0, math.ceil(side / 0.5)))) for side in wide.tolist()]
    at = np.meshgrid(*(np.arange(count) for count in counts), indexing="ij")
    halves = wide / (2 * np.array(counts))
    centers = heat.low + (2 * np.stack([axis.ravel() for axis in at], axis=1) + 1) * halves
    return Boxes(centers, np.broadcast_to(halves + heat.rounding, centers.shape))


def _cut(boxes: Boxes, chosen: IntArray) -> Boxes:
    """Halves, along every axis, of some of the boxes."""
    centers, halves = boxes.centers[chosen], boxes.halves[chosen] / 2
    signs = itertools.product((-1.0, 1.0), repeat=centers.shape[1])
    parts = [centers + np.array(sign) * halves for sign in signs]
    # A center is rounded; boxes overlap by what that may be.
    return Boxes(
        np.concatenate(parts), np.tile(halves * (1 + 8 * UNIT) + _spacing(centers), (len(parts), 1))
    )


def _spacing(centers: FloatArray) -> FloatArray:
    return np.asarray(4 * UNIT * np.abs(centers))


def _bounds(
    heat: Heat,
    boxes: Boxes,
    columns: tuple[Orders, ...],
    shift: FloatArray | None,
    some: Bounds,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Above the largest length in each box, below it (in its center), and above that in the center alone."""
    step = max(1, CHUNK // len(heat.sensors))
    parts = [slice(begin, begin + step) for begin in range(0, len(boxes.centers), step)]
    found = [
        some(heat, Boxes(boxes.centers[part], boxes.halves[part]), columns, shift) for part in parts
    ]
    upper, lower, point = np.concatenate(found, axis=1)
    return upper, lower, point


def l2_bounds(
    heat: Heat, boxes: Boxes, columns: tuple[Orders, ...], shift: FloatArray | None
) -> FloatArray:
    """Bounds from the squares of lengths: F'F by Taylor's theorem, the third derivatives as its rest."""
    values, largest, entries = tables(heat, boxes, shift)
    jets = [Jet.of(values, orders, boxes.halves) for orders in columns]
    sizes = cache(lambda orders: _norm(largest(orders)))
    rests = [terms_of(sizes, orders, boxes.halves) for orders in columns]
    count = range(len(columns))
    squares = [[_dot(jets[i].value, jets[j].value) for j in count] for i in count]
    rises = [
        [_rise(jets[i], jets[j], rests[i], rests[j], alone=i == j) for j in count] for i in count
    ]
    rough = np.linalg.norm([rest[0] for rest in rests], axis=0)
    # What is computed in the centers is off by `lost`: of itself, and as places are off, of its
    # derivatives (up to the third, over a length of 1). Squares are off by twice that times their
    # roots.
    size = np.sum([jet.size for jet in jets], axis=0)
    added = sizes if shift is None else cache(lambda orders: _norm(entries(orders)))

    def lost_over(halves: FloatArray) -> FloatArray:
        terms = (term for orders in columns for term in terms_of(added, orders, halves + 1))
        return np.asarray((LOST + heat.rounding) * sum(terms))

    def off(size: FloatArray, lost: FloatArray) -> FloatArray:
        return (2 * size + lost) * lost + 4 * len(heat.sensors) * UNIT * size**2

    lost, lost_here = lost_over(boxes.halves), lost_over(np.zeros_like(boxes.halves))
    lower, vanished = np.sqrt(_top(squares)), VANISHED * math.sqrt(len(heat.sensors))
    upper = np.sqrt(_top(squares) + _top(rises) + off(size, lost))
    if len(columns) > 1:
        # Where the steepest direction turns from place to place, the tangent of F itself is nearer.
        bent = np.linalg.norm([rest[2] / 2 for rest in rests], axis=0)
        upper = np.minimum(upper, _corners(jets) * (1 + 4 * len(heat.sensors) * UNIT) + bent + lost)
    upper = np.minimum(upper, rough + lost_here)
    point = np.sqrt(lower**2 + off(2 * lower, lost_here))
    return np.stack([upper * (1 + LOST) + vanished, lower, point * (1 + LOST) + vanished])


@dataclass(frozen=True, slots=True, eq=False)
class Jet:
    """A vector over all sensors in the centers of boxes, and its derivatives times the half sides."""

    value: FloatArray
    first: list[FloatArray]
    second: list[list[FloatArray]]

    @staticmethod
    def of(values: Derivatives, orders: Orders, halves: FloatArray) -> Jet:
        """Of the derivatives of these orders, in boxes with these half sides."""
        axes = range(len(orders))
        first = [values(_more(orders, a)) * halves[:, [a]] for a in axes]
        second = [
            [values(_more(_more(orders, a), b)) * (halves[:, [a]] * halves[:, [b]]) for b in axes]
            for a in axes
        ]
        return Jet(values(orders), first, second)

    @property
    def size(self) -> FloatArray:
        """A bound on the length of its polynomial in the boxes."""
        bends = (_norm(bend) / 2 for row in self.second for bend in row)
        return np.asarray(_norm(self.value) + sum(map(_norm, self.first)) + sum(bends))


def in_corners(jets: list[Jet]) -> Iterator[list[FloatArray]]:
    """The tangents in each corner of the boxes, where what is convex is largest."""
    for signs in itertools.product((-1.0, 1.0), repeat=len(jets[0].first)):
        yield [sum(map(mul, signs, jet.first), start=jet.value) for jet in jets]


def _corners(jets: list[Jet]) -> FloatArray:
    """The largest length of the tangents in the boxes."""
    found = np.zeros(len(jets[0].value))
    for moved in in_corners(jets):
        found = np.maximum(
            found, np.sqrt(_top([[_dot(one, other) for other in moved] for one in moved]))
        )
    return found


def _rise(
    one: Jet, other: Jet, one_rest: list[FloatArray], other_rest: list[FloatArray], *, alone: bool
) -> FloatArray:
    """How far a product F'H of two vectors may rise (or, unless it is a square, also fall) in the boxes."""
    axes = range(len(one.first))
    out = np.zeros(len(one.value))
    for a in axes:
        out += np.abs(_dot(one.value, other.first[a]) + _dot(one.first[a], other.value))
        for b in axes:
            bend = (_dot(one.first[a], other.first[b]) + _dot(one.first[b], other.first[a])) / 2
            bend += (_dot(one.value, other.second[a][b]) + _dot(one.second[a][b], other.value)) / 2
            # Along an axis its sign is known: what bends down does not rise.
            out += np.maximum(bend, 0.0) if alone and a == b else np.abs(bend)
    (f0, f1, f2, f3), (g0, g1, g2, g3) = one_rest, other_rest
    return np.asarray(out + (f0 * g3 + 3 * f1 * g2 + 3 * f2 * g1 + f3 * g0) / 6)


def terms_of(sizes: Derivatives, orders: Orders, halves: FloatArray) -> list[FloatArray]:
    """Bounds on the lengths of derivatives of order 0 to 3 in all directions within the boxes."""
    out = []
    for order in range(4):
        total = np.zeros(len(halves))
        for way in itertools.combinations_with_replacement(range(len(orders)), order):
            counts = [way.count(axis) for axis in range(len(orders))]
            times = math.factorial(order) // math.prod(map(math.factorial, counts))
            more = tuple(k + count for k, count in zip(orders, counts, strict=True))
            total += times * np.prod(halves ** np.array(counts), axis=1) * sizes(more)
        out.append(total)
    return out


def _dot(one: FloatArray, other: FloatArray) -> FloatArray:
    """Over all sensors."""
    with np.errstate(under="ignore"):
        return np.asarray(np.einsum("bs,bs->b", one, other))


def _norm(values: FloatArray) -> FloatArray:
    return np.sqrt(_dot(values, values))


def _top(matrix: list[list[FloatArray]]) -> FloatArray:
    """The largest eigenvalue of a symmetric matrix of one or two rows."""
    if len(matrix) == 1:
        return matrix[0][0]
    (a, b), (_, c) = matrix
    return np.asarray((a + c) / 2 + np.hypot((a - c) / 2, b))


def tables(
    heat: Heat, boxes: Boxes, shift: FloatArray | None
) -> tuple[Derivatives, Derivatives, Derivatives]:
    """Derivatives of all kernels in the centers, bounds on them in the boxes, and on what was added up."""
    axes = range(heat.low.size)
    halves = [boxes.halves[:, [axis]] for axis in axes]
    ways = [heat.sensors[:, axis] - boxes.centers[:, [axis]] for axis in axes]
    here = _products(ways, _derivative, heat.gains)
    around = _products(
        [_nearest(way, half) for way, half in zip(ways, halves, strict=True)], _above, heat.gains
    )
    if shift is None:
        return here, around, around
    steps = shift.tolist()
    moved = [way - step for way, step in zip(ways, steps, strict=True)]
    there = _products(moved, _derivative, heat.gains)
    beyond = _products(
        [_nearest(way, half) for way, half in zip(moved, halves, strict=True)], _above, heat.gains
    )
    between = _products(
        [
            _nearest(way - step / 2, half + abs(step) / 2)
            for way, step, half in zip(ways, steps, halves, strict=True)
        ],
        _above,
        heat.gains,
    )

    def change(orders: Orders) -> FloatArray:
        rates = (
            abs(step) * between(_more(orders, axis)) for axis, step in enumerate(steps) if step
        )
        return np.minimum(around(orders) + beyond(orders), sum(rates, start=np.zeros(1)))

    return (
        lambda orders: there(orders) - here(orders),
        change,
        lambda orders: around(orders) + beyond(orders),
    )


def _products(ways: list[FloatArray], factor: _Factor, gains: FloatArray | None) -> Derivatives:
    """Derivatives of a product of one kernel for each axis, times the sensor's gain: boxes by sensors."""
    kernels = [_kernel(way) for way in ways]
    kept = cache(lambda axis, order: factor(ways[axis], kernels[axis], order))

    def product(orders: Orders) -> FloatArray:
        first, *others = (kept(axis, order) for axis, order in enumerate(orders))
        found = np.asarray(math.prod(others, start=first))
        return found if gains is None else found * gains

    return product


def _kernel(ways: FloatArray) -> FloatArray:
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-(ways * ways) / 2))


def _derivative(ways: FloatArray, kernel: FloatArray, order: int) -> FloatArray:
    """He_k(u) exp(-u**2 / 2)."""
    return np.asarray(hermeval(ways, [0.0] * order + [1.0]) * kernel) if order else kernel


def _above(nearest: FloatArray, kernel: FloatArray, order: int) -> FloatArray:
    """The largest |He_k(v)| exp(-v**2 / 2) of all v >= u >= 0: here, or at a maximum that lies beyond."""
    found = np.abs(_derivative(nearest, kernel, order))
    for peak in PEAKS[order]:
        at = np.array([peak])
        top = float(np.abs(_derivative(at, _kernel(at), order))[0]) * (1 + LOST)
        found = np.where(nearest <= peak * (1 + LOST), np.maximum(found, top), found)
    return found


def majorant(nearest: FloatArray, order: int) -> FloatArray:
    """The largest size of a derivative of a kernel at so far or farther, in one dimension."""
    return _above(nearest, _kernel(nearest), order)


def _nearest(ways: FloatArray, halves: FloatArray) -> FloatArray:
    return np.maximum(np.abs(ways) - halves, 0.0)


def _more(orders: Orders, axis: int) -> Orders:
    return (*orders[:axis], orders[axis] + 1, *orders[axis + 1 :])
