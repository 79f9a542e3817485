"""How far readings of heat move when a source does, wherever it stands: over all places, not cells alone.

A unit that moves from x to y along a straight line changes the readings by at most its way times
the largest derivative on it. So with `MovedMass` the change over distance is at most the largest
derivative anywhere, and two places next to the steepest one attain it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sfumato._types import FloatArray
from sfumato.sensing.model.changes import Largest, no_change
from sfumato.sensing.model.l1_steepest import steepest_l1
from sfumato.sensing.model.operators.heat import HeatOperator
from sfumato.sensing.model.steepest import (
    VANISHED,
    Heat,
    Orders,
    Steepest,
    majorant,
    roughly,
    steepest,
)
from sfumato.spaces import Grid, Line, Points

# Scaling to the unit sqrt(2T) and back, and closed forms of one sensor, lose under 100 units; exp
# 3000 more.
ERROR = 2.0**-40
SMALL = 1e-3  # steps below this, in the unit sqrt(2T), change by their length times the slope: 1e-7 too much
SAMPLED = 0.35  # between places that sets of sensors are compared at, in the same unit
EVEN = 1e-9  # steps that differ by no more than this, relatively, count as one


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Where people may stand: a box, in the unit of the positions."""

    low: FloatArray
    high: FloatArray


def reach(space: Line | Grid | Points) -> Reach:
    """All places that the promise is for.

    A grid is its whole area. A line goes one step beyond its first and its last cell, for these
    stand for what is around them (the papers' cells 1/n, 2/n, ..., 1 for all from 0 to 1). Places
    given one by one stand for the smallest box that holds them.

    >>> reach(Line(4)).low, reach(Line(4)).high
    (array([0.]), array([1.25]))
    """
    match space:
        case Line():
            at = space.positions
            # A cell alone is as wide as it is from 0, the step of `Line(1)`.
            alone = abs(float(at[0])) or 1.0
            first, last = (at[1] - at[0], at[-1] - at[-2]) if at.size > 1 else (alone, alone)
            return Reach(np.array([at[0] - first]), np.array([at[-1] + last]))
        case Grid():
            return Reach(np.array(space.bounds[:2]), np.array(space.bounds[2:]))
        case Points():
            return Reach(space.positions.min(axis=0), space.positions.max(axis=0))


@lru_cache(maxsize=16)
def heat_changes(
    operator: HeatOperator, *, over_distance: bool, gains: tuple[float, ...] | None = None
) -> Largest:
    """The largest change of the readings over distance anywhere, or when two cells one step apart swap.

    With `gains` each reading counts so many times.

    Sources of cells that are swapped keep their places in them. If one cell is empty that is a step
    from any place; if both are full it is the difference of two such changes, from two places of a
    cell, and bounded by twice the one and by what it changes over the width of a cell.
    """
    if operator.space.size == 1 and (not over_distance or isinstance(operator.space, Points)):
        return no_change(operator)
    scaled = _Scaled.of(operator, gains)
    if over_distance:
        found = _gradient(scaled)
        return scaled.largest(
            found.bound, _slopes_alone(scaled), found.place, power=1, closed=found.closed
        )
    match operator.space:
        case Line():
            steps = np.diff(operator.space.positions) / scaled.unit
            even = steps.max() - steps.min() <= EVEN * steps.max()
            far = float(steps.max())
            return _swaps(scaled, (far,)) if even else _any_two(scaled, far, width=far)
        case Grid():
            grid = operator.space
            return _swaps(scaled, (grid.cell_width / scaled.unit, grid.cell_height / scaled.unit))
        case Points():
            wide = scaled.heat.high - scaled.heat.low
            return _any_two(
                scaled, float(np.linalg.norm(wide)) if scaled.euclidean else float(wide.sum())
            )


@lru_cache(maxsize=16)
def heat_l1_changes(operator: HeatOperator, *, over_distance: bool) -> float:
    """A bound on the largest change of all readings in l1, over distance or when two cells are swapped.

    As `heat_changes`: a step changes readings by at most its length times the largest derivative, in any norm.
    """
    if operator.space.size == 1 and (not over_distance or isinstance(operator.space, Points)):
        return 0.0
    scaled = _Scaled.of(operator)
    height, heat = scaled.height * (1 + ERROR), scaled.heat
    if scaled.euclidean:
        slope = steepest_l1(heat, scaled.axes)
    else:
        slope = max(steepest_l1(heat, (axis,)) for axis in scaled.axes)
    if over_distance:
        return slope * height / scaled.unit
    match operator.space:
        case Line():
            widths = [float(np.diff(operator.space.positions).max()) / scaled.unit]
        case Grid():
            grid = operator.space
            widths = [grid.cell_width / scaled.unit, grid.cell_height / scaled.unit]
        case Points():
            wide = heat.high - heat.low
            far = float(np.linalg.norm(wide)) if scaled.euclidean else float(wide.sum())
            return slope * far * height
    found = 0.0
    for axis, width in zip(scaled.axes, widths, strict=True):
        one = width * steepest_l1(heat, (axis,))
        # Both cells full: two such changes, from two places of a cell, differ.
        bends = [tuple(a + b for a, b in zip(axis, other, strict=True)) for other in scaled.axes]
        differ = width * sum(
            wide * steepest_l1(heat, (bend,)) for wide, bend in zip(widths, bends, strict=True)
        )
        found = max(found, one, min(2 * one, differ))
    return found * height


