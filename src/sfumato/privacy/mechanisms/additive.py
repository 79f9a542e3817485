"""Mechanisms: small frozen values that know their parameters, what they cost and how they sample.

Each is named with a version that a ledger keeps; its meaning never changes once released.
Parameters that are not doubles are rounded up, towards more noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.calibration import gaussian_keeps, gaussian_sigma, laplace_scale
from sfumato.privacy.accounting.losses import ZCDP, ApproxDP, Loss, PureDP
from sfumato.privacy.accounting.neighbors import ReplaceUser
from sfumato.privacy.accounting.numbers import Number, exact, exp_below, plain, sqrt_above
from sfumato.privacy.ledger.guarded import LARGEST, Bound
from sfumato.privacy.noise.laws import GaussianLaw, LaplaceLaw, RoundedGaussianLaw
from sfumato.privacy.noise.protocol import Noise

T_contra = TypeVar("T_contra", contravariant=True)
U_co = TypeVar("U_co", covariant=True)


class Mechanism(Protocol[T_contra, U_co]):
    """A randomised map from private to released values, integers on both sides: vectors, or sparse cells."""

    name: ClassVar[str]
    additive: ClassVar[
        bool
    ]  # whether the output is on the lattice of the data, rather than a category or an index

    def cost(self, bound: Bound) -> Loss:
        """What one release costs when the data moves within the bound."""

    def draws(self, bound: Bound) -> int:
        """How many numbers one release draws from the noise at most: each adds to a stream's distance."""

    def sample(self, values: T_contra, noise: Noise) -> U_co:
        """One release of these values."""


def _saturated(values: IntArray, noise: IntArray) -> IntArray:
    """The sum x + z clipped to the range of guarded values: a function of the sum alone, so it costs nothing.

    z is clipped to twice that range first, so that nothing wraps; where that changes z, the sum is
    beyond the range on either way.
    """
    return np.clip(values + np.clip(noise, -2 * LARGEST, 2 * LARGEST), -LARGEST, LARGEST)


def _pure(loss: PureDP) -> Fraction:
    if not isinstance(loss, PureDP):
        raise InvalidParameter(f"this noise costs a pure epsilon, got {loss}")
    return loss.epsilon


