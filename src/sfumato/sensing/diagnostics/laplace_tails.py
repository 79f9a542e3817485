"""How likely Laplace noise is beyond something: its squares have no table, and heavier tails than Gaussian."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from sfumato._random import generator
from sfumato._types import FloatArray
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.solver.compress import Range
from sfumato.sensing.recovery.solver.operator_cache import cached

MOST_DRAWS, FEWEST_DRAWS, DRAWN = 40_000, 10_000, 1 << 24
"""Numbers that are made up in all, unless these are too few draws to warn by."""
MOST_SUMMED = 4096
"""Squares of which sums are made up; of more a bound says enough."""
FEW = 20
"""Draws beyond it, below which a bound may say that it is less likely than they do."""
CUTS, SLOPES, NODES = 24, 48, 129
"""Where a square is cut, exponents, and nodes of an integral, of which a bound takes the best."""


class LaplaceSquares:
    """Squares of Laplace noise of deviation 1 outside and inside of an operator's range, as p-values.

    Made-up noise, each time the same: (k + 1) / (n + 1) is a p-value. Where few of it are beyond, what is
    proved of all squares together counts if it is less.
    """

    def __init__(self, operator: Operator, found: Range) -> None:
        self._count = operator.shape[0]
        self.outside, self.inside = cached(
            operator, "squares of Laplace noise", lambda: _made_up(operator.shape[0], found)
        )

    def above_outside(self, square: float) -> float:
        """The chance of more outside."""
        return _above(self.outside, self._count, square)

    def below_outside(self, square: float) -> float:
        """The chance of less outside."""
        return float(1 + (self.outside <= square).sum()) / (1 + self.outside.size)

    def above_inside(self, square: float) -> float:
        """The chance of more inside."""
        return _above(self.inside, self._count, square)


def chance_of_squares(count: int, square: float) -> float:
    """The chance that squares of so many Laplace numbers of deviation 1 are more together: a p-value.

    >>> chance_of_squares(20, 20) > 0.3, 1e-13 < chance_of_squares(20, 600) < 1e-12
    (True, True)
    """
    return _bound(count, square) if count > MOST_SUMMED else _above(_sums(count), count, square)


def log_chance_beyond(deviations: FloatArray) -> FloatArray:
    """The log of the chance, at most, that a combination of Laplace noise of deviation 1 is more, one way.

    Chernoff's bound of any combination, one number or many: E exp(s S) <= 1 / (1 - s**2 / 2), best at
    s = (sqrt(1 + 2 x**2) - 1) / x.

    >>> log_chance_beyond(np.array([-1.0, 0.0, 8.0])).round(1).tolist()
    [0.0, 0.0, -8.5]
    """
    far = np.maximum(deviations, 1e-9)
    root = np.sqrt(1 + 2 * far**2)
    slope = (root - 1) / far
    found = -slope * far - np.log1p(-(slope**2) / 2)
    return np.where(deviations > 0, np.minimum(found, 0.0), 0.0)


def _above(made_up: FloatArray, count: int, square: float) -> float:
    beyond = int((made_up >= square).sum())
    chance = (1 + beyond) / (1 + made_up.size)
    return chance if beyond >= FEW else min(chance, _bound(count, square))


def _bound(count: int, square: float) -> float:
    """What squares of so many numbers are more than with this chance at most [fuk71].

    One is above a cut t with chance exp(-sqrt(2 t)), and those below have the moment E exp(s L**2), an
    integral of a convex function, which the trapezoid rule does not understate.
    """
    if square <= count:
        return 1.0
    best = 1.0
    for root in math.sqrt(square) * np.linspace(0.2, 1.0, CUTS):
        at = np.linspace(0.0, root, NODES)
        slopes = math.sqrt(2) / root * np.linspace(0.02, 2.0, SLOPES)[:, np.newaxis]
        heights = math.sqrt(2) * np.exp(slopes * at**2 - math.sqrt(2) * at)
        moments = (heights[:, :-1] + heights[:, 1:]).sum(axis=1) * (at[1] / 2)
        logs = count * np.log(moments) - slopes[:, 0] * square
        best = min(best, count * math.exp(-math.sqrt(2) * root) + math.exp(min(0.0, logs.min())))
    return best


@lru_cache(maxsize=8)
def _sums(count: int) -> FloatArray:
    return np.concatenate([np.square(noise).sum(axis=1) for noise in _noise(count)])


def _made_up(readings: int, found: Range) -> tuple[FloatArray, FloatArray]:
    """What noise has for squares, outside and inside of the range: sorted by nothing."""
    outside, inside = list[FloatArray](), list[FloatArray]()
    for noise in _noise(readings):
        inside.append(np.square(found.into(noise.T)).sum(axis=1))
        outside.append(np.square(noise).sum(axis=1) - inside[-1])
    return np.concatenate(outside), np.concatenate(inside)


def _noise(count: int) -> Iterator[FloatArray]:
    """Made-up noise of so many readings, deviation 1, each time the same: rows, some megabytes at a time."""
    chance = generator(0)
    left = int(min(MOST_DRAWS, max(FEWEST_DRAWS, DRAWN // count)))
    while left:
        some = min(left, max(1, (1 << 20) // count))
        yield chance.laplace(scale=math.sqrt(0.5), size=(some, count))
        left -= some
