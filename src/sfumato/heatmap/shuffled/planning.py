"""Plan a shuffled map: how many cells, messages and bytes it takes, and what other models would give."""

from __future__ import annotations

import math
from pathlib import Path

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.methods.pyramid import PyramidMethod
from sfumato.heatmap.methods.shuffled import DELTA, DEVICE_UNITS, ShuffledMechanism, ShuffledMethod
from sfumato.heatmap.shuffled.plan import ShufflePlan
from sfumato.heatmap.shuffled.results import ModelNoise, PlannedShuffle
from sfumato.heatmap.shuffled.sealing import PublicKeys
from sfumato.privacy import UNITS, Bound, Joint, Shuffled
from sfumato.privacy.accounting import Number, exact
from sfumato.records import bound_of_sums
from sfumato.spaces import Area

SEAL_SECONDS = 2e-4
"""CPU seconds to seal or open one message, about: experiments/heatmaps/trust.py measures it."""


def plan_shuffled(
    area: Area,
    *,
    epsilon: Number,
    trust: Shuffled,
    adder: PublicKeys | str | Path,
    shuffler: PublicKeys | str | Path,
    delta: Number = DELTA,
    width: int = 20,
    units: int = DEVICE_UNITS,
    title: str = "",
) -> PlannedShuffle:
    """Plan a map of devices that nobody is trusted with: what each sends, and what it is worth.

    Args:
        area: The public area; its finest level is the last that is counted.
        epsilon: What the map may cost each device, above 0.
        trust: How many devices there are at most, are mixed at least, and may be curious.
        adder: The public keys of whoever adds up, or their file.
        shuffler: Those of the shuffler, or their file.
        delta: What mixing may add.
        width: How many cells of a level are followed: four times as many are counted in the next.
        units: Into how many units a device divides its mass, a power of two.
        title: What the map is called.

    Returns:
        The plan, its numbers, and the noise of other models beside its own.

    Raises:
        InvalidParameter: A parameter is out of range, or devices are too few to be mixed.
        InvalidInput: Keys could not be read.

    """
    method = PyramidMethod(width)
    loss, bound = exact(epsilon, name="epsilon"), bound_of_sums(area.grid)
    if loss <= 0:
        raise InvalidParameter(f"epsilon must be above 0, got {epsilon}; nothing was planned")
    mechanism = ShuffledMethod(method, trust, exact(delta, name="delta"), units).mechanism(
        loss, bound, area.grid
    )
    pyramid = mechanism.mechanism
    plan = ShufflePlan(
        area,
        loss,
        exact(delta, name="delta"),
        trust,
        width,
        method.decay,
        pyramid.first_level,
        pyramid.scales,
        units,
        mechanism.messages,
        mechanism.bits,
        _keys(adder),
        _keys(shuffler),
        title,
    )
    return PlannedShuffle(
        plan,
        mechanism.wrap_chance(bound),
        SEAL_SECONDS * plan.cells * plan.messages,
        SEAL_SECONDS * plan.cells * plan.messages * trust.devices / 3600,
        SEAL_SECONDS * max(plan.cells_by_level) * plan.messages * trust.devices / 3600,
        _noises(plan),
    )


def mechanism_of(plan: ShufflePlan, bound: Bound) -> ShuffledMechanism:
    """The mechanism that a plan states, made again; InvalidInput where it states another."""
    method = method_of(plan)
    found = method.mechanism(plan.epsilon, bound, plan.area.grid)
    stated = (plan.first_level, plan.scales, plan.messages, plan.bits)
    pyramid = found.mechanism
    if stated != (pyramid.first_level, pyramid.scales, found.messages, found.bits):
        raise InvalidInput(
            "the plan's noise or messages are not those of its epsilon and delta: make it again; nothing was "
            "charged"
        )
    return found


def method_of(plan: ShufflePlan) -> ShuffledMethod:
    """The method that a plan states."""
    return ShuffledMethod(PyramidMethod(plan.width, plan.decay), plan.trust, plan.delta, plan.units)


def _noises(plan: ShufflePlan) -> tuple[ModelNoise, ...]:
    """The standard deviation of the noise on a count of the first level in users, model by model."""
    central = math.sqrt(2) * float(plan.scales[0] / UNITS)
    e, people, levels = math.exp(float(plan.epsilon)), plan.trust.devices, len(plan.scales)
    # Optimised unary encoding, of which an estimated frequency has variance 4 e / (n (e - 1)**2); users are
    # divided evenly over levels, so that each is estimated from n / levels of them and scaled up.
    local = math.sqrt(levels * people * 4 * e) / (e - 1)
    return (
        ModelNoise("central", central, "whoever gathers the rows sees them"),
        ModelNoise(
            "joint, 1 of 3 curious",
            central * math.sqrt(Joint(3).sum_shape),
            "three parties see their own rows",
        ),
        ModelNoise(
            "shuffled",
            central * math.sqrt(plan.trust.sum_shape),
            "nobody sees rows; shuffler and adder must not pool what they know",
        ),
        ModelNoise("local", local, "nobody sees rows, and nobody is trusted"),
    )


def _keys(keys: PublicKeys | str | Path) -> PublicKeys:
    if isinstance(keys, PublicKeys):
        return keys
    try:
        return PublicKeys.from_text(Path(keys).read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(
            f"cannot read public keys from {keys} ({type(problem).__name__}); nothing was planned"
        ) from None
