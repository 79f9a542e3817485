"""One level, chosen from a public guess of the number of users: the simple method for any distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.baselines.flat import (
    FINEST_WHOLE,
    FlatLaplace,
    flat_laplace,
    whole_maps,
)
from sfumato.heatmap.methods.baselines.hierarchy import non_negative
from sfumato.heatmap.methods.protocol import NoiseAwareMethod, NoisyTree
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import UNITS, Bound
from sfumato.spaces import Grid


@dataclass(frozen=True, slots=True)
class CoarseMethod(NoiseAwareMethod[NoisyTree]):
    """Laplace noise on the level with 2**level about sqrt(epsilon * users) [ghazi23, sec. 1.1].

    The sides 2**-level then balance the noise, 2**level / (epsilon users) in EMD up to a logarithm
    (derivation: docs/proofs/coarse.md). `users` is a public guess, never taken from the data: a
    wrong one costs accuracy, not privacy.
    """

    users: int = 200
    name: ClassVar[str] = "coarse"

    def __post_init__(self) -> None:
        if self.users < 1:
            raise InvalidParameter(f"users, a public guess, must be at least 1, got {self.users}")

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> FlatLaplace:
        """Noise of scale l1 / epsilon, rounded up, on the level that fits."""
        level = coarse_level(epsilon, self.users, levels=grid.levels)
        return flat_laplace(epsilon, bound, level=level)

    def noise_scale(self, mechanism: FlatLaplace) -> Fraction:
        """That of every cell of the level."""
        return mechanism.scale

    def estimate(self, released: NoisyTree, grid: Grid) -> tuple[Tiles, ...]:
        """A non-negative division from the top down of the sums of the noisy cells.

        Setting negative cells to 0 instead would leave about users / 2 of noise that does not
        cancel.
        """
        (level,) = released.levels
        sums = [level.values / UNITS]
        for _ in range(level.level):
            sums.append(sums[-1].reshape(-1, 4).sum(axis=1))
        masses = non_negative(sums[::-1], released.groups)
        return whole_maps(masses, grid, level=level.level, groups=released.groups)


def coarse_level(epsilon: Fraction, users: int, *, levels: int) -> int:
    """The level whose side is nearest, in ratio, to 1 / sqrt(epsilon users); at most `levels`.

    >>> coarse_level(Fraction(1), 200, levels=8)
    4
    """
    wanted = round(math.log2(float(epsilon) * users) / 2)
    return min(max(wanted, 0), levels, FINEST_WHOLE)
