"""Known answers of whole seals, as the package makes them.

    python -m tests.sensing.seal_answers > contracts/seals-v1.json

Each case is a made-up site with a ledger and a device of its own; the readings are made up too.
"""

from __future__ import annotations

import json
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.privacy import ZCDP, ApproxDP, Ledger, MovedMass, SwappedCells
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.model.site import Site
from sfumato.sensing.release.exact import in_sources
from sfumato.sensing.release.keys import Device, MasterKey, write_device_key
from sfumato.sensing.release.noise_plan import unit_of
from sfumato.sensing.release.readings import plan, quantise, release_snapshot
from sfumato.spaces import Graph, Grid

MASTER = bytes(range(32))


def cases() -> list[tuple[Site, ZCDP | ApproxDP, dict[str, Any]]]:
    """Sites with lines, grids and graphs; both laws; names and times beyond ASCII; steps after the first."""
    line = heat_line(
        sources=40, sensors=Sensors([0.1, 0.4, 0.9], ["a", "b", "c"]), diffusion_time=0.05
    )
    plane = heat_plane(sources=Grid(2), sensors=[(0.25, 0.5), (0.75, 0.5)], diffusion_time=1e-5)
    graph = graph_diffusion(Graph([(0, 1), (1, 2), (2, 3)]), 0.5)
    return [
        (
            Site("hall", line, MovedMass("1/10", "line"), unit="mass", per_source=Fraction(1)),
            ApproxDP(1, "1/1000000"),
            {"device": "door", "starts": 1, "values": {"a": 0.5, "b": -0.25, "c": 3.0}, "time": ""},
        ),
        (
            Site(
                "hall", line, MovedMass("1/10", "line"), unit="°C", per_source=Fraction(4, 5),
                largest=Fraction(100),
            ),
            ZCDP("1/100"),
            {"device": "gateway 2", "starts": 4, "values": {"c": 1.5, "a": 1e9}, "time": "2026-01-02 03:04"},
        ),
        (
            Site("Küche", plane, MovedMass("1/10", plane.space.metric), unit="mass", per_source=Fraction(1)),
            ApproxDP(2, "1/1000"),
            {"device": "Tür 🚪", "starts": 2, "values": {"0": 1.0, "1": 0.0}, "time": "früh \"8\""},
        ),
        (
            Site("net", graph, SwappedCells(1), unit="mass", per_source=Fraction(1)),
            ZCDP("1/2"),
            {"device": "node", "starts": 1, "values": {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.4}, "time": "t"},
        ),
    ]  # fmt: skip


def made(site: Site, loss: ZCDP | ApproxDP, given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One known answer: all that goes into a seal, and the snapshot that comes out."""
    noise = plan(site, loss)
    budget = ZCDP(10) if isinstance(loss, ZCDP) else ApproxDP(10, "1/100")
    book = Ledger.create(
        folder / "one.ledger", budget, unit=unit_of(site.sensors), source=site.name,
        neighbors=site.neighbors, model="local",
    )  # fmt: skip
    write_device_key(folder / "d.key", MasterKey(MASTER), given["device"])
    for _ in range(given["starts"]):
        device = Device(folder / "d.key")
    # The second snapshot of a start, so that draws begin later than at 0.
    for _ in range(2):
        snapshot = release_snapshot(
            given["values"],
            site,
            noise,
            ledger=book,
            device=device,
            time=given["time"],
            note="made up",
        )
    readings = np.array([given["values"][name] for name in snapshot.names])
    return {
        "master_key": MASTER.hex(),
        "site": site.to_json(),
        "site_digest": site.digest,
        "units": quantise(in_sources(readings, site), noise.exponent).tolist(),
        "snapshot": snapshot.to_json(),
    }


def answers() -> list[dict[str, Any]]:
    """All of them, each in a folder of its own."""
    found = []
    for site, loss, given in cases():
        with tempfile.TemporaryDirectory() as folder:
            found.append(made(site, loss, given, Path(folder)))
    return found


if __name__ == "__main__":
    json.dump(
        {
            "format": "sfumato-seals/1",
            "specification": "docs/reference/keyed-noise.md#sealing",
            "answers": answers(),
        },
        sys.stdout,
        indent=1,
    )
    sys.stdout.write("\n")
