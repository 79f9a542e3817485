"""A collector that is killed at any moment loses no accepted packet and no round, and takes none twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.network.kills import cycles
from tests.network.networks import START, Twin, corridor, twins
from tests.network.test_collector import config_of

from sfumato.network.collector import Collector, open_store

pytestmark = pytest.mark.fault

CYCLES = 20


def test_twenty_kills_lose_nothing_that_was_accepted(tmp_path: Path) -> None:
    hall = corridor(4)
    devices = twins(hall)
    config = config_of(tmp_path, hall)
    # Solvers are read here, once, and not by every collector that is forked.
    warm = Collector(
        replace(config, store=str(tmp_path / "warm.sqlite")), clock=lambda: START, threads=False
    )
    for twin in devices:
        warm.take(*Twin(hall, twin.place).send(0, 0.2))
    warm.turn()
    warm.close()
    sender = cycles(config, devices, CYCLES, start=START, seed=4)
    assert not sender.unacknowledged
    store = open_store(config.store, site=hall.digest)
    packets, rounds = store.packets_since(0), store.rounds_since(0)
    store.close()
    # All that was acknowledged is there, once; the numbers of their draws say which.
    kept = {(packet.device, packet.first) for packet in packets}
    assert len(kept) == len(packets) == sender.number
    in_time = {packet.round for packet in packets if not packet.late}
    assert {one.round for one in rounds} == in_time
    assert {one.state for one in rounds} == {"recovered"}
    assert len(rounds) > CYCLES
    for one in rounds:
        there = {
            packet.device for packet in packets if packet.round == one.round and not packet.late
        }
        assert set(one.sensors.split("\t")) <= there
        assert set(json.loads(one.recovery)["readings"]) == set(one.sensors.split("\t"))
