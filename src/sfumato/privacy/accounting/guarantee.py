"""Statements of privacy: what we promise, and what somebody else claims."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.losses import Loss, nonnegative, probability
from sfumato.privacy.accounting.neighbors import Neighbors
from sfumato.privacy.accounting.numbers import Number, plain
from sfumato.privacy.accounting.trust import Model, checked_model, who_is_trusted
from sfumato.privacy.accounting.units import period_of


def step_of(neighbors: Neighbors, unit: str) -> str:
    """What one step between neighbors is, in words: of the unit, such as a user-day, not of all of a user.

    >>> from sfumato.privacy.accounting.neighbors import AddRemoveUser
    >>> step_of(AddRemoveUser(), "user-day"), step_of(AddRemoveUser(), "observer")
    ('one user-day added or removed', 'one user added or removed')
    """
    step = str(neighbors)
    if period_of(unit) is not None or "-" in unit:
        step = step.replace("one user", f"one {unit}")
    return step


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is promised: a loss, between which neighbors, per which unit, and who is trusted.

    `computational` is None when the noise has exactly the stated law. Otherwise it is the
    statistical distance between what is drawn and that law, and the promise further assumes that
    AES-256 in counter mode and HKDF-SHA256 cannot be told from random [mironov09]: whoever holds
    the key can remove the noise.
    """

    loss: Loss
    neighbors: Neighbors
    unit: str
    model: Model = "central"
    computational: Fraction | None = None

    def __post_init__(self) -> None:
        if not self.unit:
            raise InvalidParameter(
                "the unit of privacy must be named, e.g. 'user', got an empty name"
            )
        checked_model(self.model)

    @property
    def step(self) -> str:
        """What one step between neighbors is, in words of the unit: one observer-image added or removed."""
        return step_of(self.neighbors, self.unit)

    def __str__(self) -> str:
        trusted = who_is_trusted(self.model, self.unit)
        sentence = f"{self.loss} for each {self.unit} ({self.step}), {trusted}"
        if self.computational is None:
            return sentence
        return (
            f"{sentence}; computational: removable by whoever holds the key, "
            f"within {plain(self.computational)} of the ideal noise"
        )


@dataclass(frozen=True, slots=True, init=False)
class RandomPureDP:
    """Pure DP except on a gamma share of random data sets [mcmillan18, def. 2.2]: a claim only."""

    epsilon: Fraction
    gamma: Fraction

    def __init__(self, epsilon: Number, gamma: Number) -> None:
        object.__setattr__(self, "epsilon", nonnegative(epsilon, "epsilon"))
        object.__setattr__(self, "gamma", probability(gamma, "gamma"))

    def __str__(self) -> str:
        return f"epsilon {plain(self.epsilon)} except with probability {plain(self.gamma)} over the data"


@dataclass(frozen=True, slots=True, init=False)
class RandomApproxDP:
    """Approximate DP except on a gamma share of random data sets [mcmillan18, def. 2.2]: a claim only."""

    epsilon: Fraction
    delta: Fraction
    gamma: Fraction

    def __init__(self, epsilon: Number, delta: Number, gamma: Number) -> None:
        object.__setattr__(self, "epsilon", nonnegative(epsilon, "epsilon"))
        object.__setattr__(self, "delta", probability(delta, "delta"))
        object.__setattr__(self, "gamma", probability(gamma, "gamma"))

    def __str__(self) -> str:
        return (
            f"epsilon {plain(self.epsilon)}, delta {plain(self.delta)} "
            f"except with probability {plain(self.gamma)} over the data"
        )


@dataclass(frozen=True, slots=True, init=False)
class GaussianDP:
    """No test tells neighbors better than it tells N(0, 1) from N(mu, 1) [dong22, def. 4]: a claim only."""

    mu: Fraction

    def __init__(self, mu: Number) -> None:
        object.__setattr__(self, "mu", nonnegative(mu, "mu"))

    def __str__(self) -> str:
        return f"Gaussian DP with mu {plain(self.mu)}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A guarantee somebody else states, to be audited; it may be random or Gaussian DP."""

    loss: Loss | GaussianDP | RandomPureDP | RandomApproxDP
    neighbors: Neighbors

    def __str__(self) -> str:
        return f"claimed: {self.loss} ({self.neighbors})"
