"""The thesis' testers of privacy, corrected: decisions on counts, and how many samples each of them needs.

A tester accepts what is private and rejects what is far from it, each with probability 1 - error at
least [mcmillan18, def. 9.1]. All but `poissonized_test` take a fixed number of samples of each
input and use no randomness of their own. Proofs of the sizes: docs/explain/audit-limits.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import hockey_stick, max_divergence

Counts = npt.ArrayLike
Laws = tuple[npt.ArrayLike, npt.ArrayLike]

THIRD = 1 / 3
# Sums of a stated law may be off by this, relatively, before it counts as breaking its own claim.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a tester accepts; private inputs reach such a statistic with at most `p_value`."""

    accepted: bool
    statistic: float
    threshold: float
    p_value: float


def approx_samples(
    outputs: int, epsilon: float, *, proximity: float, error: float = THIRD, pairs: int = 1
) -> int:
    """How many samples of each input decide approximate DP up to proximity, with no information.

    s (sqrt(n - 1)/2 + sqrt(ln(2 m / error)/2) + sqrt(ln(1 / error)/2))**2 / proximity**2 with n
    outputs, m pairs, s = 1 + e**(2 epsilon): bias of the statistic, then its deviation where all
    pairs are private, in both orders, then where one of them is far. [mcmillan18, thm. 10.8] has 16
    n s / proximity**2.

    >>> approx_samples(2, 0.5, proximity=0.1), approx_samples(256, 0.5, proximity=0.1)
    (1780, 34784)
    """
    _require(outputs >= 1, "outputs must be at least 1", outputs)
    _require(epsilon >= 0, "epsilon must be at least 0", epsilon)
    _require_rates(proximity, error, pairs)
    tails = math.sqrt(math.log(2 * pairs / error) / 2) + math.sqrt(math.log(1 / error) / 2)
    return math.ceil(_spread(epsilon) * ((math.sqrt(outputs - 1) / 2 + tails) / proximity) ** 2)


def approx_test(
    first: Counts,
    second: Counts,
    *,
    outputs: int,
    epsilon: float,
    delta: float,
    error: float = THIRD,
    pairs: int = 1,
) -> Decision:
    """Whether counts of outputs are those of an (epsilon, delta)-DP pair: Algorithm 4 in both orders.

    Rejects when the larger of sum (x - e**epsilon y)+ and sum (y - e**epsilon x)+, over r samples
    of each, exceeds delta by its bias sqrt((n - 1) s / r)/2 and its deviation, which is McDiarmid's
    [boucheron13, thm. 6.2]: one sample moves the sums by 1/r or e**epsilon / r. Counts may leave
    out outputs not seen.
    """
    x, y = _counts(first), _counts(second)
    _require(x.shape == y.shape, "counts must be of the same outputs", (x.shape, y.shape))
    _require(x.sum() == y.sum(), "both inputs must have equally many samples", (x.sum(), y.sum()))
    spread = _spread(epsilon) / float(x.sum())
    bias = math.sqrt((outputs - 1) * spread) / 2
    statistic = excess(x, y, epsilon)
    beyond = max(0.0, statistic - delta - bias)
    threshold = delta + bias + math.sqrt(spread * math.log(2 * pairs / error) / 2)
    return Decision(
        statistic < threshold, statistic, threshold, min(1.0, 2 * math.exp(-2 * beyond**2 / spread))
    )


def excess(first: Counts, second: Counts, epsilon: float) -> float:
    """The delta at epsilon of two empirical laws, the worse of the two orders.

    >>> excess([3, 1], [1, 3], 0.0)
    0.5
    """
    x, y = _counts(first), _counts(second)
    p, q = x / x.sum(), y / y.sum()
    grown = math.exp(epsilon)
    return float(max(np.maximum(p - grown * q, 0).sum(), np.maximum(q - grown * p, 0).sum()))


def poissonized_samples(outputs: int, epsilon: float, *, proximity: float) -> float:
    """The mean of the numbers of samples with which `poissonized_test` has errors of at most 1/3.

    s (sqrt(n)/2 + sqrt(5) + sqrt(2))**2 / proximity**2, s = 1 + e**(2 epsilon): [mcmillan18, thm.
    10.8] with a bias of half a deviation, Cantelli's inequality and both orders.
    """
    _require(outputs >= 1, "outputs must be at least 1", outputs)
    _require_rates(proximity, THIRD, 1)
    tails = math.sqrt(5) + math.sqrt(2)
    return _spread(epsilon) * ((math.sqrt(outputs) / 2 + tails) / proximity) ** 2


