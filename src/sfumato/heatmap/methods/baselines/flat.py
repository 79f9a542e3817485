"""Noise on every cell of one level: Laplace, Laplace with only the top cells kept, and Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.protocol import NoiseAwareMethod, NoisyLevel, NoisyTree, check_level
from sfumato.heatmap.tiles import Tiles, dense_tiles
from sfumato.privacy import (
    UNITS,
    ApproxDP,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianLaw,
    LaplaceLaw,
    Noise,
    PureDP,
    laplace_scale,
)
from sfumato.privacy.accounting import Number, exact, rho_within, sqrt_above
from sfumato.records import CellSums
from sfumato.spaces import Grid

# 4**10 cells of noise take about twenty seconds to draw exactly; each further level four times
# that.
FINEST_WHOLE = 10


@dataclass(frozen=True, slots=True, init=False)
class FlatLaplace:
    """Add discrete Laplace noise to every cell of one level, of all groups.

    Privacy: PureDP(l1 / scale). Proof: docs/proofs/flat-laplace.md
    """

    level: int
    scale: Fraction
    name: ClassVar[str] = "flat-laplace/1"
    additive: ClassVar[bool] = True

    def __init__(self, level: int, scale: Number) -> None:
        object.__setattr__(self, "level", whole_level(level))
        object.__setattr__(self, "scale", LaplaceLaw(scale).scale)

    @property
    def law(self) -> LaplaceLaw:
        """The law of the noise on each cell."""
        return LaplaceLaw(self.scale)

    def cost(self, bound: Bound) -> PureDP:
        """The loss l1 / scale, exactly."""
        check_level(self.level, bound, by="a flat map")
        return DiscreteLaplace(self.scale).cost(bound)

    def draws(self, bound: Bound) -> int:
        """One for each cell; a level has at most as many as the finest."""
        return bound.size

    def restore(self, data: Any) -> NoisyTree:
        """What was sampled, from the JSON that a ledger keeps of it."""
        return NoisyTree.from_json(data)

    def sample(self, values: CellSums, noise: Noise) -> NoisyTree:
        """Every cell of the level with fresh noise."""
        return one_level(values, self.level, DiscreteLaplace(self.scale), noise)


@dataclass(frozen=True, slots=True, init=False)
class FlatGaussian:
    """Add discrete Gaussian noise to every cell of one level, of all groups.

    A unit of mass is 2**-20 of a user, so sigma is far beyond the 2**12 that `RoundedGaussian`
    reaches; the discrete Gaussian has no exact (epsilon, delta) in many dimensions, so the promise
    is checked through rho.

    Privacy: the promise, kept by ZCDP(l2**2 / (2 sigma**2)). Proof: docs/proofs/flat-gaussian.md
    """

    level: int
    sigma: Fraction
    promise: ApproxDP
    name: ClassVar[str] = "flat-gaussian/1"
    additive: ClassVar[bool] = True

    def __init__(self, level: int, sigma: Number, *, promise: ApproxDP) -> None:
        object.__setattr__(self, "level", whole_level(level))
        object.__setattr__(self, "sigma", GaussianLaw(sigma).sigma)
        object.__setattr__(self, "promise", promise)

    @classmethod
    def within(cls, promise: ApproxDP, bound: Bound, *, level: int) -> FlatGaussian:
        """The least noise whose rho implies the promise on sums with this bound."""
        rho = rho_within(promise.epsilon, promise.delta)
        if rho == 0:
            raise InvalidParameter(
                f"Gaussian noise needs epsilon and delta above 0, got {promise}; nothing was charged"
            )
        square = bound.required("l2_squared", by="flat Gaussian noise")
        return cls(level, sqrt_above(square / (2 * rho)), promise=promise)

    @property
    def law(self) -> GaussianLaw:
        """The law of the noise on each cell."""
        return GaussianLaw(self.sigma)

    def cost(self, bound: Bound) -> ApproxDP:
        """The promise, if rho = l2**2 / (2 sigma**2) implies it [canonne20, thm. 14, prop. 12]."""
        check_level(self.level, bound, by="a flat map")
        rho = DiscreteGaussian(self.sigma).cost(bound).rho
        if rho > rho_within(self.promise.epsilon, self.promise.delta):
            raise InvalidParameter(
                f"noise of sigma {float(self.sigma):.6g} units does not keep {self.promise}; "
                "nothing was charged"
            )
        return self.promise

    def draws(self, bound: Bound) -> int:
        """One for each cell."""
        return bound.size

    def restore(self, data: Any) -> NoisyTree:
        """What was sampled, from the JSON that a ledger keeps of it."""
        return NoisyTree.from_json(data)

    def sample(self, values: CellSums, noise: Noise) -> NoisyTree:
        """Every cell of the level with fresh noise."""
        return one_level(values, self.level, DiscreteGaussian(self.sigma), noise)


def one_level(
    sums: CellSums, level: int, mechanism: DiscreteLaplace | DiscreteGaussian, noise: Noise
) -> NoisyTree:
    """A tree of one whole level: what the mechanism makes of it."""
    codes = np.arange(sums.groups << 2 * level, dtype=np.int64)
    values = mechanism.sample(sums.of_cells(level, codes), noise)
    return NoisyTree(sums.groups, (NoisyLevel(level, codes, values),))


def whole_level(level: int) -> int:
    """The level itself, if every cell of it can be measured."""
    if not 0 <= level <= FINEST_WHOLE:
        raise InvalidParameter(
            f"a method that measures every cell reaches {FINEST_WHOLE} levels (1024 x 1024 cells), "
            f"got {level}; ask for fewer levels, or for the pyramid or privtree; nothing was charged"
        )
    return level


def in_users(units: npt.ArrayLike) -> FloatArray:
    """Released units as users, none below 0."""
    return np.maximum(np.asarray(units, dtype=np.float64), 0) / UNITS


def whole_maps(masses: FloatArray, grid: Grid, *, level: int, groups: int) -> tuple[Tiles, ...]:
    """One map for each group, from the masses of all cells of a level, in users."""
    return tuple(dense_tiles(grid, level, one) for one in masses.reshape(groups, -1))


@dataclass(frozen=True, slots=True)
class FlatMethod(NoiseAwareMethod[NoisyTree]):
    """The baseline: Laplace noise on every cell, negative cells set to 0 [ghazi23, sec. 4]."""

    name: ClassVar[str] = "laplace"

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> FlatLaplace:
        """Noise of scale l1 / epsilon, rounded up, on the finest level."""
        return flat_laplace(epsilon, bound, level=grid.levels)

    def noise_scale(self, mechanism: FlatLaplace) -> Fraction:
        """That of every cell."""
        return mechanism.scale

    def estimate(self, released: NoisyTree, grid: Grid) -> tuple[Tiles, ...]:
        """Negative counts set to 0."""
        (level,) = released.levels
        return whole_maps(in_users(level.values), grid, level=level.level, groups=released.groups)


@dataclass(frozen=True, slots=True)
class TopMethod(NoiseAwareMethod[NoisyTree]):
    """The baseline for sparse data: after the noise, only the top share of each map's cells is kept.

    At least one cell is [ghazi23, sec. 4]; the default is its figures' 0.01 %.
    """

    share: Fraction = Fraction(1, 10_000)
    name: ClassVar[str] = "top"

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", exact(self.share, name="share"))
        if not 0 < self.share <= 1:
            raise InvalidParameter(f"the share of cells kept must lie in (0, 1], got {self.share}")

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> FlatLaplace:
        """The noise of the plain baseline."""
        return flat_laplace(epsilon, bound, level=grid.levels)

    def noise_scale(self, mechanism: FlatLaplace) -> Fraction:
        """That of every cell."""
        return mechanism.scale

    def estimate(self, released: NoisyTree, grid: Grid) -> tuple[Tiles, ...]:
        """The largest noisy counts of each map; ties go to the lower code."""
        (level,) = released.levels
        masses = in_users(level.values).reshape(released.groups, -1)
        keep = max(1, round(self.share * masses.shape[1]))
        dropped = np.argsort(-masses, axis=1, kind="stable")[:, keep:]
        np.put_along_axis(masses, dropped, 0.0, axis=1)
        return whole_maps(masses, grid, level=level.level, groups=released.groups)


@dataclass(frozen=True, slots=True)
class GaussianMethod(NoiseAwareMethod[NoisyTree]):
    """Gaussian noise on every cell within (epsilon, delta), negative cells set to 0 [ghazi23, footnote 8]."""

    delta: Fraction = Fraction(1, 10**6)
    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", exact(self.delta, name="delta"))
        if not 0 < self.delta < 1:
            raise InvalidParameter(f"delta of Gaussian noise must lie in (0, 1), got {self.delta}")

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> FlatGaussian:
        """The least noise that keeps (epsilon, delta)."""
        level = whole_level(grid.levels)
        return FlatGaussian.within(ApproxDP(epsilon, self.delta), bound, level=level)

    def noise_scale(self, mechanism: FlatGaussian) -> Fraction:
        """The deviation of every cell."""
        return mechanism.sigma

    def estimate(self, released: NoisyTree, grid: Grid) -> tuple[Tiles, ...]:
        """Negative counts set to 0."""
        return FlatMethod().estimate(released, grid)


def flat_laplace(epsilon: Fraction, bound: Bound, *, level: int) -> FlatLaplace:
    """Laplace noise on a level that costs at most epsilon."""
    sensitivity = bound.required("l1", by="flat Laplace noise")
    return FlatLaplace(whole_level(level), laplace_scale(epsilon, sensitivity=sensitivity))
