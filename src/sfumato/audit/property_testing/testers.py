"""The thesis' testers of privacy, corrected: decisions on counts, and how many samples each of them needs.

A tester accepts what is private and rejects what is far from it, each with probability 1 - error at
least [mcmillan18, def. 9.1]. All take a fixed number of samples of each input and use no randomness
of their own. Proofs of the sizes: docs/explain/audit-limits.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
    """Whether a tester accepts; private inputs reach such a statistic with at most `p_value`.

    Attributes:
        accepted: Whether the claim is accepted.
        statistic: What was computed.
        threshold: Above which it rejects.
        p_value: Of the statistic, if private.
    """

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

    Args:
        outputs: How many there are.
        epsilon: At least 0.
        proximity: Above 0.
        error: Between 0 and 1/2.
        pairs: Tested at once.

    Returns:
        Samples of each input.

    Raises:
        InvalidParameter: If a number is out of range.

    >>> approx_samples(2, 0.5, proximity=0.1), approx_samples(256, 0.5, proximity=0.1)
    (1780, 34784)
    """
    require(outputs >= 1, "outputs must be at least 1", outputs)
    require(epsilon >= 0, "epsilon must be at least 0", epsilon)
    _require_rates(proximity, error, pairs)
    tails = math.sqrt(math.log(2 * pairs / error) / 2) + math.sqrt(math.log(1 / error) / 2)
    return math.ceil(spread_of(epsilon) * ((math.sqrt(outputs - 1) / 2 + tails) / proximity) ** 2)


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

    Args:
        first: Counts of outputs on one input.
        second: Counts of the same outputs on the other.
        outputs: How many there are.
        epsilon: At least 0.
        delta: From 0 to below 1.
        error: Between 0 and 1/2.
        pairs: Tested at once.

    Returns:
        Whether it accepts.

    Raises:
        InvalidParameter: If the counts do not go together.
    """
    x, y = counts_of(first), counts_of(second)
    require(x.shape == y.shape, "counts must be of the same outputs", (x.shape, y.shape))
    require(x.sum() == y.sum(), "both inputs must have equally many samples", (x.sum(), y.sum()))
    spread = spread_of(epsilon) / float(x.sum())
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
    x, y = counts_of(first), counts_of(second)
    p, q = x / x.sum(), y / y.sum()
    grown = math.exp(epsilon)
    return float(max(np.maximum(p - grown * q, 0).sum(), np.maximum(q - grown * p, 0).sum()))


def identity_samples(
    outputs: int, distance: float, *, completeness: float = THIRD, soundness: float = THIRD
) -> int:
    """How many samples tell a stated law from every law at a total variation distance of it.

    About sqrt(n) / distance**2 times a constant between 3 and 10 at errors of 1/3: the least r with
    which the two inequalities of Cantelli at `identity_test` hold for every law.

    Args:
        outputs: How many there are.
        distance: In total variation, above 0 and at most 1.
        completeness: The chance to reject the stated law.
        soundness: The chance to accept a far law.

    Returns:
        How many samples.

    Raises:
        InvalidParameter: If a number is out of range.

    >>> identity_samples(10_000, 0.1)
    36105
    """
    require(outputs >= 1, "outputs must be at least 1", outputs)
    require(0 < distance <= 1, "distance must be above 0 and at most 1", distance)
    require(0 < completeness < 1, "completeness must be an error between 0 and 1", completeness)
    require(0 < soundness < 1, "soundness must be an error between 0 and 1", soundness)
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

    Args:
        counts: Of all outputs.
        masses: Stated, of the same outputs.
        error: Between 0 and 1.

    Returns:
        Whether it accepts.

    Raises:
        InvalidParameter: If counts and masses do not go together.
    """
    x, q = counts_of(counts), np.asarray(masses, dtype=np.float64)
    require(x.shape == q.shape, "counts and masses must be of the same outputs", (x.shape, q.shape))
    samples = float(x.sum())
    require(samples >= 2, "an identity test takes at least 2 samples", samples)
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
    outputs: int, min_mass: float, *, proximity: float, error: float = THIRD, pairs: int = 1
) -> int:
    """How many samples of each input decide pure DP up to proximity, when the laws are stated.

    max(ln(4 n m / error) / h(a), ln(1 / error) / g(a)) / b with a = proximity / 4, h(a) = 1 - e**-a
    (1 + a) and g(a) = e**-a (a - 1 + e**-a), both about a**2 / 2, by Chernoff; b is the least
    stated mass. Printed: ln(n) / (a b)**2 for a proximity of 10 a [mcmillan18, thm. 10.11], where
    12 a is what the proof gives.

    Args:
        outputs: How many there are.
        min_mass: The least stated mass, above 0.
        proximity: In epsilon, above 0.
        error: Between 0 and 1/2.
        pairs: Tested at once.

    Returns:
        Samples of each input.

    Raises:
        InvalidParameter: If a number is out of range.

    >>> specified_pure_samples(2, 0.2689, proximity=0.4)
    2526
    """
    require(outputs >= 1, "outputs must be at least 1", outputs)
    require(0 < min_mass <= 1, "min_mass must be above 0 and at most 1", min_mass)
    _require_rates(proximity, error, pairs)
    step = proximity / 4
    kept = -math.expm1(-step) - step * math.exp(-step)
    lost = math.exp(-step) * (step + math.expm1(-step))
    required = max(math.log(4 * outputs * pairs / error) / kept, math.log(1 / error) / lost)
    return math.ceil(required / min_mass)


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

    Args:
        first: Counts of outputs on one input.
        second: Counts on the other.
        laws: Stated masses on both inputs, above 0.
        epsilon: At least 0.
        proximity: In epsilon, above 0.

    Returns:
        Whether it accepts.
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


def _ratio_test(counts: Counts, masses: npt.ArrayLike, step: float) -> Decision:
    x, q = counts_of(counts), np.asarray(masses, dtype=np.float64)
    require(bool((q > 0).all()), "every output must have a stated mass above 0", float(q.min()))
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


def spread_of(epsilon: float) -> float:
    """1 + e**(2 epsilon): how much larger the variance of the statistic is than that of one share.

    Args:
        epsilon: At least 0.

    Returns:
        At least 2.
    """
    return 1 + math.exp(2 * epsilon)


def counts_of(counts: Counts) -> FloatArray:
    """Counts of outputs as numbers, checked.

    Args:
        counts: A list of whole numbers, not all 0.

    Returns:
        The same as doubles.

    Raises:
        InvalidParameter: If they are no counts.
    """
    found = np.asarray(counts, dtype=np.float64)
    rule = "counts must be a list of whole numbers, at least 0 and not all 0"
    require(found.ndim == 1 and bool((found >= 0).all()) and float(found.sum()) > 0, rule, counts)
    return found


def _require_rates(proximity: float, error: float, pairs: int) -> None:
    require(0 < proximity < math.inf, "proximity must be above 0 and finite", proximity)
    require(0 < error < 1 / 2, "error must be between 0 and 1/2", error)
    require(pairs >= 1, "pairs must be at least 1", pairs)


def require(holds: bool, rule: str, value: object) -> None:
    """Refuse parameters that no test can be made of."""
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}; nothing was tested")