def poissonized_test(
    first: Counts, second: Counts, *, rate: float, outputs: int, epsilon: float, delta: float
) -> Decision:
    """Algorithm 4 as the thesis means it, on two independent Poisson numbers of samples of mean rate."""
    x, y = _counts(first) / rate, _counts(second) / rate
    spread, grown = _spread(epsilon) / rate, math.exp(epsilon)
    statistic = float(max(np.maximum(x - grown * y, 0).sum(), np.maximum(y - grown * x, 0).sum()))
    bias = math.sqrt(outputs * spread) / 2
    threshold = delta + bias + math.sqrt(5 * spread)
    beyond = max(0.0, statistic - delta - bias)
    return Decision(
        statistic < threshold, statistic, threshold, min(1.0, 2 * spread / (spread + beyond**2))
    )


def identity_samples(
    outputs: int, distance: float, *, completeness: float = THIRD, soundness: float = THIRD
) -> int:
    """How many samples tell a stated law from every law at a total variation distance of it.

    About sqrt(n) / distance**2 times a constant between 3 and 10 at errors of 1/3: the least r with
    which the two inequalities of Cantelli at `identity_test` hold for every law.

    >>> identity_samples(10_000, 0.1)
    36105
    """
    _require(outputs >= 1, "outputs must be at least 1", outputs)
    _require(0 < distance <= 1, "distance must be above 0 and at most 1", distance)
    _require(0 < completeness < 1, "completeness must be an error between 0 and 1", completeness)
    _require(0 < soundness < 1, "soundness must be an error between 0 and 1", soundness)
    separation = 4 * distance**2
    growth, odds = 1 + math.sqrt(2 * separation), 1 / soundness - 1
    limit = math.sqrt(2 * (1 / completeness - 1)) / growth
    # The root of (v - limit)**2 = odds (2 + 4 v), v = (r - 1) separation / (growth sqrt(n)).
    root = limit + 2 * odds + math.sqrt(4 * odds * limit + 4 * odds**2 + 2 * odds)
    return math.ceil(math.sqrt(outputs) * growth * root / separation) + 1


def identity_test(counts: Counts, masses: npt.ArrayLike, *, error: float = THIRD) -> Decision:
    """Whether counts are those of a stated law; far laws are rejected from `identity_samples` on.

    The unbiased estimate of sum (p - q)**2 / w, w = (q + 1/n)/2, which is at least 4 TV(p, q)**2,
    against its exact deviation where p = q and Cantelli's inequality [boucheron13, ex. 2.3]. An
    identity tester after [acharya15]; weighing takes the place of mixing samples with uniform ones,
    and quarters their number.
    """
    x, q = _counts(counts), np.asarray(masses, dtype=np.float64)
    _require(
        x.shape == q.shape, "counts and masses must be of the same outputs", (x.shape, q.shape)
    )
    samples = float(x.sum())
    _require(samples >= 2, "an identity test takes at least 2 samples", samples)
    ordered = samples * (samples - 1)
    weight = (q + 1 / q.size) / 2
    statistic = float(((x * (x - 1) / ordered - 2 * q * x / samples + q**2) / weight).sum())
    trace = float((q**2 * (1 - 2 * q) / weight**2).sum() + (q**2 / weight).sum() ** 2)
    variance = max(0.0, 2 * trace / ordered)
    threshold = math.sqrt(variance * (1 / error - 1))
    if bool((x[q == 0] > 0).any()):  # impossible under the stated law
        return Decision(False, math.inf, threshold, 0.0)
    beyond = max(0.0, statistic)
    p_value = variance / (variance + beyond**2) if beyond > 0 else 1.0
    return Decision(statistic <= threshold + ROUNDING, statistic, threshold, p_value)


def specified_approx_samples(
    outputs: int, epsilon: float, *, proximity: float, error: float = THIRD, pairs: int = 1
) -> int:
    """How many samples of each input decide approximate DP up to proximity, when the laws are stated.

    `identity_samples` at a distance of proximity / (1 + e**epsilon), not at proximity as printed
    [mcmillan18, prop. 10.10]: sublinear in the number of outputs.
    """
    _require_rates(proximity, error, pairs)
    distance = min(1.0, proximity / (1 + math.exp(epsilon)))
    return identity_samples(outputs, distance, completeness=_each(error, pairs), soundness=error)