def sampled_changes(operator: HeatOperator, *, over_distance: bool) -> FloatArray | None:
    """What single sensors change at some places: sensors by places. To compare sets of them, not to promise.

    None between places given one by one that are swapped: their pairs are all there is to look at.
    """
    scaled, space = _Scaled.of(operator), operator.space
    wide = scaled.heat.high - scaled.heat.low
    most = 1024 if wide.size == 1 else 32
    counts = [int(min(most, max(2, math.ceil(side / SAMPLED)))) + 1 for side in wide.tolist()]
    axes = [np.linspace(low, high, count) for low, high, count in zip(
        scaled.heat.low.tolist(), scaled.heat.high.tolist(), counts, strict=True
    )]  # fmt: skip
    places = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
    ways = scaled.heat.sensors[:, np.newaxis, :] - places

    def heights(ways: FloatArray) -> FloatArray:
        with np.errstate(under="ignore"):
            return np.asarray(np.exp(-np.square(ways).sum(axis=2) / 2) * scaled.height)

    if over_distance:
        turns = np.linspace(0, math.pi, 8, endpoint=False)
        round_about = np.column_stack([np.cos(turns), np.sin(turns)])
        directions = round_about if scaled.euclidean else np.eye(wide.size)
        return np.concatenate(
            [heights(ways) * (ways @ way) / scaled.unit for way in directions], axis=1
        )
    match space:
        case Line():
            steps = [np.array([np.diff(space.positions).max()])]
        case Grid():
            steps = [np.array([space.cell_width, 0.0]), np.array([0.0, space.cell_height])]
        case Points():
            return None
    # From half a step before to half a step after each place.
    halves = [step / (2 * scaled.unit) for step in steps]
    return np.concatenate([heights(ways - half) - heights(ways + half) for half in halves], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Scaled:
    """An operator in the unit sqrt(2T), with kernels of height 1, around the middle of its places."""

    heat: Heat
    euclidean: bool
    middle: FloatArray
    unit: float
    height: float

    @staticmethod
    def of(operator: HeatOperator, gains: tuple[float, ...] | None = None) -> _Scaled:
        space, places, time = operator.space, operator.sensors.positions, operator.diffusion_time
        unit, box = math.sqrt(2 * time), reach(space)
        middle = box.low + (box.high - box.low) / 2
        # Differences first: then far coordinates lose nothing but what they have lost already.
        heat = Heat(
            (places - middle) / unit,
            (box.low - middle) / unit,
            (box.high - middle) / unit,
            None if gains is None else np.array(gains),
        )
        height = (4 * math.pi * time) ** (-places.shape[1] / 2)
        straight = isinstance(space, Points) and space.norm == "euclidean"
        return _Scaled(heat, straight, middle, unit, height)

    @property
    def axes(self) -> tuple[Orders, ...]:
        """The first derivative along each axis."""
        count = self.heat.low.size
        return tuple(tuple(int(axis == other) for other in range(count)) for axis in range(count))

    @property
    def value(self) -> Orders:
        """No derivative at all."""
        return (0,) * self.heat.low.size

    def largest(
        self, l2: float, alone: FloatArray, place: tuple[float, ...], *, power: int, closed: bool
    ) -> Largest:
        """In the unit of the readings; `power` is the order of the derivative."""
        factor = self.height / self.unit**power
        at = tuple((self.middle + self.unit * np.array(place)).tolist())
        return Largest(
            l2 * factor, np.minimum(alone, l2) * factor, None, ERROR, exact=closed, place=at
        )


def _gradient(scaled: _Scaled) -> Steepest:
    """The largest derivative: along an axis where distances are sums over axes, else in any direction."""
    if scaled.euclidean:
        return steepest(scaled.heat, scaled.axes)
    return max((steepest(scaled.heat, (axis,)) for axis in scaled.axes), key=lambda one: one.bound)


def _swaps(scaled: _Scaled, widths: tuple[float, ...]) -> Largest:
    """The largest change when cells of these widths are swapped with the next along an axis."""
    heat, found, alone = scaled.heat, [], np.zeros(len(scaled.heat.sensors))
    for axis, width in enumerate(widths):
        shift = np.where(np.arange(len(widths)) == axis, width, 0.0)
        from_here = replace(heat, high=np.maximum(heat.high - shift, heat.low))
        if width <= SMALL:
            slope = steepest(heat, (scaled.axes[axis],))
            one = replace(slope, bound=slope.bound * width, attained=slope.attained * width)
        else:
            one = steepest(from_here, (scaled.value,), shift=shift)
            # Steps of a line are as even as doubles are: those that are shorter change by so much
            # more.
            one = replace(one, bound=one.bound + EVEN * width * roughly(heat, (scaled.axes[axis],)))
        bends = [
            tuple(a + b for a, b in zip(scaled.axes[axis], other, strict=True))
            for other in scaled.axes
        ]
        differ = width * sum(
            wide * roughly(heat, (bend,)) for wide, bend in zip(widths, bends, strict=True)
        )
        if differ > one.bound:
            differ = width * sum(
                wide * steepest(heat, (bend,)).bound
                for wide, bend in zip(widths, bends, strict=True)
            )
            differ = min(2 * one.bound, differ)
        found.append(
            replace(one, bound=max(one.bound, differ), closed=one.closed and differ <= one.bound)
        )
        steps = np.minimum(
            width * _largest_alone(heat, scaled.axes[axis]), _largest_alone(heat, scaled.value)
        )
        bent = width * sum(
            wide * _largest_alone(heat, bend) for wide, bend in zip(widths, bends, strict=True)
        )
        alone = np.maximum(alone, np.maximum(steps, np.minimum(2 * steps, bent)))
    best = max(found, key=lambda one: one.bound)
    return scaled.largest(best.bound, alone, best.place, power=0, closed=best.closed)


def _any_two(scaled: _Scaled, far: float, *, width: float = 0.0) -> Largest:
    """A bound on the change between any two places so far apart: |a - b| <= sqrt(|a|**2 + |b|**2) too.

    Of cells of some width two such changes may differ, as in `_swaps`: here they are bounded by
    their sum.
    """
    slope, top = _gradient(scaled), steepest(scaled.heat, (scaled.value,))
    most = min(slope.bound * far, math.sqrt(2) * top.bound * (1 + ERROR))
    alone = np.minimum(_slopes_alone(scaled) * far, _largest_alone(scaled.heat, scaled.value))
    times = 2 if width else 1
    return scaled.largest(times * most, times * alone, slope.place, power=0, closed=False)


def _slopes_alone(scaled: _Scaled) -> FloatArray:
    """The largest derivative of each sensor alone, in closed form."""
    if not scaled.euclidean:
        return np.asarray(
            np.max([_largest_alone(scaled.heat, axis) for axis in scaled.axes], axis=0)
        )
    # A kernel in the plane changes along the ray from its sensor: r exp(-r**2 / 2), largest at r =
    # 1.
    near, far = _ranges(scaled.heat)
    found = _hump(
        np.linalg.norm(near, axis=1) * (1 - ERROR), np.linalg.norm(far, axis=1) * (1 + ERROR)
    )
    return found if scaled.heat.gains is None else found * scaled.heat.gains


def _largest_alone(heat: Heat, orders: Orders) -> FloatArray:
    """A bound on a derivative of each sensor's kernel over the box; up to the first it is the largest."""
    near, far = _ranges(heat)
    out = np.full(len(heat.sensors), 1 + ERROR)
    if heat.gains is not None:
        out *= heat.gains
    for axis, order in enumerate(orders):
        out *= _hump(near[:, axis], far[:, axis]) if order == 1 else majorant(near[:, axis], order)
    return out + VANISHED


def _ranges(heat: Heat) -> tuple[FloatArray, FloatArray]:
    """How far the nearest and the farthest places of the box are from each sensor along each axis."""
    low, high = heat.low - heat.sensors, heat.high - heat.sensors
    off = heat.rounding
    return np.maximum(np.maximum(low, -high) - off, 0.0), np.maximum(
        np.abs(low), np.abs(high)
    ) + off


def _hump(near: FloatArray, far: FloatArray) -> FloatArray:
    """The largest r exp(-r**2 / 2) for near <= r <= far."""
    return np.asarray(np.where(far < 1, far * np.exp(-(far**2) / 2), majorant(near, 1)))
