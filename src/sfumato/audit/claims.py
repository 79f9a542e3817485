"""Kinds of privacy claims: what each implies, allows and certifies.

A new kind is a class in `privacy/accounting/guarantee.py`, its name at the door of `privacy`, and
what this file says of it: `FORMS`, `KINDS` and `traits_of`.

A claim is a loss with a relation of neighbors. `traits_of` is the only place in this room that tells
losses apart; everything else asks the `Traits` that it returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, assert_never

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter, NotComparable, Unverifiable
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Claim,
    GaussianDP,
    Loss,
    Neighbors,
    PureDP,
    RandomApproxDP,
    RandomPureDP,
    as_approx,
)
from sfumato.privacy.accounting import LOSSES, exact, gaussian_delta, parameters

Claimed = Loss | GaussianDP | RandomPureDP | RandomApproxDP
Certified = PureDP | ApproxDP | RandomPureDP | RandomApproxDP

DELTAS = ("1e-1", "1e-2", "1e-3", "1e-4", "1e-6", "1e-8")
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
POWERS = np.linspace(-12, -0.01, 60)
"""Deltas, as powers of ten, at which a zCDP claim is turned into epsilons."""
MAX_EPSILON = 150.0
"""Above it nothing is tested: no runs show a chance below e**-150, and its powers would overflow."""

FORMS: dict[frozenset[str], Callable[..., Claimed]] = {
    frozenset(["epsilon"]): PureDP,
    frozenset(["epsilon", "delta"]): ApproxDP,
    frozenset(["rho"]): ZCDP,
    frozenset(["mu"]): GaussianDP,
    frozenset(["epsilon", "gamma"]): RandomPureDP,
    frozenset(["epsilon", "delta", "gamma"]): RandomApproxDP,
}
"""Losses by the names of their parameters, as a text states them."""
KINDS: dict[str, Callable[..., Any]] = {
    **LOSSES,
    **{kind.__name__: kind for kind in (GaussianDP, RandomPureDP, RandomApproxDP)},
}
"""Losses by their name in files."""

RARE_EPSILON = "an output too rare to be seen can decide its epsilon: thm. 10.5, `blind_pair`"
RARE_INFINITE = (
    "an output too rare to be seen can make its parameter infinite: prop. 10.9, `unseen_pair`"
)


@dataclass(frozen=True, slots=True)
class EpsilonDelta:
    """P(event) <= e**epsilon Q(event) + delta for every event, both orders; rounded to claim no more.

    Attributes:
        epsilon: At least 0.
        delta: From 0 to 1.
    """

    epsilon: float
    delta: float


Widen = Callable[[Fraction, Fraction | None], Certified]


@dataclass(frozen=True, slots=True)
class Traits:
    """What audits need to know of a loss.

    Attributes:
        statements: The (epsilon, delta) statements it implies; a few of them where there are many.
        allowed: The largest delta that it allows at an epsilon.
        tested: The statement that testers of a fixed number of runs decide; None where none does.
        pure: Whether proximity is measured in epsilon rather than in delta.
        gamma: The share of random data on which it may fail; None of a claim about all data.
        unverifiable: Why no number of runs verifies it without information; empty where some do.
        widen: The loss with a proximity in it, and with a gamma where one is given.
    """

    statements: Callable[[], tuple[EpsilonDelta, ...]]
    allowed: Callable[[float], float]
    tested: EpsilonDelta | None
    pure: bool
    gamma: Fraction | None
    unverifiable: str
    widen: Widen


@lru_cache(maxsize=64)
def traits_of(loss: Claimed) -> Traits:
    """What audits need to know of a loss of any kind."""
    match loss:
        case PureDP(epsilon):
            return _pure(epsilon, None)
        case RandomPureDP(epsilon, gamma):
            return _pure(epsilon, gamma)
        case ApproxDP(epsilon, delta):
            return _approximate(epsilon, delta, None)
        case RandomApproxDP(epsilon, delta, gamma):
            return _approximate(epsilon, delta, gamma)
        case ZCDP():
            stated, curve = partial(_zcdp, loss), _zcdp_curve(loss)
            return Traits(stated, curve, None, False, None, RARE_INFINITE, _none_of(loss))
        case GaussianDP(mu):
            stated, curve = partial(_gaussian, mu), partial(_gaussian_curve, mu)
            return Traits(stated, curve, None, False, None, RARE_INFINITE, _none_of(loss))
        case _:
            assert_never(loss)


def implied(claim: Claim) -> tuple[EpsilonDelta, ...]:
    """What a claim implies, as statements that samples can refute.

    Pure and approximate claims imply their own. zCDP implies one for every delta, Gaussian DP one
    for every epsilon; a few of them are used, of all sizes.

    Args:
        claim: About fixed data.

    Returns:
        At least one statement, with epsilon and delta rounded up.

    Raises:
        InvalidParameter: If the claim is about random data, which no single pair refutes.

    >>> implied(Claim(PureDP("1/2"), AddRemoveUser()))
    (EpsilonDelta(epsilon=0.5, delta=0.0),)
    """
    if is_random(claim):
        raise InvalidParameter(
            f"a claim about random data is not refuted by one pair of inputs, got {claim}; use certify"
        )
    return traits_of(claim.loss).statements()


def allowed_deltas(claim: Claim, epsilons: Sequence[float]) -> FloatArray:
    """The largest delta(epsilon) that a claim allows, to compare a measured band with.

    (e, d)-DP allows d + (1 - d) (e^e - e^x) / (1 + e^e) at x below e, and d above [kairouz15, thm.
    3.3]; Gaussian DP has its curve [dong22, cor. 1]; of zCDP an upper bound is taken, between
    points of its own.

    The claim is about fixed data, epsilons are at least 0.

    >>> allowed_deltas(Claim(PureDP(1), AddRemoveUser()), [0, 1]).round(4).tolist()
    [0.4621, 0.0]
    """
    if is_random(claim):
        raise InvalidParameter(f"a claim about random data has no curve of one pair, got {claim}")
    traits = traits_of(claim.loss)
    return np.array([traits.allowed(float(epsilon)) for epsilon in epsilons])


def is_random(claim: Claim) -> bool:
    """Whether a claim is about random data, so that no single pair of inputs refutes it.

    Args:
        claim: Of any kind.

    Returns:
        True if it may fail on a share gamma of the data.
    """
    return traits_of(claim.loss).gamma is not None


def decidable_statement(loss: Claimed) -> EpsilonDelta:
    """The statement that testers of a fixed number of runs decide; `NotComparable` where none does."""
    if (tested := traits_of(loss).tested) is None:
        raise NotComparable(f"{loss} is certified by none of the testers; nothing was run")
    return tested


def certified_loss(
    claim: Claim, proximity: float, *, gamma: float | None = None, slack: float = 0.0
) -> Certified:
    """What a certificate up to a proximity states: the claim with the proximity in it.

    Whatever is further off would have been rejected, so that this, and nothing less, is certified.
    With random data the share gamma, the claim's own or the one given, grows by the slack.

    >>> found = certified_loss(Claim(RandomApproxDP(1, "0.01", "0.05"), AddRemoveUser()), 0.1, slack=0.1)
    >>> print(found)
    epsilon 1, delta 0.11 except with probability 0.15 over the data
    """
    traits = traits_of(claim.loss)
    share = traits.gamma if traits.gamma is not None or gamma is None else exact(gamma)
    try:
        return traits.widen(exact(proximity), None if share is None else share + exact(slack))
    except InvalidParameter as problem:
        raise InvalidParameter(
            f"a certificate up to {proximity:g} of {claim.loss} would say nothing: {problem}; nothing was run"
        ) from None


def require_countable(loss: Claimed) -> None:
    """Raise `Unverifiable` for an epsilon so large that the runs to verify it, e**epsilon, are endless."""
    tested = traits_of(loss).tested
    if tested is not None and tested.epsilon > MAX_EPSILON:
        raise Unverifiable(
            f"{loss} is verified by no runs that can be made: they grow as e**epsilon, and an "
            f"epsilon above {MAX_EPSILON:g} promises nothing; nothing was run"
        )


def require_verifiable(loss: Claimed) -> None:
    """Raise `Unverifiable` for claims that no number of runs decides when nothing is known of the box."""
    if why := traits_of(loss).unverifiable:
        raise Unverifiable(
            f"{loss} cannot be verified without information, by any number of runs, up to any proximity: {why} "
            "[mcmillan18]; certify approximate DP, or state the laws; nothing was run"
        )


def parse_claim(text: str, neighbors: Neighbors | None = None) -> Claim:
    """The claim that a text states, such as epsilon=1,delta=1e-6.

    Args:
        text: `epsilon=`, `epsilon=,delta=`, `rho=` (zCDP) or `mu=` (Gaussian DP); after an epsilon
            also `gamma=`, the share of random data on which the claim may fail. Numbers are exact.
        neighbors: Between which data sets it holds; if None, one user added or removed.

    Returns:
        The claim.

    Raises:
        InvalidParameter: If the text states no claim, or one with impossible numbers.

    >>> print(parse_claim("epsilon=0.5,delta=1e-6").loss)
    epsilon 0.5, delta 1e-06
    """
    parts = [part.partition("=") for part in text.split(",")]
    numbers = {name.strip(): value.strip() for name, _, value in parts}
    kind = FORMS.get(frozenset(numbers))
    if kind is None or len(numbers) < len(parts):
        raise InvalidParameter(
            "a claim is epsilon=, epsilon=,delta=, rho= or mu=, perhaps with gamma= after an epsilon, got "
            f"{text!r}; nothing was run"
        )
    return Claim(kind(**numbers), AddRemoveUser() if neighbors is None else neighbors)


def as_claim(claim: object) -> Claim:
    """A claim as it is, or the one that a text states."""
    if isinstance(claim, str):
        return parse_claim(claim)
    if isinstance(claim, Claim):
        return claim
    raise InvalidParameter(
        f"a claim is a loss with a relation, as Claim(PureDP(1), AddRemoveUser()), got {claim!r}; "
        "nothing was run"
    )


def encode_loss(loss: Claimed) -> dict[str, Any]:
    """A loss as JSON: its kind and its exact parameters."""
    return {"kind": type(loss).__name__, **parameters(loss)}


def decode_loss(data: Any) -> Any:
    """The loss that JSON states; an unknown kind is refused."""
    rest = dict(data)
    name = rest.pop("kind")
    if name not in KINDS:
        raise InvalidInput(f"no claim is called {name!r}")
    return KINDS[name](**rest)


def above(number: Fraction) -> float:
    """The least double that is not below a fraction."""
    value = float(number)
    return value if Fraction(value) >= number else math.nextafter(value, math.inf)


def _pure(epsilon: Fraction, gamma: Fraction | None) -> Traits:
    def widen(proximity: Fraction, share: Fraction | None) -> Certified:
        kept = PureDP(epsilon + proximity)
        return kept if share is None else RandomPureDP(kept.epsilon, share)

    stated = EpsilonDelta(above(epsilon), 0.0)
    curve = _mixture(float(epsilon), 0.0)
    return Traits(lambda: (stated,), curve, stated, True, gamma, RARE_EPSILON, widen)


def _approximate(epsilon: Fraction, delta: Fraction, gamma: Fraction | None) -> Traits:
    def widen(proximity: Fraction, share: Fraction | None) -> Certified:
        kept = ApproxDP(epsilon, delta + proximity)
        return kept if share is None else RandomApproxDP(epsilon, kept.delta, share)

    stated = EpsilonDelta(above(epsilon), above(delta))
    curve = _mixture(float(epsilon), float(delta))
    return Traits(lambda: (stated,), curve, stated, False, gamma, "", widen)


def _none_of(loss: Claimed) -> Widen:
    def widen(proximity: Fraction, share: Fraction | None) -> Certified:  # noqa: ARG001
        raise NotComparable(f"{loss} is certified by none of the testers; nothing was run")

    return widen


def _gaussian(mu: Fraction) -> tuple[EpsilonDelta, ...]:
    if mu == 0:
        return (EpsilonDelta(0.0, 0.0),)
    sizes = (share * float(mu) * (1 + float(mu) / 2) for share in SHARES)
    return tuple(EpsilonDelta(e, gaussian_delta(e, sigma=1, sensitivity=mu)) for e in sizes)


def _gaussian_curve(mu: Fraction, epsilon: float) -> float:
    return gaussian_delta(epsilon, sigma=1, sensitivity=mu) if mu else 0.0


def _zcdp(loss: ZCDP) -> tuple[EpsilonDelta, ...]:
    found = (as_approx(loss, delta) for delta in DELTAS)
    return tuple(EpsilonDelta(above(one.epsilon), above(one.delta)) for one in found)


def _mixture(epsilon: float, delta: float) -> Callable[[float], float]:
    def allowed(at: float) -> float:
        # (e^e - e^x) / (1 + e^e), in a form that no epsilon overflows
        part = max(0.0, -math.expm1(at - epsilon)) / (1 + math.exp(-epsilon))
        return delta + (1 - delta) * part

    return allowed


def _zcdp_curve(loss: ZCDP) -> Callable[[float], float]:
    deltas = 10.0**POWERS
    known: list[FloatArray] = []

    def allowed(at: float) -> float:
        if not known:
            epsilons = (as_approx(loss, float(delta)).epsilon for delta in deltas)
            known.append(np.array([float(epsilon) for epsilon in epsilons]))
        # Delta falls as epsilon grows: what holds at the next smaller epsilon holds here.
        return float(deltas[known[0] <= at].min(initial=1.0))

    return allowed
