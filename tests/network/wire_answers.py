"""Known answers of packets, as the package makes them.

python -m tests.network.wire_answers > contracts/wire-v1.json
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from typing import Any

from sfumato.network import Packet, WireLoss, WireWindow, encode, sealed
from sfumato.network.sensors import device_lattice
from sfumato.network.wire import Status
from sfumato.privacy import ZCDP, DiscreteGaussian, GaussianLaw, RoundedGaussianLaw
from sfumato.privacy.noise import keyed_draws
from sfumato.sensing import NoisePlan, Site, describe_site, heat_line, plan
from sfumato.sensing.model.operators.weighted import weighted
from sfumato.sensing.release import MasterKey, StepKeys
from sfumato.sensing.release.keys import noise_key

MASTER = bytes(range(32))
SITE = bytes(range(100, 116)).hex()


def cases() -> list[tuple[Packet, list[int], Status]]:
    """Both laws, one block and two, steps after the first, names beyond ASCII, windows and none, dummies."""
    master = MasterKey(MASTER).id
    return [
        (
            Packet(
                master, "door", SITE, _epoch(0), 0, 1_795_000_000_000, 1000, "gaussian", 4.0, -3,
                WireLoss("rho", 0.01), WireLoss("rho", 1.25), WireWindow(29_916_660, 60), (0,), (0,),
            ),
            [21],
            "read",
        ),
        (
            Packet(
                master, "Tür 🚪", SITE, _epoch(3), 7, 1_795_000_060_000, 60_000, "gaussian", 5000.5,
                -12, WireLoss("rho", 2.8e-7), WireLoss("epsilon", 0.5, 1e-6), None, (2, 5, 63),
                (0, 0, 0),
            ),
            [-1, 2**48, -(2**48)],
            "held",
        ),
        (
            Packet(
                master, "gateway~2", SITE, _epoch(1), 2**24, 0, 250, "rounded-gaussian", 64.0, 4,
                WireLoss("epsilon", 1.0, 1e-6), WireLoss("epsilon", 0.0, 0.0),
                WireWindow(29_916_000, 1440), (65_535, 0), (0, 0), rehearsal=True,
            ),
            [0, 1000],
            "none",
        ),
    ]  # fmt: skip


def made(blank: Packet, units: list[int], status: Status) -> dict[str, Any]:
    """All that goes into a packet, and the bytes that come out."""
    master = MasterKey(MASTER)
    keys = StepKeys(master, blank.device, blank.step)
    step_key = master.device(blank.device, step=blank.step)
    law = (GaussianLaw if blank.law == "gaussian" else RoundedGaussianLaw)(blank.sigma)
    noise = keyed_draws(
        noise_key(step_key), blank.epoch, law, first=blank.first, size=len(units)
    ).tolist()
    values = tuple(unit + draw for unit, draw in zip(units, noise, strict=True))
    given = asdict(blank) | {"epoch": blank.epoch.hex()}
    for name in ("values", "masked_status", "code", "check"):
        del given[name]
    packet = Packet(
        **{name: getattr(blank, name) for name in Packet.__dataclass_fields__} | {"values": values}
    )
    whole = sealed(packet, keys.sign, check_key=master.check_key(blank.device), status=status)
    return {
        "master_key": MASTER.hex(),
        "step_key": step_key.hex(),
        "check_key": master.check_key(blank.device).hex(),
        "units": units,
        "status": status,
        **given,
        "payload": encode(whole).hex(),
    }


def _epoch(step: int) -> bytes:
    return step.to_bytes(4, "big") + bytes(range(200, 208))


def answers() -> list[dict[str, Any]]:
    """All of them."""
    return [made(*case) for case in cases()]


def refused() -> list[dict[str, Any]]:
    """What must be refused: two blocks a draw, and the last draw beyond the counters of the epoch."""
    blank, units, status = cases()[1]
    blank = replace(blank, first=2**31 - 2)
    head = bytearray(encode(blank)[: 113 + len(blank.device.encode())])
    head[57] = ("read", "held", "none").index(status)
    whole = made(replace(blank, first=0), units, status) | {"first": blank.first}
    del whole["payload"]
    return [whole | {"head": head.hex()}]


def lattices() -> list[dict[str, Any]]:
    """Counts of sensors of one site, each with its own noise, and the lattice units that they become."""
    site, noise = weighted_site()
    found = []
    for name in ("0", "1", "3"):
        one = device_lattice(site, noise, name)
        # About its level, what is nearest to half a unit, and the ends of what fits.
        level = site.level.of([name], None)[0] / site.step if site.level else 0
        counts = [*range(int(level) - 40, int(level) + 44, 7), 0, 2**31 - 1, -(2**31)]
        found.append(asdict(one) | {"counts": counts, "units": [one.unit(x) for x in counts]})
    return found


def weighted_site() -> tuple[Site, NoisePlan]:
    """Four sensors of a corridor: gains 1, 3, none and 11/32, in a unit of its own, above a level.

    With noise of round numbers, so that the answers do not hang on how a machine rounds exponentials.
    """
    line = heat_line(sources=16, sensors=4, diffusion_time=0.05)
    made = describe_site(
        "hall", operator=line, radius="1/8", unit="C", per_source="7/9", ambient="20.5",
        offsets={"3": "-1/3"}, largest=12, step="1/16",
    ).site  # fmt: skip
    site = replace(made, operator=weighted(line, [1, 3, 0, 11 / 32]))
    noise = plan(site, ZCDP("1/50"))
    return site, replace(noise, exponent=-8, mechanism=DiscreteGaussian(4096))


if __name__ == "__main__":
    json.dump(
        {
            "format": "sfumato-wire/1",
            "specification": "docs/reference/wire.md",
            "answers": answers(),
            "refused": refused(),
            "lattices": lattices(),
        },
        sys.stdout,
        indent=1,
    )
    sys.stdout.write("\n")
