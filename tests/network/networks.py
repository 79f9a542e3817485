"""A small network without a wire: devices that make packets, and a site that they are of."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field

import numpy as np

from sfumato.network.topics import readings_topic
from sfumato.network.wire import Packet, WireLoss, WireWindow, encode, sealed
from sfumato.sensing import Site, heat_line
from sfumato.sensing.pipeline import describe_site

PERIOD = 1000
START = 1_790_000_000_000
EXPONENT = -10
SIGMA = 50.0


def corridor(sensors: int = 6) -> Site:
    """A corridor with a few sensors."""
    line = heat_line(sources=40, sensors=sensors, diffusion_time=0.01)
    return describe_site("hall", operator=line, radius="1/100", unit="mass", per_source=1).site


@dataclass
class Twin:
    """A device that needs no key file: it makes packets whose check code is right."""

    site: Site
    place: int
    name: str = ""
    step: int = 1
    check_key: bytes = b""
    epoch: bytes = b""
    draws: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.name = self.name or self.site.sensors.names[self.place]
        self.check_key = self.check_key or self.name.encode().ljust(32, b"k")[:32]
        self.epoch = self.epoch or self.step.to_bytes(4, "big") + os.urandom(8)

    @property
    def topic(self) -> str:
        return readings_topic(self.site.name, self.name)

    def packet(self, number: int, value: float, **changed: object) -> Packet:
        """The packet of a round; fields may be changed before it is sealed."""
        fields: dict[str, object] = {
            "key_id": "00" * 8,
            "device": self.name,
            "site": self.site.digest[:32],
            "epoch": self.epoch,
            "first": next(self.draws),
            "round_ms": START + number * PERIOD,
            "period_ms": PERIOD,
            "law": "gaussian",
            "sigma": SIGMA,
            "exponent": EXPONENT,
            "cost": WireLoss("rho", 0.25),
            "left": WireLoss("rho", max(0.0, 100 - 0.25 * abs(number + 1))),
            "window": WireWindow(START // 60000, 60),
            "sensors": (self.place,),
            "values": (round(value * 2.0**-EXPONENT),),
        } | changed
        return sealed(
            Packet(**fields),  # type: ignore[arg-type]
            lambda message: "00" * 32,
            check_key=self.check_key,
            status="read",
        )

    def send(self, number: int, value: float, **changed: object) -> tuple[str, bytes]:
        """Topic and payload of a round."""
        return self.topic, encode(self.packet(number, value, **changed))


def twins(site: Site) -> list[Twin]:
    """One device for each sensor."""
    return [Twin(site, place) for place in range(len(site.sensors))]


def readings_at(site: Site, cell: int, rng: np.random.Generator) -> list[float]:
    """What sensors read of a source in a cell, with their noise."""
    exact = site.operator.columns([cell])[:, 0]
    return [float(v) for v in exact + rng.normal(0, SIGMA * 2.0**EXPONENT, exact.size)]
