"""Shuffled maps: a pyramid on sums of devices, each of which adds its share of the noise and is mixed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.joint import JointMethod, MethodInShares
from sfumato.heatmap.methods.noisy_sums import InShares
from sfumato.heatmap.methods.protocol import MapMethod, NoisyTree
from sfumato.heatmap.methods.pyramid import Pyramid
from sfumato.privacy import UNITS, ApproxDP, Bound, Joint, Noise, Shuffled
from sfumato.privacy.accounting import Model, mixed_delta, mixing_distance, mixing_messages
from sfumato.privacy.noise import PolyaLaw, field_bits, wrap_chance
from sfumato.records import CellSums
from sfumato.spaces import Grid

DELTA = Fraction(1, 10**10)
"""What mixing may add to a map's loss, unless said otherwise."""
DEVICE_UNITS = 64
"""Into how many units a device divides its mass, unless said otherwise: fewer take fewer messages."""


@dataclass(frozen=True, slots=True)
class ShuffledMechanism:
    """Run a pyramid on counts of devices that are split into messages and mixed by a shuffler.

    Round by round: a device adds its shares of the noise to its counts of the cells that are asked
    for, in `units` a device, and splits each into `messages` modulo 2**`bits`; messages of all devices
    of a count are mixed and added up.

    Privacy: ApproxDP(epsilon of the pyramid, (1 + e**epsilon) times the distances of all counts to
    functions of their sums), for whoever adds up and at most `curious` of each batch of devices.
    Proof: docs/proofs/shuffled-sums.md
    """

    mechanism: Pyramid
    trust: Shuffled
    units: int
    messages: int
    bits: int
    name: ClassVar[str] = "shuffled/1"
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (1 <= self.units <= UNITS and UNITS % self.units == 0):
            raise InvalidParameter(
                f"units must be a power of two of at most {UNITS}, got {self.units}; nothing was charged"
            )

    def law(self, scale: Fraction) -> PolyaLaw:
        """The law of the noise on a count, in units of a device, where the pyramid has this scale."""
        return PolyaLaw(scale * self.units / UNITS, self.trust.sum_shape)

    def cost(self, bound: Bound) -> ApproxDP:
        """That of the pyramid, and what mixed messages tell beyond their sums."""
        epsilon = self.mechanism.cost(bound).epsilon
        distance = mixing_distance(self.trust.honest, self.messages, self.bits)
        delta = mixed_delta(epsilon, distance, self.draws(bound))
        if delta >= 1:
            raise InvalidParameter(
                f"{self.messages} messages a count of {self.trust.honest} honest devices promise nothing: "
                "delta would be 1 or more; nothing was charged"
            )
        return ApproxDP(epsilon, delta)

    def draws(self, bound: Bound) -> int:
        """As many as the pyramid."""
        return self.mechanism.draws(bound)

    def wrap_chance(self, bound: Bound) -> float:
        """How likely any count wraps, at most: that costs accuracy, and no privacy."""
        return wrap_chance(
            self.bits,
            largest=self.trust.devices * self.units,
            law=self.law(max(self.mechanism.scales)),
            sums=self.draws(bound),
        )

    def restore(self, data: Any) -> NoisyTree:
        """What was sampled, from the JSON that a ledger keeps of it."""
        return self.mechanism.restore(data)

    def sample(self, values: CellSums, noise: Noise) -> NoisyTree:
        """Round by round; whoever adds up has no values of its own."""
        return self.mechanism.sample_by(InShares(noise, self.trust), values)


@dataclass(frozen=True, slots=True)
class ShuffledMethod(MethodInShares):
    """A pyramid whose counts are sums of devices, with as many messages as `delta` takes."""

    inner: MapMethod[Any]
    trust: Shuffled
    delta: Fraction = DELTA
    units: int = DEVICE_UNITS

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> ShuffledMechanism:
        """The pyramid of the method inside; refused where it is none, or devices are too few."""
        pyramid: Any = self.inner.mechanism(epsilon, bound, grid)
        if not isinstance(pyramid, Pyramid):
            raise InvalidParameter(
                f"shuffled maps are pyramids: what a device answers a level costs the same whatever cells are "
                f"asked for; got {self.name}; nothing was charged"
            )
        if not 0 < self.delta < 1:
            raise InvalidParameter(
                f"delta must lie in (0, 1), got {float(self.delta):g}; nothing was charged"
            )
        bits = field_bits(
            largest=self.trust.devices * self.units,
            law=PolyaLaw(max(pyramid.scales) * self.units / UNITS, self.trust.sum_shape),
            sums=pyramid.draws(bound),
        )
        factor = mixed_delta(pyramid.cost(bound).epsilon, Fraction(1), pyramid.draws(bound))
        messages = mixing_messages(self.trust.honest, bits, distance=self.delta / factor)
        return ShuffledMechanism(pyramid, self.trust, self.units, messages, bits)


def method_inside(method: MapMethod[Any]) -> MapMethod[Any]:
    """The method of one hand that a method in shares runs; any other is itself."""
    return method.inner if isinstance(method, JointMethod | ShuffledMethod) else method


def method_for(method: MapMethod[Any], model: Model) -> MapMethod[Any]:
    """The method as it is run under a trust model.

    Args:
        method: The method of one map.
        model: The model of the ledger.

    Returns:
        The method itself, or one whose noise is added in shares.

    """
    match model:
        case Joint():
            return JointMethod(method, model)
        case Shuffled():
            return ShuffledMethod(method, model)
        case _:
            return method
