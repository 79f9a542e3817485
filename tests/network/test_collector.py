"""The collector without a broker: rounds recovered with those present, kept, taken up again, bounded."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.network.networks import PERIOD, START, Twin, corridor, readings_at, twins

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.network.collector import Collector, NetworkConfig, Recovered, read_rounds, recoveries
from sfumato.network.collector import collector as collector_module
from sfumato.network.collector.closed_rounds import RoundLines
from sfumato.network.collector.collector import Output
from sfumato.network.collector.home_assistant import HomeAssistant
from sfumato.network.collector.rounds import BEHIND_MS, ClosedRound
from sfumato.network.collector.state import Promise
from sfumato.network.collector.store import StoredPacket, StoreFailed
from sfumato.network.wire import WireLoss, WireWindow
from sfumato.sensing import Site
from sfumato.sensing.release import CheckKeys, write_check_keys
from sfumato.sensing.results import RecoveryResult

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def hall() -> Site:
    return corridor()


class Clock:
    """Milliseconds that a test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


class Heard:
    """An output that remembers what it was told."""

    def __init__(self) -> None:
        self.rounds: list[Recovered] = []

    def round(self, done: Recovered, _: object) -> None:
        self.rounds.append(done)

    def close(self) -> None:
        pass


def keyed(folder: Path, site: Site, *more: Twin) -> Path:
    file = folder / "check-keys.json"
    keys = {twin.name: twin.check_key for twin in [*twins(site), *more]}
    write_check_keys(file, CheckKeys("00" * 8, keys), overwrite=True)
    return file


def config_of(folder: Path, site: Site, **more: object) -> NetworkConfig:
    told = {"estimator": "least", "track": 0, "store": str(folder / "rounds.sqlite")} | more
    return NetworkConfig(site, PERIOD, check_keys=keyed(folder, site), **told)  # type: ignore[arg-type]


def feed(
    collector: Collector, devices: list[Twin], number: int, rng: np.random.Generator
) -> list[str]:
    """A round of all these devices, of a source in cell 20."""
    values = readings_at(devices[0].site, 20, rng)
    return [collector.take(*twin.send(number, values[twin.place])) for twin in devices]


def walk(
    collector: Collector, clock: Clock, devices: list[Twin], rounds: range, rng: np.random.Generator
) -> None:
    for number in rounds:
        clock.now = START + number * PERIOD
        feed(collector, devices, number, rng)
        collector.turn()


