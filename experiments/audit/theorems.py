"""What only checks the thesis: pairs that no samples tell apart, the distance of claims, Poisson samples.

No command reaches these; the package has the corrected testers and bounds that audits use.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import stats

from sfumato._types import FloatArray
from sfumato.audit.property_testing import Decision, counts_of, spread_of
from sfumato.errors import InvalidParameter, NotComparable
from sfumato.privacy import ZCDP, ApproxDP, GaussianDP, Loss, PureDP, RandomApproxDP, RandomPureDP

Claimed = Loss | GaussianDP | RandomPureDP | RandomApproxDP
Counts = npt.ArrayLike
Laws = tuple[FloatArray, FloatArray]


def blind_pair(epsilon: float, *, proximity: float, samples: int) -> tuple[Laws, Laws]:
    """Two algorithms that so many samples of each input do not tell apart: one epsilon-DP, one far from it.

    [mcmillan18, thm. 10.5]: A has masses e**(-t - epsilon) and e**-t on a rare output; B has e**(-2
    t) for the second, so that its epsilon is t - epsilon. Their samples differ by at most r e**-t <
    1/3.

    >>> private, far = blind_pair(1.0, proximity=5.0, samples=10**6)
    >>> float(private[1][0]) < 1 / (3 * 10**6)
    True
    """
    _require(epsilon > 0, "epsilon must be above 0", epsilon)
    _require(samples >= 1, "samples must be at least 1", samples)
    # Above 2 epsilon + proximity, so that B is far; and at least ln 4, which is above ln(1 +
    # e**-epsilon), so that A is epsilon-DP on the usual output.
    rarity = max(math.log(4 * samples), 2 * epsilon + proximity + 1)
    first, private, far = (_two(math.exp(-t)) for t in (rarity + epsilon, rarity, 2 * rarity))
    return (first, private), (first, far)


def unseen_pair(laws: Laws, *, samples: int) -> Laws:
    """A pair that so many samples do not tell from the given one, though nothing bounds its loss.

    [mcmillan18, prop. 10.9]: one output more, which only the first input has, of a mass below 1/(3
    samples). Pure, concentrated and Gaussian DP then fail for every parameter, whatever the given
    laws are.
    """
    _require(samples >= 1, "samples must be at least 1", samples)
    rare = 1 / (4 * samples)
    return np.append((1 - rare) * laws[0], rare), np.append(laws[1], 0.0)


def parameter_distance(
    loss: Claimed, other: Claimed, *, weight: Fraction = Fraction(1)
) -> Fraction:
    """How far one claim is from another of its kind: what `proximity` measures.

    |epsilon - epsilon'|, |delta - delta'| at the same epsilon, and with random data the larger of it and
    weight |gamma - gamma'| [mcmillan18, table 9.2]. Printed with the smaller of the two: then a
    claim that fails on all data is at distance 0 from every other, and nothing is ever far.

    >>> parameter_distance(RandomPureDP(1, "0.1"), RandomPureDP("1.5", "0.2"), weight=Fraction(20))
    Fraction(2, 1)
    """
    match loss, other:
        case (PureDP(a), PureDP(b)) | (ZCDP(a), ZCDP(b)) | (GaussianDP(a), GaussianDP(b)):
            return abs(a - b)
        case ApproxDP(epsilon, a), ApproxDP(same, b) if epsilon == same:
            return abs(a - b)
        case RandomPureDP(a, gamma), RandomPureDP(b, other_gamma):
            return max(abs(a - b), weight * abs(gamma - other_gamma))
        case RandomApproxDP(epsilon, a, gamma), RandomApproxDP(same, b, other_gamma) if (
            epsilon == same
        ):
            return max(abs(a - b), weight * abs(gamma - other_gamma))
        case _:
            raise NotComparable(
                f"claims are compared with their like, delta at the same epsilon; got {loss} and {other}"
            )


def poissonized_samples(outputs: int, epsilon: float, *, proximity: float) -> float:
    """The mean of the numbers of samples with which `poissonized_test` has errors of at most 1/3.

    s (sqrt(n)/2 + sqrt(5) + sqrt(2))**2 / proximity**2, s = 1 + e**(2 epsilon): [mcmillan18, thm.
    10.8] with a bias of half a deviation, Cantelli's inequality and both orders.
    """
    _require(outputs >= 1, "outputs must be at least 1", outputs)
    _require(0 < proximity < math.inf, "proximity must be above 0 and finite", proximity)
    tails = math.sqrt(5) + math.sqrt(2)
    return spread_of(epsilon) * ((math.sqrt(outputs) / 2 + tails) / proximity) ** 2


def poissonized_test(
    first: Counts, second: Counts, *, rate: float, outputs: int, epsilon: float, delta: float
) -> Decision:
    """Algorithm 4 as the thesis means it, on two independent Poisson numbers of samples of mean rate."""
    x, y = counts_of(first) / rate, counts_of(second) / rate
    spread, grown = spread_of(epsilon) / rate, math.exp(epsilon)
    statistic = float(max(np.maximum(x - grown * y, 0).sum(), np.maximum(y - grown * x, 0).sum()))
    bias = math.sqrt(outputs * spread) / 2
    threshold = delta + bias + math.sqrt(5 * spread)
    beyond = max(0.0, statistic - delta - bias)
    return Decision(
        statistic < threshold, statistic, threshold, min(1.0, 2 * spread / (spread + beyond**2))
    )


def majority_error(repeats: int, error: float) -> float:
    """The chance that most of an odd number of decisions are wrong, each with probability error.

    >>> round(majority_error(3, 1 / 3), 9)
    0.259259259
    """
    _require(repeats >= 1 and repeats % 2 == 1, "repeats must be odd", repeats)
    return float(stats.binom.sf(repeats // 2, repeats, error))


def _two(mass: float) -> FloatArray:
    return np.array([mass, 1 - mass])


def _require(holds: bool, rule: str, value: object) -> None:
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}; nothing was tested")
