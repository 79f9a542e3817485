"""The long form of a network's faults, on real processes: `make soak` prints the table of the how-to."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.network.soak import attacks, faults, kills, timing
from tests.network.soak.system import Network, running

Told = tuple[bool, str]


def in_network(work: Callable[[Network], Told], **more: int) -> Callable[[Path], Told]:
    """A fault of a network of its own, that runs."""

    def told(folder: Path) -> Told:
        with running(folder, **more) as network:
            return work(network)

    return told


def timed(folder: Path) -> Told:
    """One sensor and a broker, without a collector."""
    network = Network(folder, sensors=1, period_ms=50)
    try:
        return timing.correlations(network, 2000, seed=24)
    finally:
        network.close()


FAULTS: dict[str, tuple[str, Callable[[Path], Told]]] = {
    "kills": (
        "kill -9 of sensors, broker and collector at random moments, 200 times",
        in_network(lambda network: kills.kill_cycles(network, 200, seed=24)),
    ),
    "away": (
        "the broker is away for a minute",
        in_network(lambda network: faults.broker_away(network, 60)),
    ),
    "clocks": (
        "clocks jump both ways",
        lambda folder: faults.clocks_jump(folder, (30, -30, 3, -3, 3600)),
    ),
    "disk": (
        "the disk is full for 10 s, the collector's and then a sensor's",
        in_network(lambda network: faults.disk_full(network, 10)),
    ),
    "flood": (
        "10,000 forged messages a second for 20 s beside 50 sensors",
        in_network(
            lambda network: attacks.flood(network, rate=10_000, seconds=20),
            sensors=50,
            period_ms=1000,
        ),
    ),
    "malformed": (
        "100,000 malformed payloads",
        in_network(lambda network: attacks.malformed(network, 100_000, seed=24)),
    ),
    "keys": ("a sensor replaced, and one stolen", in_network(faults.replaced_and_stolen)),
    "timing": ("value against time and size, 2,000 packets", timed),
}


def main() -> int:
    """The faults that are asked for as rows of a table; 1 if one of them did harm."""
    parser = argparse.ArgumentParser(prog="python -m tests.network.soak")
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=", ".join(FAULTS))
    asked = parser.parse_args().faults or list(FAULTS)
    harmed = []
    print("| fault | what came of it |\n|---|---|")
    for name in asked:
        what, work = FAULTS[name]
        with tempfile.TemporaryDirectory() as folder:
            is_sound, told = work(Path(folder))
        print(f"| {what} | {told} |", flush=True)
        harmed += [] if is_sound else [name]
    print(f"harmed by: {', '.join(harmed) or 'none'}", file=sys.stderr)
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