def specified_approx_test(
    first: Counts,
    second: Counts,
    *,
    laws: Laws,
    epsilon: float,
    delta: float,
    error: float = THIRD,
    pairs: int = 1,
) -> Decision:
    """Whether an algorithm is as stated, and what is stated is (epsilon, delta)-DP: Algorithm 5."""
    if not laws_are_private(laws, epsilon=epsilon, delta=delta):
        return Decision(False, math.inf, delta, 0.0)
    share = _each(error, pairs)
    return _worse(
        *(identity_test(*both, error=share) for both in zip((first, second), laws, strict=True))
    )


def specified_pure_samples(
    outputs: int, least_mass: float, *, proximity: float, error: float = THIRD, pairs: int = 1
) -> int:
    """How many samples of each input decide pure DP up to proximity, when the laws are stated.

    max(ln(4 n m / error) / h(a), ln(1 / error) / g(a)) / b with a = proximity / 4, h(a) = 1 - e**-a
    (1 + a) and g(a) = e**-a (a - 1 + e**-a), both about a**2 / 2, by Chernoff; b is the least
    stated mass. Printed: ln(n) / (a b)**2 for a proximity of 10 a [mcmillan18, thm. 10.11], where
    12 a is what the proof gives.

    >>> specified_pure_samples(2, 0.2689, proximity=0.4)
    2526
    """
    _require(outputs >= 1, "outputs must be at least 1", outputs)
    _require(0 < least_mass <= 1, "least_mass must be above 0 and at most 1", least_mass)
    _require_rates(proximity, error, pairs)
    step = proximity / 4
    kept = -math.expm1(-step) - step * math.exp(-step)
    lost = math.exp(-step) * (step + math.expm1(-step))
    needed = max(math.log(4 * outputs * pairs / error) / kept, math.log(1 / error) / lost)
    return math.ceil(needed / least_mass)


def specified_pure_test(
    first: Counts,
    second: Counts,
    *,
    laws: Laws,
    epsilon: float,
    proximity: float,
) -> Decision:
    """Whether an algorithm is as stated, and what is stated is epsilon-DP: Algorithm 6.

    Accepts when every share of an output is within a factor e**(proximity / 4) of its stated mass.
    All outputs must have a stated mass above 0, and no others be possible: what is rarer than 1/r
    goes unseen.
    """
    if not laws_are_private(laws, epsilon=epsilon, delta=0.0):
        return Decision(False, math.inf, proximity / 4, 0.0)
    return _worse(
        *(_ratio_test(*both, proximity / 4) for both in zip((first, second), laws, strict=True))
    )


def laws_are_private(laws: Laws, *, epsilon: float, delta: float) -> bool:
    """Whether two stated laws keep (epsilon, delta) in both orders, up to rounding."""
    p, q = laws
    if delta == 0:
        worst = max(float(max_divergence(p, q)), float(max_divergence(q, p)))
        return worst <= epsilon + ROUNDING
    worst = max(
        float(hockey_stick(p, q, epsilon=epsilon)), float(hockey_stick(q, p, epsilon=epsilon))
    )
    return worst <= delta + ROUNDING


@dataclass(frozen=True, slots=True)
class Repetition:
    """A test repeated for a majority: how often, and the error and samples (of each input) of one of them."""

    repeats: int
    error: float
    samples: int

    @property
    def total(self) -> int:
        """Samples of each input, all repetitions together."""
        return self.repeats * self.samples


