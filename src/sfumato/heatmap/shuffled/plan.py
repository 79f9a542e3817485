"""The plan of a shuffled map: one public file that devices, the shuffler and the adder have alike."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import read_json, write_json
from sfumato.heatmap.shuffled.sealing import OVERHEAD, PublicKeys
from sfumato.privacy import UNITS, Shuffled
from sfumato.privacy.accounting import (
    MOST_MESSAGES,
    canonical,
    decode_model,
    encode_model,
    exact,
    mixed_delta,
    mixing_distance,
)
from sfumato.privacy.noise import MOST_BITS
from sfumato.spaces import Area, Grid

FORMAT = "sfumato shuffle plan/1"
INDEX, TOKEN, SESSION = 4, 16, 16
"""Bytes that say which cell a message is of, by which a shuffler knows a device, and a session is known."""
MOST_EPSILON = 64
"""More than that of a level, or of a map, protects nobody: no device takes such a plan."""


@dataclass(frozen=True, slots=True)
class ShufflePlan:
    """What all agree on: area, losses, noise, numbers of messages, and the keys to seal to.

    Devices hold to it themselves: they recompute what it costs them, and answer each level once.

    Attributes:
        area: The public area; in degrees or a plane.
        epsilon: What the map may cost each device.
        delta: What mixing may add to it.
        trust: How many devices there are, are mixed at least, and may be curious.
        width: How many cells of a level are followed.
        decay: How fast the budget falls from the first level on.
        first_level: The level of the first round.
        scales: The scale of the noise of each level, in 2**20 units a person.
        units: Into how many units a device divides its mass.
        messages: How many messages a count is split into.
        bits: Sums are modulo 2**bits.
        adder: The public keys of whoever adds up.
        shuffler: Those of the shuffler.
        title: What the map is called.

    """

    area: Area
    epsilon: Fraction
    delta: Fraction
    trust: Shuffled
    width: int
    decay: float
    first_level: int
    scales: tuple[Fraction, ...]
    units: int
    messages: int
    bits: int
    adder: PublicKeys
    shuffler: PublicKeys
    title: str = ""

    def __post_init__(self) -> None:
        if self.area.crs or self.area.kind == "pixels":
            raise InvalidParameter(
                f"places of devices are in degrees or a plane, got {self.area.crs or self.area.kind}; nothing "
                "was planned"
            )
        if self.units < 1 or UNITS % self.units:
            raise InvalidParameter(
                f"units must be a power of two of at most {UNITS}, got {self.units}; nothing was planned"
            )
        for name, low, value, high in (
            ("width", 1, self.width, 2**28),
            ("messages", 1, self.messages, MOST_MESSAGES),
            ("bits", 1, self.bits, MOST_BITS),
        ):
            if not low <= value <= high:
                raise _outside(name, f"{low}..{high}", value)
        if not 0 < self.epsilon <= MOST_EPSILON:
            raise _outside("epsilon", f"(0, {MOST_EPSILON}]", self.epsilon)
        if not 0 < self.delta < 1:
            raise _outside("delta", "(0, 1)", self.delta)
        if not 0 < self.decay <= 1:
            raise _outside("decay", "(0, 1]", self.decay)
        # Of each level by itself: a sum of losses of which one is negative would hide another.
        for scale in self.scales:
            if scale * MOST_EPSILON < UNITS:
                raise _outside("scale", f"{UNITS // MOST_EPSILON}..", scale)
        if not self.scales or self.last_level > self.area.grid.levels or self.first_level < 0:
            raise InvalidParameter(
                f"levels must lie in 0..{self.area.grid.levels}, got {self.first_level}..{self.last_level}; "
                "nothing was planned"
            )
        if 4**self.first_level > self.width:
            raise _outside("4**first_level", f"1..{self.width} (the width)", 4**self.first_level)
        if self.adder == self.shuffler:
            raise InvalidParameter(
                "the shuffler and the adder must be two, got the same keys for both; nothing was planned"
            )
        spent, mixed = self.cost
        if spent > self.epsilon or mixed > self.delta:
            raise InvalidParameter(
                f"a plan costs no more than it says, epsilon {float(self.epsilon):g} and delta "
                f"{float(self.delta):g}; this one costs {float(spent):g} and {float(mixed):g}; nothing was sent"
            )

    @property
    def last_level(self) -> int:
        """The finest level that is counted."""
        return self.first_level + len(self.scales) - 1

    @property
    def cells_by_level(self) -> tuple[int, ...]:
        """How many cells are asked for in each round, at most."""
        found, looked_at = [], 4**self.first_level
        for _ in self.scales:
            found.append(looked_at)
            looked_at = 4 * min(looked_at, self.width)
        return tuple(found)

    @property
    def cells(self) -> int:
        """How many counts there are in all rounds, at most."""
        return sum(self.cells_by_level)

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta of all rounds, from the noise and the messages."""
        spent = sum((UNITS / scale for scale in self.scales), Fraction(0))
        distance = mixing_distance(self.trust.honest, self.messages, self.bits)
        return spent, mixed_delta(spent, distance, self.cells)

    @property
    def record(self) -> int:
        """Bytes of one message as it is sealed to the adder."""
        return OVERHEAD + INDEX + (self.bits + 7) // 8

    def report_bytes(self, cells: int) -> int:
        """Bytes of one device's report of so many cells, as it is sealed to the shuffler."""
        return OVERHEAD + TOKEN + 1 + cells * self.messages * self.record

    @property
    def bytes_a_device(self) -> int:
        """What a device sends in all rounds, at most."""
        return sum(map(self.report_bytes, self.cells_by_level))

    @property
    def shuffler_bytes(self) -> int:
        """Memory that the shuffler needs: reports of the largest round, their mixed copy, and an order."""
        return 3 * self.trust.devices * self.report_bytes(max(self.cells_by_level))

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the plan: everything that is sealed or signed is so for it."""
        return hashlib.sha256(canonical(self.to_json()).encode()).digest()

    def level_scale(self, level: int) -> Fraction:
        """The scale of the noise of a level in units of a device, of which honest shares add up to it."""
        return self.scales[level - self.first_level] * self.units / UNITS

    def to_json(self) -> dict[str, Any]:
        """The plan as its file states it."""
        area = self.area
        return {
            "format": FORMAT,
            "title": self.title,
            "area": {
                "grid": area.grid.to_json(),
                "bounds": list(area.bounds),
                "kind": area.kind,
            },
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "trust": encode_model(self.trust),
            "width": self.width,
            "decay": self.decay,
            "first_level": self.first_level,
            "scales": list(map(str, self.scales)),
            "units": self.units,
            "messages": self.messages,
            "bits": self.bits,
            "adder": str(self.adder),
            "shuffler": str(self.shuffler),
        }

    @staticmethod
    def from_json(data: Any) -> ShufflePlan:
        """The plan that JSON states; InvalidInput where it states none that this version knows."""
        try:
            if data["format"] != FORMAT:
                raise InvalidInput(f"the format is {data['format']!r}, not {FORMAT!r}")
            area, trust = data["area"], decode_model(data["trust"])
            if not isinstance(trust, Shuffled):
                raise InvalidInput("it is not of the shuffled model")
            whole = {
                name: _whole(data[name])
                for name in ("width", "first_level", "units", "messages", "bits")
            }
            west, south, east, north = map(float, area["bounds"])
            return ShufflePlan(
                Area(Grid.from_json(area["grid"]), (west, south, east, north), area["kind"]),
                exact(data["epsilon"], name="epsilon"),
                exact(data["delta"], name="delta"),
                trust,
                decay=float(data["decay"]),
                scales=tuple(exact(scale, name="scale") for scale in data["scales"]),
                adder=PublicKeys.from_text(data["adder"]),
                shuffler=PublicKeys.from_text(data["shuffler"]),
                title=str(data["title"]),
                **whole,
            )
        except (KeyError, TypeError, ValueError, ArithmeticError) as problem:
            raise InvalidInput(
                f"not a plan of a shuffled map: {problem}; nothing was sent"
            ) from problem

    def write(self, path: str | Path) -> None:
        """Write the plan to a file that is not there."""
        write_json(path, self.to_json())


def read_plan(path: str | Path) -> ShufflePlan:
    """The plan of a file.

    Args:
        path: The file that `sfumato shuffle plan` wrote.

    Returns:
        The plan, whose cost was computed again.

    Raises:
        InvalidInput: It is no such file, or costs more than it says.

    """
    what = "a plan of a shuffled map"
    return ShufflePlan.from_json(read_json(path, what, undone="nothing was sent"))


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise InvalidInput(f"{value!r} is no whole number")
    return value


def _outside(name: str, rule: str, value: Any) -> InvalidParameter:
    return InvalidParameter(
        f"{name} of a plan must lie in {rule}, got {str(value)[:40]}; nothing was planned or sent"
    )
