"""Where heat changes most in l1: the largest sum of what single sensors change, over all places, from above.

In a box of places each sensor's derivative is its tangent in the center and a rest, by Taylor's theorem. The
sum of the tangents' sizes is convex, so it is largest in a corner of the box; the rests are added.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from sfumato._types import FloatArray
from sfumato.sensing.model.steepest import (
    LOST,
    UNIT,
    VANISHED,
    Boxes,
    Heat,
    Jet,
    Orders,
    in_corners,
    steepest,
    tables,
    terms_of,
)


def steepest_l1(heat: Heat, columns: tuple[Orders, ...]) -> float:
    """A bound on the sum over sensors of the size of a derivative, or of the length of several, anywhere.

    >>> two = Heat(np.array([[0.0], [0.0]]), np.array([-5.0]), np.array([5.0]))
    >>> round(steepest_l1(two, ((1,),)), 4)  # twice exp(-1/2)
    1.2131
    """
    return steepest(heat, columns, bounds=l1_bounds).bound


def l1_bounds(
    heat: Heat, boxes: Boxes, columns: tuple[Orders, ...], shift: FloatArray | None
) -> FloatArray:
    """Above the largest sum in each box, below it (in its center), and above that in the center alone."""
    values, largest, entries = tables(heat, boxes, shift)
    jets = [Jet.of(values, orders, boxes.halves) for orders in columns]
    sizes = cache(lambda orders: largest(orders).sum(axis=1))
    rest = np.sum([terms_of(sizes, orders, boxes.halves)[2] / 2 for orders in columns], axis=0)
    added = sizes if shift is None else cache(lambda orders: entries(orders).sum(axis=1))

    def lost_over(halves: FloatArray) -> FloatArray:
        # What is computed in the centers is off by this share of itself, and by as much of its derivatives.
        terms = (term for orders in columns for term in terms_of(added, orders, halves + 1))
        return np.asarray((LOST + heat.rounding) * sum(terms))

    sums = 1 + 4 * (len(heat.sensors) + len(columns) + 4) * UNIT
    here = _together([jet.value for jet in jets])
    vanished = VANISHED * len(heat.sensors)
    upper = _corners(jets) * sums + rest + lost_over(boxes.halves) + vanished
    point = here * sums + lost_over(np.zeros_like(boxes.halves)) + vanished
    return np.stack([np.maximum(upper, here), here, point])


def _together(parts: list[FloatArray]) -> FloatArray:
    """The sum over sensors of the length of each one's derivatives."""
    if len(parts) == 1:
        return np.asarray(np.abs(parts[0]).sum(axis=1))
    return np.asarray(np.sqrt(np.sum([np.square(part) for part in parts], axis=0)).sum(axis=1))


def _corners(jets: list[Jet]) -> FloatArray:
    found = np.zeros(len(jets[0].value))
    for moved in in_corners(jets):
        found = np.maximum(found, _together(moved))
    return found