def majority_error(repeats: int, error: float) -> float:
    """The chance that most of an odd number of decisions are wrong, each with probability error.

    >>> round(majority_error(3, 1 / 3), 9)
    0.259259259
    """
    _require(repeats >= 1 and repeats % 2 == 1, "repeats must be odd", repeats)
    return float(stats.binom.sf(repeats // 2, repeats, error))


def amplified(samples: Callable[[float], int], error: float) -> Repetition:
    """The cheapest way to a wanted error: one test of that error, or a majority of worse ones.

    `samples` tells the samples for an error of one test. Exact binomial tails; [mcmillan18, alg. 3]
    takes the logarithm of 1/error repetitions at 1/3, which is too few.
    """
    _require(0 < error < 1 / 2, "error must be between 0 and 1/2", error)
    best = Repetition(1, error, samples(error))
    for repeats in range(3, 202, 2):
        single = _single_error(repeats, error)
        trial = Repetition(repeats, single, samples(single))
        if trial.total < best.total:
            best = trial
        if single > THIRD:
            break
    return best


@dataclass(frozen=True, slots=True)
class RandomPlan:
    """How to decide a claim about random data: tests of so many random pairs, of which some may reject.

    `inner` is the test of one pair; `chance` bounds that of more rejections than allowed if
    private.
    """

    pairs: int
    allowed: int
    inner: Repetition
    chance: float

    @property
    def total(self) -> int:
        """Samples of all pairs, both inputs."""
        return 2 * self.pairs * self.inner.total


def random_plan(
    samples: Callable[[float], int], *, gamma: float, slack: float, error: float = THIRD
) -> RandomPlan:
    """The cheapest plan that accepts a gamma share of bad pairs, and rejects a share of gamma + slack.

    Algorithm 3 [mcmillan18, thm. 10.3] with exact binomial tails: a test of error e rejects a
    random pair with at most gamma + (1 - gamma) e if private, and with at least (1 - e)(gamma +
    slack) if far.
    """
    _require(0 <= gamma < 1, "gamma must be at least 0 and below 1", gamma)
    _require(0 < slack <= 1 - gamma, "slack must be above 0 and at most 1 - gamma", slack)
    _require(0 < error < 1 / 2, "error must be between 0 and 1/2", error)
    plans = []
    for share in (0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.02, 0.01):
        wrong = min(share * slack, 0.4)
        low, high = gamma + (1 - gamma) * wrong, (1 - wrong) * (gamma + slack)
        if high > low:
            pairs, allowed = _binomial_test(low, high, error)
            chance = float(stats.binom.sf(allowed, pairs, low))
            plans.append(RandomPlan(pairs, allowed, amplified(samples, wrong), chance))
    return min(plans, key=lambda plan: plan.total)


def _binomial_test(low: float, high: float, error: float) -> tuple[int, int]:
    """Trials and the most hits that speak for low: either error is at most that given."""

    def holds(trials: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        found = stats.binom.cdf(stats.binom.ppf(1 - error, trials, low), trials, high) <= error
        return np.asarray(found, dtype=np.bool_)

    begin = 1
    while True:
        # Not monotone, as trials are whole; each candidate is checked, so the first that holds is
        # valid.
        some = np.unique(np.linspace(begin, 4 * begin, min(4096, 3 * begin + 1)).astype(np.int64))
        if (found := holds(some)).any():
            trials = int(some[int(np.argmax(found))])
            return trials, int(stats.binom.ppf(1 - error, trials, low))
        begin *= 4


def _single_error(repeats: int, error: float) -> float:
    """The largest error of one test with which most of them err with at most error: Clopper and Pearson."""
    # P(Bin(k, e) > k/2) is the law of a beta variable at e; a hair less, so that rounding stays
    # below.
    middle = (repeats + 1) / 2
    return float(stats.beta.ppf(error, middle, middle)) * (1 - 1e-9)


def _ratio_test(counts: Counts, masses: npt.ArrayLike, step: float) -> Decision:
    x, q = _counts(counts), np.asarray(masses, dtype=np.float64)
    _require(bool((q > 0).all()), "every output must have a stated mass above 0", float(q.min()))
    expected = q * x.sum()
    ratio = x / expected
    with np.errstate(divide="ignore"):
        statistic = float(np.abs(np.log(ratio)).max())
        terms = (
            np.where(ratio > 0, ratio * np.log(np.where(ratio > 0, ratio, 1.0)), 0.0) - ratio + 1
        )
    p_value = min(1.0, 2 * q.size * math.exp(-float((expected * terms).max())))
    return Decision(statistic <= step, statistic, step, p_value)


def _worse(first: Decision, second: Decision) -> Decision:
    """Both must accept; the less likely of the two speaks, its p-value doubled for being chosen."""
    worse = min(first, second, key=lambda one: (one.accepted, one.p_value))
    return Decision(worse.accepted, worse.statistic, worse.threshold, min(1.0, 2 * worse.p_value))


def _each(error: float, pairs: int) -> float:
    """The error that each of two independent tests of each pair may have."""
    return -math.expm1(math.log1p(-error) / (2 * pairs))


def _spread(epsilon: float) -> float:
    return 1 + math.exp(2 * epsilon)


def _counts(counts: Counts) -> FloatArray:
    found = np.asarray(counts, dtype=np.float64)
    rule = "counts must be a list of whole numbers, at least 0 and not all 0"
    _require(found.ndim == 1 and bool((found >= 0).all()) and float(found.sum()) > 0, rule, counts)
    return found


def _require_rates(proximity: float, error: float, pairs: int) -> None:
    _require(0 < proximity < math.inf, "proximity must be above 0 and finite", proximity)
    _require(0 < error < 1 / 2, "error must be between 0 and 1/2", error)
    _require(pairs >= 1, "pairs must be at least 1", pairs)


def _require(holds: bool, rule: str, value: object) -> None:
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}; nothing was tested")
