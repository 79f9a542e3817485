"""What a small device needs of a noise plan: thresholds that turn random bits into a draw, and its lattices.

Each of its sensors has a lattice of its own where each has its own noise: all that differs is how many lattice
units a count of the sensor is. That is two whole numbers, so that the device computes with integers alone.
"""

from __future__ import annotations

import math
import struct
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.files import write_file
from sfumato.network.sensors.config import SensorConfig
from sfumato.network.sensors.sensor import checked, law_name, wire_loss
from sfumato.network.wire import WireLoss
from sfumato.privacy import GaussianLaw, RoundedGaussianLaw
from sfumato.privacy.accounting import double_above
from sfumato.privacy.noise import sampler
from sfumato.sensing.model import Site
from sfumato.sensing.release import LARGEST_READING, NoisePlan

BITS = 31  # of a multiplier, and of a count: their product, and what is added to it, fit into 64
MAX_SHIFT = 61


def device_table(law: GaussianLaw | RoundedGaussianLaw) -> bytes:
    """The table as docs/reference/wire.md has it: blocks, a multiplier for each, thresholds of 16 bytes.

    Args:
        law: The law of the noise; all blocks of a draw use one table.

    Returns:
        The bytes of the file.

    >>> len(device_table(GaussianLaw(4)))
    956
    """
    built = sampler(law)
    thresholds = built.tables[0].thresholds
    head = [len(built.tables), *built.weights, len(thresholds)]
    return struct.pack(f">{len(head)}I", *head) + b"".join(
        threshold.to_bytes(16, "big") for threshold in thresholds
    )


@dataclass(frozen=True, slots=True)
class DeviceLattice:
    """How a small device turns whole counts of a sensor into lattice units, in integers of 64 bits.

    A count x, of 32 bits with its sign, is unit floor((multiplier x - zero) / 2**shift + 1/2), cut to
    -limit..limit.

    Attributes:
        sensor: Its name.
        place: Its place in the site's list, as packets say it.
        count: What one count is in the site's unit: its step.
        multiplier: Rounded down, so that a count moves the unit no further than its noise is for.
        shift: The power of two that it is divided by, at least 1.
        zero: What the level of an empty place comes to before the division.
        limit: The largest unit: the site's largest reading, or what a lattice holds.
        sigma: The deviation of its noise, in the site's unit.
        lattice: The step of its lattice, in the site's unit.
    """

    sensor: str
    place: int
    count: str
    multiplier: int
    shift: int
    zero: int
    limit: int
    sigma: float
    lattice: float

    def unit(self, count: int) -> int:
        """The lattice unit of a count, as the encoders in devices/ compute it."""
        near = (self.multiplier * count - self.zero + (1 << (self.shift - 1))) >> self.shift
        return max(-self.limit, min(self.limit, near))


def device_lattice(site: Site, plan: NoisePlan, sensor: str) -> DeviceLattice:
    """The lattice of one sensor of a small device.

    Args:
        site: The site; what a count of the sensor is, is its step.
        plan: Its noise.
        sensor: The name of the sensor.

    Returns:
        Whole numbers for the device.

    Raises:
        InvalidInput: The site says no step or takes off a baseline that runs, the sensor is switched off, or a
            number does not fit in 64 bits.
    """
    per_source, level = site.per_source, site.level
    running = level is not None and bool(level.running)
    if not site.step or per_source is None or running:
        lacks = "no unit" if per_source is None else "a running baseline" if running else "step 0"
        raise InvalidInput(
            "a microcontroller reads in whole counts, each a `step` of the site, above a level that does not "
            f"change; site {site.name!r} has {lacks}; nothing was written"
        )
    place = site.sensors.names.index(sensor)
    gain = Fraction(float(site.gains[place]))
    if not gain:
        raise InvalidInput(
            f"sensor {sensor!r} is switched off and sends nothing; nothing was written"
        )
    unit = gain / (
        per_source * Fraction(2) ** plan.exponent
    )  # lattice units in one of the site's unit
    moved = unit * site.step
    # The largest power of two with which the multiplier has at most 31 bits.
    shift = BITS - 1 - _floor_log2(moved)
    multiplier = _down(moved * Fraction(2) ** shift)
    off = Fraction(0) if level is None else level.of([sensor], None)[0]
    zero = round(off * unit * Fraction(2) ** shift)
    if not 1 <= shift <= MAX_SHIFT or abs(zero) >= 1 << MAX_SHIFT:
        raise InvalidInput(
            f"a count of sensor {sensor!r} is {float(moved):.3g} units of its lattice, and its level "
            f"{float(off * unit):.3g}: not to be computed in 64 bits; nothing was written"
        )
    limit = (
        LARGEST_READING
        if site.largest is None
        else min(LARGEST_READING, round(site.largest * unit))
    )
    return DeviceLattice(
        sensor,
        place,
        str(site.step),
        multiplier,
        shift,
        zero,
        int(limit),
        float(plan.sigma / gain * per_source),
        float(1 / unit),
    )


def _down(number: Fraction) -> int:
    """Towards less movement, so that there is at least the noise that was planned."""
    return math.floor(number)


def _floor_log2(number: Fraction) -> int:
    """The largest whole power of two that is not above a positive number."""
    power = number.numerator.bit_length() - number.denominator.bit_length()
    return power if number >= Fraction(2) ** power else power - 1


@dataclass(frozen=True, slots=True)
class DeviceTable:
    """What a device needs that cannot plan: the table, and what its packets say of the noise.

    Attributes:
        file: The table.
        size: Its length in bytes.
        law: The law as the key derivation has it, LAW|NUMERATOR/DENOMINATOR.
        sigma: Its parameter, in lattice units, as packets say it.
        exponent: Readings are whole multiples of 2**exponent.
        cost: What one round costs, as packets say it.
        site: What packets say of the site, 32 hexadecimal digits.
        lattices: How counts of each sensor become lattice units; empty where the site says no step, so that
            the device must know.
    """

    file: Path
    size: int
    law: str
    sigma: float
    exponent: int
    cost: WireLoss
    site: str
    lattices: tuple[DeviceLattice, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        return asdict(self) | {"file": str(self.file)}


def write_device_table(config: SensorConfig, path: str | Path) -> DeviceTable:
    """Write the table of a sensor's noise into a new file, for a device that cannot build it.

    Args:
        config: What sensor.toml says.
        path: The new file.

    Returns:
        The file, and what the packets of such a device say.

    Raises:
        InvalidInput: The file exists already, or cannot be written, the plan cannot be read, or each sensor
            has its own noise and its lattice cannot be told.
    """
    site, plan = checked(config)
    if plan.pure:
        raise InvalidInput(
            "a microcontroller draws Gaussian noise alone, and the plan is of epsilon without a delta, which "
            "takes Laplace noise; give the budget a delta, or let a computer send; nothing was written"
        )
    try:
        lattices = tuple(device_lattice(site, plan, name) for name in config.sensors)
    except InvalidInput:
        if plan.gains:
            raise
        lattices = ()  # one sigma for all: a device that knows more of its sensor computes units itself
    sigma = double_above(plan.width)
    name = law_name(plan)
    table = device_table(GaussianLaw(sigma) if name == "gaussian" else RoundedGaussianLaw(sigma))
    write_file(path, table)
    exactly = Fraction(sigma)
    law = f"{name}|{exactly.numerator}/{exactly.denominator}"
    cost = wire_loss(plan.cost, up=True)
    return DeviceTable(
        Path(path), len(table), law, float(sigma), plan.exponent, cost, site.digest[:32], lattices
    )
