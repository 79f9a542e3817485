"""What black-box access can decide, before anyone starts: runs that any test needs, and runs that suffice.

Table 9.1 of the thesis as functions, corrected. Verifying is as hard as distinguishing: whatever
decides a claim with r runs tells the inputs of every algorithm that is far from it apart with r
runs [mcmillan18, thm. 10.2]. Why, and what cannot be verified at all: docs/explain/audit-limits.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray
from sfumato.audit.claims import (
    Claimed,
    above,
    decidable_statement,
    require_countable,
    require_verifiable,
    traits_of,
)
from sfumato.audit.property_testing.repetition import amplified, random_plan
from sfumato.audit.property_testing.testers import (
    THIRD,
    approx_samples,
    specified_approx_samples,
    specified_pure_samples,
)
from sfumato.errors import InvalidParameter, NotComparable, Unverifiable
from sfumato.privacy.accounting import least_samples, renyi_divergence, total_variation

Laws = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, slots=True)
class RequiredRuns:
    """How often a box must be run to decide a claim up to a proximity.

    Attributes:
        min_runs: No test whatever decides it with fewer runs of each input.
        enough_runs: Ours does with so many runs of each input.
        pairs: Pairs of inputs that are tested.
        reasons: The theorems behind the two numbers.
    """

    min_runs: int
    enough_runs: int
    pairs: int
    reasons: tuple[str, ...]

    @property
    def total(self) -> int:
        """Runs that are enough, of all pairs and both inputs."""
        return 2 * self.pairs * self.enough_runs


def queries_without_information(
    loss: Claimed, *, outputs: int, proximity: float, weight: float = 1.0, error: float = THIRD
) -> RequiredRuns:
    """How many runs decide a claim about a box of which nothing but the number of outputs is known.

    Raises `Unverifiable` where no number does. The proximity is in delta and, over the weight, in
    gamma.

    Args:
        loss: What is claimed.
        outputs: How many there are, at least 2.
        proximity: Above 0.
        weight: How much of a proximity in gamma counts as one in delta.
        error: Between 0 and 1/2.

    Returns:
        How often the box must be run.

    Raises:
        Unverifiable: If no number of runs decides it.
        NotComparable: If no test here does.

    >>> from sfumato.privacy import ApproxDP
    >>> queries_without_information(ApproxDP(1, "1e-3"), outputs=16, proximity=0.01).enough_runs
    1101860
    """
    require_verifiable(loss)
    require_countable(loss)
    stated = decidable_statement(loss)
    e = stated.epsilon
    min_runs = max(
        two_point_bound(e, stated.delta, proximity=proximity, error=error),
        math.ceil(low_frequency_bound(outputs, e, stated.delta, proximity=proximity)),
    )
    reasons = ("at least: thm. 10.7, corrected", "enough: thm. 10.8, algorithm 4, both orders")

    def samples(one: float) -> int:
        return approx_samples(outputs, e, proximity=proximity, error=one)

    return _required(loss, samples, (min_runs, reasons), slack=proximity / weight, error=error)


def queries_with_specification(
    loss: Claimed,
    *,
    outputs: int,
    proximity: float,
    min_mass: float | None = None,
    weight: float = 1.0,
    error: float = THIRD,
) -> RequiredRuns:
    """How many runs decide a claim when the laws of all outputs are stated, truly or not.

    Pure claims need the least stated mass of an output, above 0; their proximity is in epsilon.

    Args:
        loss: What is claimed.
        outputs: How many there are, at least 2.
        proximity: Above 0.
        min_mass: The least stated mass of an output.
        weight: How much of a proximity in gamma counts as one in delta.
        error: Between 0 and 1/2.

    Returns:
        How often the box must be run.

    Raises:
        Unverifiable: If a pure claim has an output without a stated mass.
        NotComparable: If no test here decides it.

    >>> from sfumato.privacy import PureDP
    >>> queries_with_specification(PureDP(1), outputs=16, proximity=0.1, min_mass=0.01).enough_runs
    1710644
    """
    require_countable(loss)
    traits = traits_of(loss)
    if traits.tested is None:
        raise NotComparable(
            f"{loss} is not verified from stated laws here; certify what it implies, as approximate DP"
        )
    e, mass = traits.tested.epsilon, min_mass or 0.0
    if traits.pure and not 0 < mass <= 1 / outputs:
        raise Unverifiable(
            "pure DP is verified from stated laws only if every output has a stated mass above 0 "
            f"[mcmillan18, thm. 10.11 and 10.12], at least {min_mass} of {outputs}; nothing was run"
        )
    if traits.pure:
        min_runs = rare_output_bound(outputs, e, mass, proximity=proximity, error=error)
        reasons = ("at least: thm. 10.12, corrected", "enough: thm. 10.11, algorithm 6")
    else:
        min_runs = two_point_bound(e, traits.tested.delta, proximity=proximity, error=error)
        reasons = ("at least: thm. 10.7, corrected", "enough: prop. 10.10, algorithm 5, or 4")

    def samples(one: float) -> int:
        if traits.pure:
            return specified_pure_samples(outputs, mass, proximity=proximity, error=one)
        blind = approx_samples(outputs, e, proximity=proximity, error=one)
        return min(blind, specified_approx_samples(outputs, e, proximity=proximity, error=one))

    return _required(loss, samples, (min_runs, reasons), slack=proximity / weight, error=error)


def boundary_pair(epsilon: float, delta: float) -> Laws:
    """The pair of randomised response that is (epsilon, delta)-DP and nothing less, in both orders.

    (p, 1 - p) and (1 - p, p), p = (e**epsilon + delta) / (1 + e**epsilon). The pair printed in the
    proof of [mcmillan18, thm. 10.7] is not private in the other order.

    Args:
        epsilon: At least 0.
        delta: From 0 to below 1.

    Returns:
        Two laws on two outputs.
    """
    p = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    return np.array([p, 1 - p]), np.array([1 - p, p])


def nearest_far_pair(epsilon: float, delta: float, *, proximity: float) -> Laws:
    """A pair with delta + proximity at epsilon, by the least change of `boundary_pair`.

    Each law moves in proportion to its weight in P(E) - e**epsilon Q(E): by proximity / s and
    e**epsilon times that, s = 1 + e**(2 epsilon). Masses below 0 say that there is none.

    Args:
        epsilon: At least 0.
        delta: From 0 to below 1.
        proximity: In delta, above 0.

    Returns:
        Two laws on two outputs.
    """
    first, second = boundary_pair(epsilon, delta)
    step = proximity / (1 + math.exp(2 * epsilon))
    return _two(first[0] + step), _two(second[0] - step * math.exp(epsilon))


def two_point_bound(epsilon: float, delta: float, *, proximity: float, error: float = THIRD) -> int:
    """Samples of each input without which no test decides approximate DP, even when the laws are stated.

    To tell `boundary_pair` from `nearest_far_pair`: s / proximity**2 up to p (1 - p) and a
    constant, by [tsybakov09, lem. 2.3]. [mcmillan18, thm. 10.7] has no s.

    Args:
        epsilon: At least 0.
        delta: From 0 to below 1.
        proximity: In delta, above 0.
        error: Between 0 and 1/2.

    Returns:
        Samples of each input, at least 1.

    >>> two_point_bound(1.0, 0.01, proximity=0.01)
    7694
    """
    moved = nearest_far_pair(epsilon, delta, proximity=proximity)
    if min(moved[0].min(), moved[1].min()) < 0:
        return 1  # Nothing on two outputs is that far.
    return least_to_distinguish(boundary_pair(epsilon, delta), moved, error=error)


def rare_output_bound(
    outputs: int, epsilon: float, min_mass: float, *, proximity: float, error: float = THIRD
) -> int:
    """Samples of each input without which no test decides pure DP from stated laws: of order 1/(b a**2).

    Q0 has mass b = `min_mass` on an output where Q1 has e**epsilon b; in truth the first has
    e**-proximity b. The other outputs make up for it; [mcmillan18, thm. 10.12] has them break the
    claim.

    Args:
        outputs: How many there are.
        epsilon: At least 0.
        min_mass: The least stated mass.
        proximity: In epsilon, above 0.
        error: Between 0 and 1/2.

    Returns:
        Samples of each input, at least 1.
    """
    if min_mass * (math.exp(epsilon) + outputs - 1) > 1:
        return 1  # No stated laws with such masses are at the limit of the claim.
    second = _two(math.exp(epsilon) * min_mass)
    stated, true = _two(min_mass), _two(math.exp(-proximity) * min_mass)
    return least_to_distinguish((stated, second), (true, second), error=error)


def low_frequency_bound(outputs: int, epsilon: float, delta: float, *, proximity: float) -> float:
    """Samples without which no test decides approximate DP, by low-frequency blindness: n to the 1 - o(1).

    n delta / (3 (2 delta + proximity) (1 + e**epsilon) 1000 2**(4 sqrt(log2 n))) [mcmillan18, thm.
    10.7, corrected] by Valiant's theorem for pairs of laws [valiant11]. Below 1 for every n that
    one meets.
    """
    if delta == 0 or 2 * delta + proximity >= 1:
        return 0.0
    blindness = 1000 * 2 ** (4 * math.sqrt(math.log2(max(outputs, 1))))
    return outputs * delta / (3 * (2 * delta + proximity) * (1 + math.exp(epsilon)) * blindness)


def distinguishing_bound(
    epsilon: float, delta: float, *, proximity: float, error: float = THIRD
) -> int:
    """Samples without which no test decides approximate DP, because with fewer nobody breaks it.

    By [mcmillan18, thm. 10.2] a test must tell the inputs apart of every algorithm that is far. The
    hardest of those on two outputs is taken: about max(0.405, 0.118 / (1 - e**-epsilon)) / (delta +
    proximity).

    Args:
        epsilon: At least 0.
        delta: From 0 to below 1.
        proximity: In delta, above 0.
        error: Between 0 and 1/2.

    Returns:
        Samples of each input.

    Raises:
        InvalidParameter: If delta + proximity is not between 0 and 1.

    >>> distinguishing_bound(0.1, 1e-6, proximity=0.001)
    1225
    """
    far = delta + proximity
    _require(0 < far < 1, "delta + proximity must be above 0 and below 1", far)
    # Every one of these is far, so each gives a valid bound; the worst have about far / epsilon, or
    # none.
    rival = np.geomspace(far / 1000, 1, 400) * (1 - far) / math.exp(epsilon)
    mass = np.minimum(1.0, far + math.exp(epsilon) * rival)
    p, q = (np.stack([one, 1 - one], axis=1) for one in (mass, rival))
    affinity = np.exp(-renyi_divergence(p, q, order=0.5) / 2)
    both = zip(total_variation(p, q), affinity, strict=True)
    return max(least_samples(float(apart), float(alike), error=error) for apart, alike in both)


def least_to_distinguish(
    laws: tuple[FloatArray, ...], others: tuple[FloatArray, ...], *, error: float = THIRD
) -> int:
    """How many samples of each law, together, tell one list of laws from another with at most this error.

    `least_samples` of the product laws, whose overlaps and affinities multiply.
    """
    overlap = affinity = 1.0
    for p, q in zip(laws, others, strict=True):
        overlap *= 1 - float(total_variation(p, q))
        affinity *= math.exp(-float(renyi_divergence(p, q, order=0.5)) / 2)
    _require(
        overlap < 1 and affinity < 1,
        "the laws must differ by more than doubles can tell",
        1 - overlap,
    )
    return least_samples(1 - overlap, affinity, error=error)


def _required(
    loss: Claimed,
    samples: Callable[[float], int],
    bound: tuple[int, tuple[str, ...]],
    *,
    slack: float,
    error: float,
) -> RequiredRuns:
    """With random data, as many pairs as algorithm 3 takes; otherwise one."""
    min_runs, reasons = bound
    gamma = traits_of(loss).gamma
    if gamma is not None:
        plan = random_plan(samples, gamma=above(gamma), slack=slack, error=error)
        more = ("pairs: thm. 10.3, algorithm 3, exact tails",)
        return RequiredRuns(min_runs, plan.inner.total, plan.pairs, (*reasons, *more))
    return RequiredRuns(min_runs, amplified(samples, error).total, 1, reasons)


def _two(mass: float) -> FloatArray:
    return np.array([mass, 1 - mass])


def _require(holds: bool, rule: str, value: object) -> None:
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}; nothing was planned")