def test_rounds_are_recovered_kept_and_told(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock, heard = Clock(), Heard()
    config = config_of(tmp_path, hall, track=4)
    collector = Collector(config, clock=clock, threads=False, outputs=[heard])
    walk(collector, clock, twins(hall), range(4), rng)
    state = collector.state
    collector.close()
    assert state.accepted == 24
    assert state.rounds == {"recovered": 4, "skipped": 0, "failed": 0}
    assert state.last is not None
    assert state.last.missing == ()
    assert state.track is not None
    assert len(state.track.rounds) == 4
    assert state.promise is not None
    assert (state.promise.cost, state.promise.left, state.promise.rounds) == (0.25, 99.0, 4)
    assert json.loads(json.dumps(state.to_json()))["last"]["time"] == heard.rounds[-1].closed.time
    kept = read_rounds(config.store, site=hall.digest)
    assert [one.state for one in kept] == ["recovered"] * 4
    again = RecoveryResult.from_json(json.loads(kept[0].recovery), hall)
    assert heard.rounds[0].found is not None
    assert heard.rounds[0].found.recovery is not None
    assert again.sources() == heard.rounds[0].found.recovery.sources()


def test_missing_late_and_double_sensors_are_solved_without_and_said(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock, heard = Clock(), Heard()
    config = config_of(tmp_path, hall)
    collector = Collector(config, clock=clock, threads=False, outputs=[heard])
    devices = twins(hall)
    feed(collector, devices[1:], 0, rng)
    late = devices[0].send(0, 0.1)
    assert collector.take(*devices[1].send(0, 0.1)) == "taken"  # in the queue: told apart when kept
    collector.turn()
    assert not heard.rounds
    clock.now += PERIOD + 500
    collector.turn()
    assert heard.rounds[0].closed.missing == (hall.sensors.names[0],)
    assert heard.rounds[0].found is not None
    assert collector.take(*late) == "taken"
    collector.turn()
    assert collector.state.refused == {"duplicate": 1, "late": 1}
    assert [p.late for p in collector.store.last_packets(devices[0].name, 5)] == [True]
    assert len(heard.rounds) == 1
    collector.close()


@pytest.mark.fault
@pytest.mark.parametrize(
    "cost",
    [WireLoss("rho", 1e6), WireLoss("epsilon", 1e6, 0.5), WireLoss("epsilon", 1.0, 1e-300)],
)
def test_no_cost_that_a_device_states_stops_the_rounds(
    hall: Site, tmp_path: Path, rng: np.random.Generator, cost: WireLoss
) -> None:
    clock = Clock()
    collector = Collector(config_of(tmp_path, hall), clock=clock, threads=False)
    one, *others = twins(hall)
    feed(collector, others, 0, rng)
    assert collector.take(*one.send(0, 0.1, cost=cost)) == "taken"
    collector.turn()
    assert sum(collector.state.rounds.values()) == 1
    json.dumps(collector.state.to_json(), allow_nan=False)
    collector.close()


def test_what_is_deleted_is_not_needed_still(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    """A window is longer than `keep_days`: its rounds were paid for; and no replay opens one again."""
    clock, devices = Clock(), twins(hall)
    replayed = devices[0].send(0, 0.1)
    first = Collector(config_of(tmp_path, hall), clock=clock, threads=False)
    assert first.take(*replayed) == "taken"
    walk(first, clock, devices[1:], range(1), rng)
    walk(first, clock, devices, range(1, 3), rng)
    assert first.state.promise is not None
    paid = first.state.promise.rounds
    assert paid == 3
    first.forget_before(clock.now // PERIOD + 1)
    first.close()
    second = Collector(config_of(tmp_path, hall), clock=clock, threads=False)
    assert second.take(*replayed) != "taken"
    walk(second, clock, devices, range(3, 4), rng)
    assert second.state.promise is not None
    assert second.state.promise.rounds == paid + 1
    # What is of another window goes.
    clock.now += 10 * 3_600_000
    later = WireWindow((START + 10 * 3_600_000) // 60000, 60)
    for device in devices:
        second.take(*device.send(36_000, 0.1, window=later))
    clock.now += 4 * PERIOD
    second.turn()
    second.forget_before(clock.now // PERIOD)
    assert second.store.count_rounds(0) == 1
    second.close()


@pytest.mark.fault
def test_outputs_and_a_store_that_fail_are_said_and_stop_nothing(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock, heard = Clock(), Heard()
    outputs: list[Output] = [RoundLines("/dev/full"), heard]
    collector = Collector(config_of(tmp_path, hall), clock=clock, threads=False, outputs=outputs)
    devices = twins(hall)
    walk(collector, clock, devices, range(1), rng)
    assert len(heard.rounds) == 1
    assert "cannot append to /dev/full: No space left" in collector.state.store_problem
    read = collector.store._file  # type: ignore[attr-defined]
    read.execute("DROP TABLE rounds")
    collector._window = (None, 0)
    walk(collector, clock, devices, range(1, 2), rng)
    collector.forget_before(0)
    assert "no such table" in collector.state.store_problem
    assert (len(heard.rounds), collector.state.promise) == (2, None)
    collector.close()


@pytest.mark.fault
@pytest.mark.parametrize(
    "odd",
    [
        {"exponent": 400, "values": (2**62,)},
        {"exponent": 400, "sigma": 1e25},
        {"sigma": 1e-140},
        {"sigma": 1e-140, "values": (2**62,)},
    ],
)
def test_one_odd_device_does_not_spoil_the_round_of_the_others(
    hall: Site, tmp_path: Path, rng: np.random.Generator, odd: dict[str, object]
) -> None:
    collector = Collector(config_of(tmp_path, hall), clock=Clock(), threads=False)
    one, *others = twins(hall)
    feed(collector, others, 0, rng)
    assert collector.take(*one.send(0, 0.1, **odd)) == "taken"
    collector.turn()
    assert collector.state.rounds["recovered"] == 1
    assert collector.state.last is not None
    assert collector.state.last.missing == (hall.sensors.names[0],)
    assert collector.state.devices[0].refused == {"odd-noise": 1}
    collector.close()


@pytest.mark.fault
def test_a_track_that_fails_costs_no_recovery(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock = Clock()
    collector = Collector(config_of(tmp_path, hall, track=2), clock=clock, threads=False)
    one, *others = twins(hall)
    for number in range(2):
        clock.now = START + number * PERIOD
        feed(collector, others, number, rng)
        collector.take(*one.send(number, 0.0, values=(2**62,)))
        collector.turn()
    assert (collector.state.rounds["recovered"], collector.state.track) == (2, None)
    collector.close()


@pytest.mark.fault
def test_a_promise_that_cannot_be_added_up_is_left_out(
    hall: Site, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Promise:
        raise InvalidParameter("too large to add up")

    monkeypatch.setattr(collector_module, "promise_of", refuse)
    clock = Clock()
    collector = Collector(config_of(tmp_path, hall), clock=clock, threads=False)
    walk(collector, clock, twins(hall), range(1), rng)
    assert (collector.state.rounds["recovered"], collector.state.promise) == (1, None)
    collector.close()


def test_a_collector_takes_up_where_it_was_left(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock = Clock()
    config = config_of(tmp_path, hall)
    devices = twins(hall)
    first = Collector(config, clock=clock, threads=False)
    walk(first, clock, devices, range(2), rng)
    clock.now += PERIOD
    half = [twin.send(2, 0.2) for twin in devices]
    assert [first.take(*one) for one in half[:3]] == ["taken"] * 3
    first.turn()
    # No close: as if it was killed. What was accepted is in the store.
    heard = Heard()
    second = Collector(config, clock=clock, threads=False, outputs=[heard])
    assert [second.take(*one) for one in half[:3]] == ["resent"] * 3
    assert [second.take(*one) for one in half[3:]] == ["taken"] * 3
    second.turn()
    assert [len(one.closed.packets) for one in heard.rounds] == [6]
    assert second.state.promise is not None
    assert second.state.promise.rounds == 3  # what was paid before counts
    second.close()
    first.store.close()
    assert [one.state for one in read_rounds(config.store, site=hall.digest)] == ["recovered"] * 3


def test_rounds_that_were_open_are_finished_however_late(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock, config = Clock(), config_of(tmp_path, hall)
    first = Collector(config, clock=clock, threads=False)
    devices = twins(hall)
    walk(first, clock, devices, range(2), rng)
    feed(first, devices[:4], 2, rng)
    first.turn()
    first.store.close()  # as if it was killed
    clock.now += 100 * config.horizon_ms
    second = Collector(config, clock=clock, threads=False)
    second.turn()
    assert second.state.waiting == 1  # the broker may have more of it
    clock.now += BEHIND_MS
    second.turn()
    assert [one.round for one in second.store.rounds_since(0)] == [
        START // PERIOD + n for n in range(3)
    ]
    # What comes for it now is kept, and opens nothing, after another start as well.
    assert second.take(*devices[4].send(2, 0.1)) == "taken"
    second.close()
    third = Collector(config, clock=clock, threads=False)
    assert (third.state.waiting, len(third.store.packets_since(0))) == (0, 17)
    third.close()


def test_a_store_that_is_full_accepts_nothing_until_it_is_not(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock, acknowledged = Clock(), []
    config = config_of(tmp_path, hall)
    collector = Collector(config, clock=clock, threads=False)
    kept, full = collector.store.add_packets, True

    def add(packets: list[StoredPacket]) -> None:
        if full:
            raise StoreFailed("the store is full")
        kept(packets)

    collector.store.add_packets = add  # type: ignore[method-assign, assignment]
    for twin in twins(hall):
        topic, payload = twin.send(0, 0.2)
        collector.take(topic, payload, lambda: acknowledged.append(1))
    collector.turn()
    assert (len(acknowledged), collector.state.accepted) == (0, 0)
    assert collector.state.store_problem == "the store is full"
    full = False
    collector.turn()
    assert (len(acknowledged), collector.state.accepted) == (6, 6)
    assert collector.state.rounds["recovered"] == 1
    collector.close()


@pytest.mark.fault
def test_what_comes_again_is_not_acknowledged_before_it_is_kept(hall: Site, tmp_path: Path) -> None:
    collector = Collector(config_of(tmp_path, hall), clock=Clock(), threads=False)
    kept, acknowledged = collector.store.add_packets, list[int]()

    def full(_: object) -> None:
        raise StoreFailed("the store is full")

    collector.store.add_packets = full  # type: ignore[method-assign, assignment]
    message = twins(hall)[0].send(0, 0.2)
    assert collector.take(*message, lambda: acknowledged.append(1)) == "taken"
    assert collector.take(*message, lambda: acknowledged.append(2)) == "resent"  # in the queue
    collector.turn()
    assert collector.take(*message, lambda: acknowledged.append(3)) == "resent"  # not kept
    assert acknowledged == []
    collector.store.add_packets = kept  # type: ignore[method-assign]
    collector.turn()
    assert acknowledged == [1, 2, 3]
    assert collector.take(*message, lambda: acknowledged.append(4)) == "resent"
    assert acknowledged == [1, 2, 3, 4]
    collector.close()


def test_the_queue_is_bounded_and_what_does_not_fit_is_not_acknowledged(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock, acknowledged = Clock(), []
    collector = Collector(config_of(tmp_path, hall), clock=clock, threads=False, queue_size=4)
    devices = twins(hall)
    messages = [twin.send(0, 0.2) for twin in devices]
    told = [collector.take(*one, lambda: acknowledged.append(1)) for one in messages]
    assert told == ["taken"] * 4 + ["queue-full"] * 2
    collector.turn()
    assert len(acknowledged) == 4
    # The broker sends again what nobody acknowledged.
    assert [collector.take(*one) for one in messages[4:]] == ["taken"] * 2
    collector.turn()
    assert collector.state.rounds["recovered"] == 1
    collector.close()


@pytest.mark.fault
def test_a_flood_of_forged_packets_leaves_no_trace_and_no_gap(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock = Clock()
    collector = Collector(config_of(tmp_path, hall), clock=clock, threads=False, queue_size=64)
    devices = twins(hall)
    thief = Twin(hall, 0, check_key=b"?" * 32)
    forged = [thief.send(0, 0.5) for _ in range(50)]
    for number in range(4):
        clock.now = START + number * PERIOD
        for _ in range(10):
            for one in forged:
                assert collector.take(*one) == "wrong-code"
        assert feed(collector, devices, number, rng) == ["taken"] * 6
        collector.turn()
    state = collector.state
    assert state.rounds["recovered"] == 4
    assert state.refused == {"wrong-code": 2000}
    assert state.devices[0].refused == {"wrong-code": 2000}
    assert len(collector.store.packets_since(0)) == 24
    collector.close()


@pytest.mark.fault
def test_malformed_payloads_do_no_harm_and_cost_no_memory(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    """2,000 here; `make soak` sends 100,000."""
    import tracemalloc

    collector = Collector(config_of(tmp_path, hall), clock=Clock(), threads=False)
    good = twins(hall)[0].send(0, 0.5)

    def attack(count: int) -> None:
        for _ in range(count):
            size = int(rng.integers(0, 400))
            payload = bytearray(rng.bytes(size))
            if size % 3 == 0:
                payload[: len(good[1])] = good[1][: size or 1]
            topic = good[0] if size % 2 else f"sfumato/1/hall/{size}/readings"
            assert collector.take(topic, bytes(payload)) not in ("taken", "queue-full")

    attack(200)
    tracemalloc.start()
    attack(100)
    before, _ = tracemalloc.get_traced_memory()
    attack(1700)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000
    assert collector.take(*good) == "taken"
    collector.close()


def test_a_stolen_device_is_shut_out_and_a_new_one_let_in_while_running(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock = Clock()
    config = config_of(tmp_path, hall)
    collector = Collector(config, clock=clock, threads=False)
    devices = twins(hall)
    walk(collector, clock, devices, range(1), rng)
    stolen, new = devices[0], Twin(hall, 0, name=f"{devices[0].name}~2")
    assert collector.take(*new.send(1, 0.2)) == "unknown-device"
    keyed(tmp_path, hall, new)
    collector.reload(replace(config, revoked=(stolen.name,)))
    clock.now += PERIOD
    assert collector.take(*stolen.send(1, 0.2)) == "revoked"
    assert collector.take(*new.send(1, 0.2)) == "taken"
    assert feed(collector, devices[1:], 1, rng) == ["taken"] * 5
    collector.turn()
    assert collector.state.rounds["recovered"] == 2
    assert {one.name: one.revoked for one in collector.state.devices}[stolen.name]
    # What was taken before is not taken again by a gate that was made anew.
    assert collector.take(*devices[1].send(0, 0.2)) == "duplicate"
    collector.close()


def test_another_site_or_period_is_not_taken_while_running(hall: Site, tmp_path: Path) -> None:
    config = config_of(tmp_path, hall)
    collector = Collector(config, clock=Clock(), threads=False)
    for other in (replace(config, site=corridor(8)), replace(config, period_ms=2 * PERIOD)):
        with pytest.raises(InvalidInput, match="needs a new start"):
            collector.reload(other)
    assert collector.take(*twins(hall)[0].send(0, 0.1)) == "taken"
    collector.close()


def test_clock_jumps_of_the_collector_lose_no_later_round(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock = Clock()
    collector = Collector(config_of(tmp_path, hall), clock=clock, threads=False)
    devices = twins(hall)
    walk(collector, clock, devices, range(2), rng)
    clock.now += 3_600_000
    assert feed(collector, devices, 2, rng) == ["taken"] * 6  # kept, and no round is made of them
    collector.turn()
    assert collector.state.refused == {"too-late": 6}
    assert len(collector.store.packets_since(0)) == 18
    clock.now = START + 3 * PERIOD
    assert feed(collector, devices, 3, rng) == ["taken"] * 6
    clock.now -= 3_600_000
    assert feed(collector, devices, 4, rng) == ["too-early"] * 6
    collector.turn()
    clock.now = START + 5 * PERIOD
    assert feed(collector, devices, 5, rng) == ["taken"] * 6
    collector.turn()
    assert collector.state.rounds["recovered"] == 4
    collector.close()


class Held:
    """A worker that stands still until it is told to go on, in its first round."""

    def __init__(self, collector: Collector) -> None:
        self.started, self.go_on = threading.Event(), threading.Event()
        self._recover = collector._worker._recover
        collector._worker._recover = self

    def __call__(self, closed: ClosedRound) -> Recovered:
        self.started.set()
        assert self.go_on.wait(600)
        return self._recover(closed)


def test_rounds_that_it_is_behind_with_are_put_off_and_too_many_are_skipped(
    hall: Site, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recoveries, "PUT_OFF", 2 * len(hall.sensors))
    clock, heard, told = Clock(), Heard(), list[str]()
    config = config_of(tmp_path, hall, track=2)
    home = HomeAssistant(
        hall, lambda _, text, __: told.append(text), period_ms=PERIOD, prefix="homeassistant"
    )
    collector = Collector(config, clock=clock, outputs=[heard, home])
    held, devices = Held(collector), twins(hall)
    walk(collector, clock, devices, range(1), rng)
    assert held.started.wait(600)
    walk(collector, clock, devices, range(1, 6), rng)
    assert (collector.state.rounds["skipped"], collector.state.waiting) == (1, 4)
    held.go_on.set()
    while sum(collector.state.rounds.values()) < 6:
        collector.turn()
    first = START // PERIOD
    done = [(one.closed.number - first, one.found is not None) for one in heard.rounds]
    # The newest first, then what was put off; the oldest of too many was skipped.
    assert sorted(done) == [(0, True), (1, False), *((number, True) for number in range(2, 6))]
    order = [number for number, found in done if found]
    assert order == [0, 4, 5, 2, 3]
    assert [one.track is not None for one in heard.rounds if one.found] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert collector.state.last is not None
    assert (collector.state.last.time, collector.state.waiting) == (heard.rounds[-3].closed.time, 0)
    assert [json.loads(text)["time"] for text in told] == [
        one.closed.time for one in heard.rounds if one.closed.number - first in (0, 4, 5)
    ]  # never an older one after a newer
    assert collector.state.promise is not None
    assert collector.state.promise.rounds == 6  # skipped ones were paid too
    collector.close()


def test_the_end_of_a_collector_waits_for_the_newest_rounds_alone(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock, config = Clock(), config_of(tmp_path, hall)
    collector = Collector(config, clock=clock)
    held, devices = Held(collector), twins(hall)
    walk(collector, clock, devices, range(1), rng)
    assert held.started.wait(600)
    walk(collector, clock, devices, range(1, 6), rng)
    ending = threading.Thread(target=collector.close)
    ending.start()
    while collector._worker.waiting > 2:
        time.sleep(0.01)
    held.go_on.set()
    ending.join(600)
    kept = read_rounds(config.store, site=hall.digest)
    assert [one.state for one in kept] == ["recovered", *["skipped"] * 3, *["recovered"] * 2]


def test_a_round_that_comes_after_an_outage_waits_for_all_who_come_back(
    hall: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    clock, heard = Clock(), Heard()
    collector = Collector(config_of(tmp_path, hall), clock=clock, threads=False, outputs=[heard])
    one, *others = twins(hall)
    values = readings_at(hall, 20, rng)
    held = [
        [twin.send(number, values[twin.place]) for number in range(3)] for twin in (one, *others)
    ]
    clock.now = START + 60 * PERIOD  # the broker was away for a minute
    for device, packets in enumerate(held):
        if device:  # comes back when its client tries again
            clock.now += 5 * PERIOD
        for message in packets:
            assert collector.take(*message) == "taken"
        collector.turn()
        # Rounds of now are not held up by them.
        now = (clock.now - START) // PERIOD
        feed(collector, [one, *others], now, rng)
        collector.turn()
        assert heard.rounds[-1].closed.number == START // PERIOD + now or device == 5
    assert [len(done.closed.packets) for done in heard.rounds] == [6] * 9
    assert "late" not in collector.state.refused
    # Who never comes back is waited for so long, and no longer.
    for twin in others:
        assert collector.take(*twin.send(72, values[twin.place])) == "taken"
    assert collector.state.waiting == 0
    collector.turn()
    clock.now += BEHIND_MS - 1
    collector.turn()
    assert len(heard.rounds) == 9
    clock.now += 1
    collector.turn()
    assert heard.rounds[-1].closed.missing == (one.name,)
    collector.close()
