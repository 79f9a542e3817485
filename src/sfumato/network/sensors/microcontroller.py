"""The table of a noise plan for small devices: thresholds that turn 127 random bits into a draw."""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.files import write_file
from sfumato.network.sensors.config import SensorConfig
from sfumato.network.sensors.sensor import checked, wire_loss
from sfumato.network.wire import WireLoss
from sfumato.privacy import DiscreteGaussian, GaussianLaw, RoundedGaussianLaw
from sfumato.privacy.accounting import double_above
from sfumato.privacy.noise import sampler


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
    """

    file: Path
    size: int
    law: str
    sigma: float
    exponent: int
    cost: WireLoss
    site: str

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
        InvalidInput: The file exists already, or cannot be written, or the plan cannot be read.
    """
    site, plan = checked(config)
    if plan.gains:
        raise InvalidInput(
            "a microcontroller knows one sigma for all sensors, and each of this site has its own; plan the "
            "site with one sigma, or let a computer send for them; nothing was written"
        )
    if plan.pure:
        raise InvalidInput(
            "a microcontroller draws Gaussian noise alone, and the plan is of epsilon without a delta, which "
            "takes Laplace noise; give the budget a delta, or let a computer send; nothing was written"
        )
    sigma = double_above(plan.width)
    discrete = isinstance(plan.mechanism, DiscreteGaussian)
    table = device_table(GaussianLaw(sigma) if discrete else RoundedGaussianLaw(sigma))
    write_file(path, table)
    exactly = Fraction(sigma)
    name = "gaussian" if discrete else "rounded-gaussian"
    law = f"{name}|{exactly.numerator}/{exactly.denominator}"
    cost = wire_loss(plan.cost, up=True)
    return DeviceTable(
        Path(path), len(table), law, float(sigma), plan.exponent, cost, site.digest[:32]
    )
