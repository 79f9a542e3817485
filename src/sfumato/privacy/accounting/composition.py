"""What several releases cost together, what a guarantee means for groups and for consequences.

`advanced` and `pld` hold here for schedules fixed in advance. A ledger, whose releases are chosen
as it goes, adds up pure losses and keeps a zCDP account (budget.py); tighter filters exist
[whitehouse23] and are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple
from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, assert_never

from sfumato.errors import InvalidParameter, NotComparable
from sfumato.privacy.accounting.conversion import as_approx, as_zcdp
from sfumato.privacy.accounting.losses import ZCDP, ApproxDP, Loss, PureDP, nonnegative, probability
from sfumato.privacy.accounting.neighbors import AddRemoveUser, Neighbors
from sfumato.privacy.accounting.numbers import WORKING, Number, exact, real, up

if TYPE_CHECKING:
    from sfumato.privacy.ledger.guarded import Bound
    from sfumato.privacy.mechanisms.protocol import Mechanism


def compose(losses: Iterable[Loss]) -> Loss:
    """The loss of releasing several things about the same data: exact sums [mcmillan18, lem. 2.5].

    Pure and approximate losses add up in epsilon and delta; with a zCDP loss among them all must
    have a zCDP equivalent, and those add up in rho [bun16, lem. 1.7].

    Args:
        losses: Losses of the releases, in any order.

    Returns:
        Their sum, exact: zCDP if one of them is, else approximate if one is; PureDP(0) of none.

    Raises:
        NotComparable: A zCDP loss stands beside one with delta above 0.
        InvalidParameter: The deltas add up to 1 or more.

    Example:
        >>> compose([PureDP("1/3"), PureDP("1/6")])
        PureDP(epsilon=Fraction(1, 2))

    """
    return _combined(losses, lambda column: sum(column, Fraction(0)))


def _combined(losses: Iterable[Loss], combine: Callable[[Iterable[Fraction]], Fraction]) -> Loss:
    """Bring losses to one kind, then combine each parameter over them."""
    parts = list(losses)
    alike: list[Loss]
    if any(isinstance(part, ZCDP) for part in parts):
        alike = [as_zcdp(part) for part in parts]
    elif any(isinstance(part, ApproxDP) for part in parts):
        alike = [part if isinstance(part, ApproxDP) else as_approx(part, 0) for part in parts]
    else:
        alike = parts or [PureDP(0)]
    # A delta of 1 or more would say nothing: the loss refuses it rather than print it.
    return type(alike[0])(*(combine(column) for column in zip(*map(astuple, alike), strict=True)))


def advanced(loss: PureDP | ApproxDP, times: int, *, slack: Number) -> ApproxDP:
    """The loss of `times` adaptive releases of the same fixed loss, at an extra delta of `slack`.

    epsilon' = sqrt(2 t ln(1/slack)) epsilon + t epsilon (e**epsilon - 1), delta' = t delta + slack
    [mcmillan18, thm. 2.6]. The basic sum is returned where it is smaller.

    Args:
        loss: The loss of each release.
        times: How many releases, at least 1.
        slack: Extra delta, in (0, 1).

    Returns:
        The (epsilon, delta) loss of all, rounded up.

    Raises:
        InvalidParameter: times or slack is out of range.

    """
    import mpmath

    _count(times, "times")
    extra = probability(slack, "slack")
    if extra == 0:
        raise InvalidParameter("slack must be above 0 for advanced composition, got 0")
    epsilon, delta = loss.epsilon, getattr(loss, "delta", Fraction(0))
    with mpmath.workprec(WORKING):
        e = real(epsilon)
        spread = mpmath.sqrt(2 * times * mpmath.log(1 / real(extra))) * e
        total = up(spread + times * e * mpmath.expm1(e))
    return ApproxDP(min(total, times * epsilon), times * delta + extra)


def pld(schedule: Iterable[tuple[Mechanism[Any, Any], Bound]], *, delta: Number) -> ApproxDP:
    """The tightest known loss of a schedule fixed in advance: privacy loss distributions [doroshenko22].

    Computed by dp-accounting with pessimistic rounding. It answers infinity for composed Laplace
    noise at delta = 0, where the true answer is the plain sum: so delta must be above 0 here, and
    `compose` is for 0.

    Args:
        schedule: Mechanisms with the bounds of their data, in the order they run.
        delta: The delta at which epsilon is wanted, in (0, 1).

    Returns:
        The (epsilon, delta) loss of the whole schedule, rounded up.

    Raises:
        InvalidParameter: delta is 0.
        NotComparable: A mechanism has no known loss distribution, or delta is too small for it.

    """
    from sfumato.privacy.accounting.loss_distribution import compose_distributions

    target = probability(delta, "delta")
    if target == 0:
        raise InvalidParameter(
            "pld needs delta above 0, got 0; at delta 0 pure losses add up: use compose"
        )
    return ApproxDP(compose_distributions(schedule, float(target)), target)


def parallel(losses: Iterable[Loss], neighbors: Neighbors) -> Loss:
    """The loss of releases that each see other users, by a public rule: the worst of them.

    For users added or removed. Replacing one may move them from part to part: that is a removal and
    an addition, `replaced(parallel(...))`.

    Args:
        losses: The loss of each release.
        neighbors: The neighbor relation of the data; users added or removed.

    Returns:
        The worst of the losses.

    Raises:
        NotComparable: The relation is another.

    """
    if not isinstance(neighbors, AddRemoveUser):
        raise NotComparable(
            f"parallel composition is for users added or removed, got: {neighbors}; for a replaced user take "
            "replaced(parallel(...)) of the losses for one added or removed"
        )
    return _combined(losses, max)


def group(loss: Loss, size: int) -> Loss:
    """The loss for `size` neighbor steps taken together, e.g. a household.

    k epsilon; k**2 rho [bun16, prop. 1.9]; and (k epsilon, delta (e**(k epsilon) - 1) / (e**epsilon
    - 1)) for approximate DP: the geometric sum of delta e**(i epsilon).

    Args:
        loss: The loss for one step between neighbors.
        size: How many steps, at least 1.

    Returns:
        The loss for all of them together, rounded up.

    Raises:
        InvalidParameter: size is below 1.

    """
    import mpmath

    _count(size, "size")
    match loss:
        case PureDP(epsilon):
            return PureDP(size * epsilon)
        case ZCDP(rho):
            return ZCDP(size**2 * rho)
        case ApproxDP(epsilon, delta):
            with mpmath.workprec(WORKING):
                growth = sum((mpmath.exp(i * real(epsilon)) for i in range(size)), mpmath.mpf(0))
                # Rounded up; a delta of 1 or more says nothing, and is refused by the loss itself.
                total = up(growth * real(delta)) if delta else Fraction(0)
            return ApproxDP(size * epsilon, total)
        case _:
            assert_never(loss)


def replaced(loss: Loss) -> Loss:
    """What a loss for adding or removing a user is for replacing one: a removal, then an addition.

    Args:
        loss: The loss for a user added or removed.

    Returns:
        The loss for a user replaced: that of a group of two.

    """
    return group(loss, 2)


def consequence(
    loss: PureDP | ApproxDP, expectation: Number, *, upper: Number = 1
) -> tuple[float, float]:
    """Between which values any consequence with values in [0, upper] can move between two neighbors.

    If f has expectation x on one data set, it is at most e**epsilon x + delta upper and at least
    e**-epsilon (x - delta upper) on its neighbor, and the same for upper - f [mcmillan18, lem.
    2.4]. A consequence is anything that follows: a premium, a decision, a headline.

    Args:
        loss: The loss of what the consequence follows from.
        expectation: Its expectation on one data set, in [0, upper].
        upper: The largest value of the consequence, above 0.

    Returns:
        The smallest and largest expectation on a neighbor, rounded outwards.

    Raises:
        InvalidParameter: expectation lies outside [0, upper].
        NotComparable: The loss is neither pure nor approximate.

    Example:
        >>> consequence(PureDP(0), "1/4")
        (0.25, 0.25)

    """
    import mpmath

    if not isinstance(loss, PureDP | ApproxDP):
        raise NotComparable(
            f"a consequence follows from epsilon and delta, got {loss}; use as_approx first"
        )
    x, top = exact(expectation, name="expectation"), nonnegative(upper, "upper")
    if not 0 <= x <= top:
        raise InvalidParameter(f"expectation must lie in [0, upper = {top}], got {x}")
    delta = getattr(loss, "delta", Fraction(0))
    with mpmath.workprec(WORKING):
        grow, x_, top_, slip = mpmath.exp(real(loss.epsilon)), real(x), real(top), real(delta * top)
        # The lemma for f, and for upper - f, each in both directions.
        high = min(top_, grow * x_ + slip, top_ - (top_ - x_ - slip) / grow)
        low = max(mpmath.mpf(0), top_ - grow * (top_ - x_) - slip, (x_ - slip) / grow)
        # Outwards to the next double, where it is none: what is printed must not be tighter than
        # what holds.
        below, above = float(low), float(high)
        return nextafter(below, -inf) if below > low else below, nextafter(
            above, inf
        ) if above < high else above


def _count(number: int, name: str) -> None:
    if number < 1:
        raise InvalidParameter(f"{name} must be at least 1, got {number}")