def _sigma_within(loss: ZCDP, bound: Bound, *, by: str) -> Fraction:
    if not isinstance(loss, ZCDP):
        raise InvalidParameter(f"{by} costs rho, got {loss}")
    if loss.rho == 0:
        raise InvalidParameter(f"{by} cannot cost nothing; give a rho above 0")
    return sqrt_above(bound.required("l2_squared", by=by) / (2 * loss.rho))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace:
    """Add integer noise z with P(z) proportional to exp(-|z| / scale) to every entry.

    Privacy: PureDP(l1 / scale). Proof: docs/proofs/discrete-laplace.md
    """

    scale: Fraction
    name: ClassVar[str] = "discrete-laplace/1"
    additive: ClassVar[bool] = True

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", LaplaceLaw(scale).scale)

    @classmethod
    def within(cls, loss: PureDP, bound: Bound) -> DiscreteLaplace:
        """The least noise that costs at most this loss on data with this bound.

        >>> DiscreteLaplace.within(PureDP("1/2"), Bound(ReplaceUser(), 4, l1=2)).scale
        Fraction(4, 1)
        """
        return cls(
            laplace_scale(
                _pure(loss), sensitivity=bound.required("l1", by="discrete Laplace noise")
            )
        )

    @property
    def law(self) -> LaplaceLaw:
        """The law of the noise on each entry."""
        return LaplaceLaw(self.scale)

    def cost(self, bound: Bound) -> PureDP:
        """l1 / scale, exactly."""
        return PureDP(bound.required("l1", by="discrete Laplace noise") / self.scale)

    def draws(self, bound: Bound) -> int:
        """One for each entry."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """The values with fresh noise on each."""
        return _saturated(values, noise.laplace(self.scale, values.size))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian:
    """Add integer noise z with P(z) proportional to exp(-z**2 / (2 sigma**2)) to every entry.

    Privacy: ZCDP(l2**2 / (2 sigma**2)). Proof: docs/proofs/discrete-gaussian.md
    """

    sigma: Fraction
    name: ClassVar[str] = "discrete-gaussian/1"
    additive: ClassVar[bool] = True

    def __init__(self, sigma: Number) -> None:
        object.__setattr__(self, "sigma", GaussianLaw(sigma).sigma)

    @classmethod
    def within(cls, loss: ZCDP, bound: Bound) -> DiscreteGaussian:
        """The least noise that costs at most this loss on data with this bound."""
        return cls(_sigma_within(loss, bound, by="discrete Gaussian noise"))

    @property
    def law(self) -> GaussianLaw:
        """The law of the noise on each entry."""
        return GaussianLaw(self.sigma)

    def cost(self, bound: Bound) -> ZCDP:
        """l2**2 / (2 sigma**2), exactly [canonne20, thm. 14]."""
        return ZCDP(
            bound.required("l2_squared", by="discrete Gaussian noise") / (2 * self.sigma**2)
        )

    def draws(self, bound: Bound) -> int:
        """One for each entry."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """The values with fresh noise on each."""
        return _saturated(values, noise.gaussian(self.sigma, values.size))


@dataclass(frozen=True, slots=True, init=False)
class RoundedGaussian:
    """Add a continuous Gaussian of deviation sigma to every entry and round to the lattice.

    Rounding is post-processing, so every analysis of the continuous mechanism holds as it stands:
    the exact (epsilon, delta) of `gaussian_sigma`, and zCDP for ledgers.

    A release costs rho, which adds up best over many. With a `promise` it costs that (epsilon,
    delta), the tightest statement for a single release; a promise the noise does not keep is
    refused.

    Privacy: ZCDP(l2**2 / (2 sigma**2)) or the promise. Proof: docs/proofs/rounded-gaussian.md
    """

    sigma: Fraction
    promise: ApproxDP | None
    name: ClassVar[str] = "rounded-gaussian/1"
    additive: ClassVar[bool] = True

    def __init__(self, sigma: Number, promise: ApproxDP | None = None) -> None:
        object.__setattr__(self, "sigma", RoundedGaussianLaw(sigma).sigma)
        object.__setattr__(self, "promise", promise)

    @classmethod
    def within(cls, loss: ZCDP | ApproxDP, bound: Bound) -> RoundedGaussian:
        """The least noise that costs at most this loss on data with this bound.

        >>> RoundedGaussian.within(ApproxDP(1, "1e-6"), Bound(ReplaceUser(), 4, l1=2, linf=1)).promise
        ApproxDP(epsilon=Fraction(1, 1), delta=Fraction(1, 1000000))
        """
        match loss:
            case ZCDP():
                return cls(_sigma_within(loss, bound, by="rounded Gaussian noise"))
            case ApproxDP(epsilon, delta):
                return cls(gaussian_sigma(epsilon, delta, sensitivity=cls._moved(bound)), loss)
            case _:
                raise InvalidParameter(
                    f"Gaussian noise costs rho, or epsilon and delta, not {loss}"
                )

    @staticmethod
    def _moved(bound: Bound) -> Fraction:
        return sqrt_above(bound.required("l2_squared", by="rounded Gaussian noise"))

    @property
    def law(self) -> RoundedGaussianLaw:
        """The law of the noise on each entry."""
        return RoundedGaussianLaw(self.sigma)

    def cost(self, bound: Bound) -> ZCDP | ApproxDP:
        """l2**2 / (2 sigma**2), exactly [bun16, prop. 1.6]; or the promise, checked [balle18, thm. 8]."""
        square = bound.required("l2_squared", by="rounded Gaussian noise")
        if self.promise is None:
            return ZCDP(square / (2 * self.sigma**2))
        if not gaussian_keeps(
            self.promise, sigma=float(self.sigma), sensitivity=self._moved(bound)
        ):
            raise InvalidParameter(
                f"noise of sigma {plain(self.sigma)} does not keep {self.promise} for a change of "
                f"{plain(self._moved(bound))}; nothing was charged"
            )
        return self.promise

    def draws(self, bound: Bound) -> int:
        """One for each entry."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """The values with fresh noise on each."""
        return _saturated(values, noise.rounded_gaussian(self.sigma, values.size))


@dataclass(frozen=True, slots=True, init=False)
class RandomisedResponse:
    """Each entry, a category 0..categories-1, is told truly or replaced by one of the others [warner65].

    The truth and each other category have integer weights whose ratio is e**epsilon rounded down to
    64 bits, so its logarithm is at most epsilon. Entries outside the categories become 0 first.

    Privacy: PureDP(entries * epsilon) for a replaced user. Proof:
    docs/proofs/randomised-response.md
    """

    epsilon: Fraction
    categories: int
    name: ClassVar[str] = "randomised-response/1"
    additive: ClassVar[bool] = False

    def __init__(self, epsilon: Number, categories: int = 2) -> None:
        value = exact(epsilon, name="epsilon")
        if not 0 < value <= 128:
            raise InvalidParameter(
                f"epsilon of randomised response must lie in (0, 128], got {epsilon}"
            )
        if not 2 <= categories <= 2**32:
            raise InvalidParameter(
                f"randomised response needs 2 to 2**32 categories, got {categories}"
            )
        object.__setattr__(self, "epsilon", value)
        object.__setattr__(self, "categories", categories)

    @property
    def weights(self) -> tuple[int, int]:
        """Integer weights of the truth and of each other category; ln(truth / other) <= epsilon."""
        ratio = max(Fraction(1), exp_below(self.epsilon))  # rounded down: less truth, more noise
        return ratio.numerator, ratio.denominator

    @property
    def law(self) -> tuple[Fraction, Fraction]:
        """Exact probabilities of telling the truth and of telling one particular other category."""
        truth, other = self.weights
        total = truth + (self.categories - 1) * other
        return Fraction(truth, total), Fraction(other, total)

    def cost(self, bound: Bound) -> PureDP:
        """Epsilon for each entry of a user; how many answers there are is public, so users are replaced."""
        if not isinstance(bound.neighbors, ReplaceUser):
            raise InvalidParameter(
                "randomised response shows how many answers there are, so its neighbors are ReplaceUser, "
                f"got: {bound.neighbors}; nothing was charged"
            )
        return PureDP(bound.entries * self.epsilon)

    def draws(self, bound: Bound) -> int:
        """One for each entry."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """One answer for every entry."""
        truth, other = self.weights
        inside = np.where((values >= 0) & (values < self.categories), values, 0)
        picks = noise.uniform(truth + (self.categories - 1) * other, values.size)
        # Step 0 is the truth; steps 1..categories-1 walk round to the others.
        steps = np.array(
            [0 if u < truth else 1 + (u - truth) // other for u in picks], dtype=np.int64
        )
        return (inside + steps) % self.categories

    def proportions(self, answers: IntArray) -> tuple[FloatArray, FloatArray]:
        """Unbiased estimates of the true proportions and of the variance of each [kairouzdiscrete16].

        With f the share of an answer and p, q its true and false probabilities: (f - q) / (p - q),
        of variance f (1 - f) / ((n - 1) (p - q)**2), itself unbiased for people drawn at random
        from a population. Estimates may be negative; clipping them would bias them.
        """
        n = answers.size
        if n < 2:
            raise InvalidParameter(
                f"proportions and their variance need at least 2 answers, got {n}"
            )
        truth, other = self.law
        gap = float(truth - other)
        if gap == 0:
            raise InvalidParameter(
                f"answers at epsilon {plain(self.epsilon)} say nothing about proportions"
            )
        share = np.bincount(answers, minlength=self.categories) / n
        variance: FloatArray = share * (1 - share) / ((n - 1) * gap**2)
        return (share - float(other)) / gap, variance


@dataclass(frozen=True, slots=True, init=False)
class PermuteAndFlip:
    """Choose a large entry: visit all in random order, take one with probability exp(-gap / scale).

    `gap` is its distance to the largest entry. The exponential mechanism is the same walk with
    returns to where it has been; leaving those out is never worse and needs at most `size` coins
    [mckenna20, thm. 2].

    Privacy: PureDP(2 linf / scale). Proof: docs/proofs/permute-and-flip.md
    """

    scale: Fraction
    name: ClassVar[str] = "permute-and-flip/1"
    additive: ClassVar[bool] = False

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", LaplaceLaw(scale).scale)

    @classmethod
    def within(cls, loss: PureDP, bound: Bound) -> PermuteAndFlip:
        """The sharpest choice that costs at most this loss on data with this bound."""
        return cls(
            laplace_scale(
                _pure(loss), sensitivity=2 * bound.required("linf", by="permute-and-flip")
            )
        )

    def cost(self, bound: Bound) -> PureDP:
        """2 linf / scale, exactly."""
        return PureDP(2 * bound.required("linf", by="permute-and-flip") / self.scale)

    def draws(self, bound: Bound) -> int:
        """One for each entry; the coins are exact."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """The index chosen, as an array of one."""
        largest, waiting = int(values.max()), list(range(values.size))
        while True:
            # A step of a Fisher-Yates shuffle, made only when it is needed.
            at = noise.uniform(len(waiting), 1)[0]
            waiting[at], waiting[-1] = waiting[-1], waiting[at]
            chosen = waiting.pop()
            if _accepts(Fraction(largest - int(values[chosen])) / self.scale, noise):
                return np.array([chosen], dtype=np.int64)

    def law(self, scores: npt.ArrayLike) -> FloatArray:
        """The probability of each index: p_i times the integral over [0, 1] of the product of 1 - p_j t.

        The time at which index i is visited is uniform in [0, 1]; before it, j was visited and left
        with probability p_j t. Exact by Gauss-Legendre quadrature: the integrand is a polynomial of
        degree size - 1.
        """
        values = np.asarray(scores, dtype=np.float64)
        take = np.exp(-(values.max() - values) / float(self.scale))
        nodes, weights = np.polynomial.legendre.leggauss(values.size // 2 + 1)
        left = 1 - np.outer((nodes + 1) / 2, take)
        others = np.stack(
            [np.delete(left, i, axis=1).prod(axis=1) for i in range(values.size)], axis=1
        )
        return np.asarray(take * (weights / 2 @ others))

    def shortfall(self, size: int, failure: float) -> float:
        """How far below the best the choice is, except with probability `failure`: scale ln(size / failure).

        This is Lemma 2.10 of [mcmillan18] for the exponential mechanism, in terms of scale = 2 linf
        / epsilon; the walk without returns is never worse.
        """
        if not 0 < failure <= 1:
            raise InvalidParameter(f"failure must lie in (0, 1], got {failure}")
        return float(self.scale) * float(np.log(size / failure))


def _accepts(power: Fraction, noise: Noise) -> bool:
    """True with probability exactly exp(-power), by coins of rational probability [canonne20, alg. 1]."""
    while power > 1:
        if not _accepts(Fraction(1), noise):
            return False
        power -= 1
    count = 1
    # The first count at which a coin of probability power / count fails is odd with probability
    # exp(-power).
    while noise.uniform(power.denominator * count, 1)[0] < power.numerator:
        count += 1
    return count % 2 == 1
