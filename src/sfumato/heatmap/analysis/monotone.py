"""Cubics through points that never turn back between them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray


def monotone_cubics(x: FloatArray, y: FloatArray) -> FloatArray:
    """The cubic of each stretch between knots x, from its constant on [4, stretches]: they never turn back.

    As `scipy.interpolate.PchipInterpolator` makes them, whose import takes longer than all of a plan.
    """
    wide, slope = np.diff(x), np.diff(y) / np.diff(x)
    steep = np.zeros(x.size)
    one, two = 2 * wide[1:] + wide[:-1], wide[1:] + 2 * wide[:-1]
    same = slope[:-1] * slope[1:] > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (one / slope[:-1] + two / slope[1:]) / (one + two)
        steep[1:-1] = np.where(same, 1 / mean, 0.0)
    steep[0] = _end(wide[0], wide[1], slope[0], slope[1])
    steep[-1] = _end(wide[-1], wide[-2], slope[-1], slope[-2])
    bend = (steep[:-1] + steep[1:] - 2 * slope) / wide
    return np.stack([y[:-1], steep[:-1], (slope - steep[:-1]) / wide - bend, bend / wide])


def _end(near: float, far: float, first: float, second: float) -> float:
    """How steep a line is at its end: by three points, but never turned back."""
    found = ((2 * near + far) * first - near * second) / (near + far)
    if np.sign(found) != np.sign(first):
        return 0.0
    return 3 * first if np.sign(first) != np.sign(second) and abs(found) > 3 * abs(first) else found


def between(knots: npt.ArrayLike, cubics: FloatArray, where: FloatArray) -> FloatArray:
    """The values at some places of the cubics between knots."""
    x = np.asarray(knots)
    at = np.clip(np.searchsorted(x, where, side="right") - 1, 0, x.size - 2)
    step = where - x[at]
    constant, first, second, third = cubics[:, at]
    return np.asarray(constant + first * step + second * step**2 + third * (step**2 * step))
