"""What a mechanism is: a value that knows its cost, how many draws it takes, and how it samples."""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeVar

from sfumato.privacy.accounting.losses import Loss
from sfumato.privacy.ledger.guarded import Bound
from sfumato.privacy.noise.protocol import Noise

T_contra = TypeVar("T_contra", contravariant=True)
U_co = TypeVar("U_co", covariant=True)


class Mechanism(Protocol[T_contra, U_co]):
    """A randomised map from private to released values, integers on both sides: vectors, or sparse cells.

    Attributes:
        name: The name and version that a ledger keeps; its meaning never changes once released.
        additive: Whether the output is on the lattice of the data, rather than a category or an index.

    One whose output is no array of integers may have a method `restore(data)` that makes it of the
    JSON its `to_json` gives: what a ledger kept is then taken up again as it was sampled.
    """

    name: ClassVar[str]
    additive: ClassVar[bool]

    def cost(self, bound: Bound) -> Loss:
        """What one release costs when the data moves within the bound."""

    def draws(self, bound: Bound) -> int:
        """How many numbers one release draws from the noise at most: each adds to a stream's distance."""

    def sample(self, values: T_contra, noise: Noise) -> U_co:
        """One release of these values."""
