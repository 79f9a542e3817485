"""What many readings of the same sensors cost, and the noise that keeps so many within a budget: public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import assert_never, overload

import numpy as np

from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, ApproxDP, PureDP, SwappedCells, as_approx, gaussian_sigma
from sfumato.privacy.accounting import Number, double_above, probability, rho_within, sqrt_above
from sfumato.sensing.model.sensitivity import Sensitivity, per_sensor_loss
from sfumato.sensing.release.noise_plan import NoisePlan, SensorLoss

DAY = (1, 24, 100, 1440)
"""A reading, one an hour for a day, a hundred, one a minute for a day."""


@dataclass(frozen=True, slots=True)
class RoundsCost:
    """What so many readings cost together, at one delta; all rounded up.

    `epsilon` is what they cost, by the tightest statement we can prove; `by_rho` what a zCDP
    account says of the same noise, never less; `charged` what a ledger adds up if each reading is
    paid as the plan states it, None where its deltas add up to 1 or more and so say nothing.
    """

    readings: int
    epsilon: float
    by_rho: float
    charged: SensorLoss | None


def cost_after(
    plan: NoisePlan | SensorLoss, readings: Sequence[int] = DAY, *, delta: Number | None = None
) -> tuple[RoundsCost, ...]:
    """What a plan costs after 1, 24, 100, ... readings of the same sources by all its sensors.

    N Gaussian releases, each moved by at most s between neighbors, are together as hard to tell
    apart as one moved by s sqrt(N) [dong22, cor. 3.3], also if each is chosen after the last; so
    epsilon is the smallest with gaussian_delta(epsilon) <= delta there [balle18, thm. 8], to 1e-8
    of it. That is of the continuous noise, rounded or not, that a plan for epsilon and delta adds.
    A plan for rho adds the discrete kind, of which only N rho is proved: its epsilon is `by_rho`. N
    readings of epsilon alone cost N epsilon, and as rho N epsilon**2 / 2 [bun16, prop. 1.4]: whichever is less.

    A loss alone stands for the least noise that costs it. `delta` is that of the plan's own loss
    unless given; a rho has none, so there it must be. The number of readings must be settled in
    advance.

    Args:
        plan: The noise of one reading, or what it costs.
        readings: Numbers of readings, each at least 1; 1, 24, 100 and 1,440 unless given.
        delta: The delta at which epsilon is told, above 0 and below 1; None means that of the loss.

    Returns:
        The cost of each number of readings, in their order.

    Raises:
        InvalidParameter: The loss is not one of Gaussian noise, a number is out of its range, or
            there is no delta.

    >>> [round(row.epsilon, 2) for row in cost_after(ApproxDP(1, "1e-6"))]
    [1.0, 5.79, 13.51, 82.24]
    """
    loss = plan.cost if isinstance(plan, NoisePlan) else plan
    if not isinstance(loss, SensorLoss):
        raise InvalidParameter(
            f"noise of sensors costs rho, epsilon and delta, or epsilon alone, got {loss}"
        )
    counts = [whole("readings", count, low=1) for count in readings]
    target = _delta(loss, delta)
    squared = _shift_squared(plan)
    return tuple(_cost(loss, squared, count, target) for count in counts)


@overload
def share_of(loss: ZCDP | ApproxDP, readings: int) -> ZCDP: ...
@overload
def share_of(loss: PureDP, readings: int) -> PureDP: ...
@overload
def share_of(loss: SensorLoss, readings: int) -> ZCDP | PureDP: ...
def share_of(loss: SensorLoss, readings: int) -> ZCDP | PureDP:
    """What each of so many readings may cost to stay within a loss, as a ledger adds them up.

    Args:
        loss: What all of them may cost together: epsilon and delta, or rho, and then the share is a rho; or
            epsilon alone, and then it is an epsilon.
        readings: How many, at least 1.

    Returns:
        The share of each.
    """
    count = whole("readings", readings, low=1)
    match loss:
        case ApproxDP(epsilon, delta):
            return ZCDP(rho_within(epsilon, delta) / count)
        case ZCDP(rho):
            return ZCDP(rho / count)
        case PureDP(epsilon):
            return PureDP(epsilon / count)
        case _:
            assert_never(loss)


def _delta(loss: SensorLoss, delta: Number | None) -> Fraction:
    if delta is not None:
        target = probability(delta, "delta")
    elif isinstance(loss, ApproxDP):
        target = loss.delta
    else:
        raise InvalidParameter(f"{loss} has no delta, and epsilon needs one; no cost was computed")
    if target == 0:
        raise InvalidParameter(
            "many readings are told at a delta above 0, got 0; no cost was computed"
        )
    return target


def _shift_squared(plan: NoisePlan | SensorLoss) -> Fraction:
    """How far neighbors move all readings of a round, squared, in deviations of the noise that is added.

    Of Laplace noise in its scale: the square of epsilon, which is twice a rho as well.
    """
    match plan:
        case NoisePlan():
            return (plan.moved / plan.width) ** 2
        case PureDP(epsilon):
            return epsilon**2
        case ApproxDP(epsilon, delta):
            return 1 / Fraction(gaussian_sigma(epsilon, delta)) ** 2
        case ZCDP(rho):
            return 2 * rho
        case _:
            assert_never(plan)


def _cost(loss: SensorLoss, squared: Fraction, count: int, delta: Fraction) -> RoundsCost:
    rho = squared * count / 2
    by_rho = float(double_above(as_approx(ZCDP(rho), delta).epsilon))
    match loss:
        case ZCDP():
            return RoundsCost(count, by_rho, by_rho, ZCDP(loss.rho * count))
        case PureDP(epsilon):
            together = PureDP(epsilon * count)
            return RoundsCost(
                count, min(by_rho, float(double_above(together.epsilon))), by_rho, together
            )
        case ApproxDP():
            says = loss.delta * count < 1
            charged = ApproxDP(loss.epsilon * count, loss.delta * count) if says else None
            return RoundsCost(count, min(by_rho, _epsilon(2 * rho, delta)), by_rho, charged)
        case _:
            assert_never(loss)


def _epsilon(squared: Fraction, delta: Fraction) -> float:
    """The smallest epsilon at which noise of deviation 1 hides a move of this length, squared; rounded up."""
    far = float(double_above(sqrt_above(squared)))
    # The loss of a single sensor that moves so far; which neighbors move it makes no difference.
    alone = Sensitivity(far, np.array([far]), True, (0, 0), SwappedCells(1))
    return float(per_sensor_loss(alone, 1.0, delta)[0])


def best_guess(plan: NoisePlan, readings: int = 1) -> float:
    """How often the best guess between two neighbors is right, from so many readings: rounded by doubles only.

    1/2 + half their distance in variation. Two Gaussians a distance d apart are told apart with probability
    Phi(d / (2 sigma)), and no better. Of rho only a divergence is proved, Kullback and Leibler's, at most rho
    [tsybakov09, lem. 2.5 and 2.6]. Of epsilon alone no odds change by more than exp(epsilon); and what is a
    little in each of many sensors is told by far less, by the affinity of Laplace laws.

    Args:
        plan: The noise of one reading of all sensors.
        readings: How many readings the guess is made from. It counts for a plan for rho; one for
            epsilon and delta is told for one reading. 1 unless given.

    Returns:
        A probability from 1/2 to 1; for a plan for rho, and for epsilon alone, an upper bound on it.
    """
    match plan.cost:
        case ApproxDP():
            return NormalDist().cdf(float(plan.moved / plan.width) / 2)
        case PureDP(epsilon):
            odds = math.tanh(min(700.0, float(epsilon) * readings) / 2)
            return 0.5 + 0.5 * min(odds, _laplace_variation(plan, readings))
        case ZCDP(exactly):
            rho = float(exactly) * readings
    return 0.5 + 0.5 * min(math.sqrt(rho / 2), 1 - 0.5 * math.exp(-rho))


def _laplace_variation(plan: NoisePlan, readings: int) -> float:
    """A bound on the distance in variation of readings with Laplace noise that neighbors move.

    Discrete Laplace laws of scale s that are k apart have affinity (sum of sqrt(p q)) exp(-k / (2s)) (1 + k t)
    with t = tanh(1 / (2s)). By ln(1 + x) >= x - x^2 / 2 and tanh(x) >= x - x^3 / 3 its logarithm is at least
    -k^2 / (8 s^2) - k / (24 s^3). Over sensors squares add up to the square of how far readings move together,
    and k to how far they move added up; and of affinity a the distance is at most sqrt(1 - a^2)
    [tsybakov09, lem. 2.3].
    """
    scale, together = plan.width, plan.moved_together
    apart = float((together / scale) ** 2 / 8 + plan.moved / scale**3 / 24)
    return math.sqrt(-math.expm1(-2 * apart * readings))


def one_sensor_loss(plan: NoisePlan, delta: Number, readings: int = 1) -> float:
    """The most that so many readings of one sensor alone would cost, as an epsilon; rounded up.

    The number of readings counts for a plan for rho or for epsilon alone; one for epsilon and delta is told for
    one reading.
    """
    if not isinstance(plan.cost, ZCDP):
        return float(plan.per_sensor_loss(delta).max()) * (readings if plan.pure else 1)
    moved = Fraction(float(plan.per_sensor_moved.max())) / Fraction(2) ** plan.exponent
    rho = (moved / plan.width) ** 2 / 2 * readings
    return float(double_above(as_approx(ZCDP(rho), delta).epsilon))
