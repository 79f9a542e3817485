"""Joint maps: zoom or pyramid on sums of several parties, each of which adds its share of the noise."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.noisy_sums import InShares, NoisySums
from sfumato.heatmap.methods.protocol import (
    MapEstimate,
    MapMethod,
    NoiseAwareMethod,
    batches_of,
    maps_of,
    outlines_of,
    sketches_of,
)
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import Bound, Joint, Noise, PureDP
from sfumato.privacy.accounting import InShares as InSharesModel
from sfumato.privacy.noise import PolyaLaw
from sfumato.records import CellSums
from sfumato.spaces import Area, Grid

U = TypeVar("U")
U_co = TypeVar("U_co", covariant=True)


class InRounds(Protocol[U_co]):
    """A mechanism whose counts are asked for in rounds, each a function of those before: zoom and pyramid."""

    @property
    def name(self) -> str:
        """The name and version that a ledger keeps."""

    def cost(self, bound: Bound) -> PureDP:
        """What it costs with Laplace noise of its scales."""

    def draws(self, bound: Bound) -> int:
        """How many counts it asks for at most."""

    def sample_by(self, sums: NoisySums, values: CellSums) -> U_co:
        """What it releases, with counts that are made noisy round by round."""

    def restore(self, data: Any) -> U_co:
        """What was sampled, from JSON."""


@dataclass(frozen=True, slots=True)
class JointMechanism(Generic[U]):
    """Run a mechanism on the sums of several parties, with noise in shares in the place of Laplace noise.

    Each party runs it on its own sums with its session as the noise; all are released the same. One
    round is one call of the session's `noisy_sum`.

    Privacy: that of the mechanism with Laplace noise, for outsiders and for so many curious parties
    together. Proof: docs/proofs/shared-noise.md
    """

    mechanism: InRounds[U]
    trust: Joint
    name: ClassVar[str] = "joint/1"
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.trust, Joint):
            raise InvalidParameter(
                f"a joint map is of the joint model, got {self.trust!r}; nothing was charged"
            )

    def law(self, scale: Fraction) -> PolyaLaw:
        """The law of the noise on a count for which the mechanism has noise of this scale."""
        return PolyaLaw(scale, self.trust.sum_shape)

    def cost(self, bound: Bound) -> PureDP:
        """That of the mechanism: what parties that are not curious add is Laplace noise at least."""
        return self.mechanism.cost(bound)

    def draws(self, bound: Bound) -> int:
        """As many as the mechanism."""
        return self.mechanism.draws(bound)

    def restore(self, data: Any) -> U:
        """What was sampled, from the JSON that a ledger keeps of it."""
        return self.mechanism.restore(data)

    def sample(self, values: CellSums, noise: Noise) -> U:
        """Round by round; the values are this party's own, and stay the same if the session goes on."""
        hold = getattr(noise, "hold", None)
        if hold is not None:
            counted = values.codes.tobytes() + b"|" + values.units.tobytes()
            hold(hashlib.sha256(counted).digest())
        return self.mechanism.sample_by(InShares(noise, self.trust), values)


class MethodInShares(NoiseAwareMethod[Any], Protocol):
    """A method whose counts are sums with noise in shares: maps and posteriors know the law of their noise.

    Maps are saved with the name and the parameters of the method inside; who was trusted is in their
    guarantee.
    """

    @property
    def inner(self) -> MapMethod[Any]:
        """The method of one hand."""

    @property
    def trust(self) -> InSharesModel:
        """Who adds the noise."""

    @property
    def name(self) -> str:
        """That of the method inside."""
        return self.inner.name

    @property
    def mean_is_map(self) -> bool:
        """As the method inside says."""
        return bool(getattr(self.inner, "mean_is_map", False))

    def estimate(self, released: Any, grid: Grid) -> tuple[Tiles, ...]:
        """As the method inside: what was released knows its noise."""
        return self.inner.estimate(released, grid)

    def maps(self, released: Any, mechanism: Any, area: Area) -> tuple[MapEstimate, ...]:
        """As the method inside, with the posterior of the true law."""
        found = maps_of(self.inner, released, mechanism.mechanism, area)
        wider = math.sqrt(self.trust.sum_shape)
        return tuple(replace(one, noise_scale=wider * one.noise_scale) for one in found)

    def batches(self, released: Iterable[Any]) -> Iterable[Any]:
        """As the method inside."""
        return batches_of(self.inner, released)

    def outlines(self, released: Any, mechanism: Any, area: Area) -> tuple[Tiles, ...]:
        """As the method inside."""
        return outlines_of(self.inner, released, mechanism.mechanism, area)

    def sketches(self, released: Any, mechanism: Any, area: Area) -> tuple[Tiles, ...]:
        """As the method inside."""
        return sketches_of(self.inner, released, mechanism.mechanism, area)


@dataclass(frozen=True, slots=True)
class JointMethod(MethodInShares):
    """A method whose counts are sums of several parties."""

    inner: MapMethod[Any]
    trust: Joint

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> JointMechanism[Any]:
        """That of the method inside with noise in shares; refused where it asks for no sums in rounds."""
        found: Any = self.inner.mechanism(epsilon, bound, grid)
        if not hasattr(found, "sample_by"):
            raise InvalidParameter(
                f"joint maps are by methods that count in rounds, zoom and pyramid, got {self.name}; "
                "nothing was charged"
            )
        return JointMechanism(found, self.trust)
