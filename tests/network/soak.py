"""The long form of the collector's faults: `make soak` prints the table that docs/how-to/network.md has."""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.network.kills import cycles
from tests.network.networks import START, Twin, corridor, twins
from tests.network.test_collector import Clock, config_of

from sfumato.network.collector import Collector, open_store


def memory() -> float:
    """What this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def kills(folder: Path, count: int) -> str:
    """So many lives of a collector: what was lost, or taken twice."""
    hall = corridor(4)
    devices, config = twins(hall), config_of(folder, hall)
    warm = replace(config, store=str(folder / "warm.sqlite"))
    collector = Collector(warm, clock=Clock(), threads=False)
    for twin in devices:
        collector.take(*Twin(hall, twin.place).send(0, 0.2))
    collector.turn()
    collector.close()
    sender = cycles(config, devices, count, start=START, seed=24)
    store = open_store(config.store, site=hall.digest)
    packets, rounds = store.packets_since(0), store.rounds_since(0)
    store.close()
    twice = len(packets) - len({(one.device, one.step, one.first) for one in packets})
    there = {one.round for one in packets if not one.late}
    lost = len(there - {one.round for one in rounds if one.state == "recovered"})
    return (
        f"{sender.number} packets sent, {len(packets)} kept, {len(sender.unacknowledged)} lost, {twice} taken "
        f"twice; {len(rounds)} rounds recovered, {lost} accepted ones lost"
    )


def malformed(folder: Path, count: int) -> str:
    """So many payloads that are no packets, and forged ones: what was taken, and how memory grew."""
    hall, rng = corridor(6), np.random.default_rng(24)
    collector = Collector(config_of(folder, hall), clock=Clock(), threads=False)
    good = twins(hall)[0].send(0, 0.5)
    taken, start, before = 0, time.process_time(), 0.0
    for number in range(count):
        if number == count // 10:
            before = memory()
        payload = bytearray(rng.bytes(int(rng.integers(0, 400))))
        if number % 3 == 0:
            payload = bytearray(good[1])
            payload[int(rng.integers(0, len(payload)))] ^= 1 << int(rng.integers(0, 8))
        topic = good[0] if number % 2 else f"sfumato/1/hall/{number}/readings"
        taken += collector.take(topic, bytes(payload)) == "taken"
    grown, spent = memory() - before, time.process_time() - start
    collector.close()
    rate = f"{count / spent:.0f} a second of the processor"
    return f"{taken} taken, no crash, memory grew by {grown:.1f} MB; {rate}"


def main() -> None:
    """Both, as a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--malformed", type=int, default=100_000)
    asked = parser.parse_args()
    print("| fault | what came of it |\n|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        print(
            f"| kill -9 of the collector, {asked.kills} times | {kills(Path(folder), asked.kills)} |"
        )
    with tempfile.TemporaryDirectory() as folder:
        told = malformed(Path(folder), asked.malformed)
        print(f"| {asked.malformed} malformed or forged payloads | {told} |")


if __name__ == "__main__":
    main()
