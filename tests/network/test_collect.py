"""`sfumato collect` with a broker: packets over MQTT, acknowledged when kept, entities, state, a clean stop."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.network.mosquitto import running_mosquitto
from tests.network.networks import PERIOD, Twin, corridor, readings_at, twins
from tests.network.test_collector import keyed

from sfumato.network import BrokerConfig, MqttClient
from sfumato.network.collector import (
    Collector,
    CollectorState,
    NetworkConfig,
    read_network,
    read_rounds,
    run_collector,
    serve_state,
)
from sfumato.network.collector.service import LOOK_EVERY, _turns
from sfumato.network.collector.state_server import MAX_LISTENERS
from sfumato.network.collector.subscription import Subscription
from sfumato.sensing import Site
from sfumato.sensing.release import CheckKeys, write_check_keys

pytestmark = pytest.mark.unit

WAIT = 600  # seconds that a busy machine may take


@pytest.fixture(scope="module")
def hall() -> Site:
    return corridor()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerConfig]:
    with running_mosquitto(tmp_path_factory.mktemp("mosquitto")) as found:
        yield BrokerConfig("127.0.0.1", found.plain, protocol="3.1.1")


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


class Running:
    """A collector in a thread."""

    def __init__(self, config: NetworkConfig, file: Path | None = None) -> None:
        self.stop, self.told = threading.Event(), list[str]()
        self.collector: Any = None
        self.state: CollectorState | None = None
        self.problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(config, file))
        self._thread.start()

    def _run(self, config: NetworkConfig, file: Path | None) -> None:
        try:
            self.state = run_collector(
                config, stop=self.stop, file=file, shown=self._shown, watch=self.told.append
            )
        except BaseException as problem:  # to be looked at in the test's own thread
            self.problem = problem
            raise

    def _shown(self, collector: Collector) -> None:
        self.collector = collector

    def end(self) -> CollectorState:
        self.stop.set()
        self._thread.join(WAIT)
        assert self.problem is None
        assert self.state is not None
        return self.state


def asked(port: int | str, path: str, *, host: str = "localhost") -> tuple[int, str]:
    """The status and the body of a page on this machine, asked for by some name."""
    link = HTTPConnection("127.0.0.1", int(port), timeout=WAIT)
    link.request("GET", path, headers={"Host": f"{host}:{port}"})
    answer = link.getresponse()
    found = answer.status, answer.read().decode()
    link.close()
    return found


def now_round() -> int:
    return time.time_ns() // 1_000_000 // PERIOD


def send(client: MqttClient, devices: list[Twin], rng: np.random.Generator, number: int) -> None:
    values = readings_at(devices[0].site, 20, rng)
    for twin in devices:
        topic, payload = twin.send(0, values[twin.place], round_ms=number * PERIOD)
        client.publish(topic, payload)


def test_packets_over_mqtt_become_rounds_entities_and_state(
    hall: Site, broker: BrokerConfig, tmp_path: Path, rng: np.random.Generator
) -> None:
    heard: dict[str, bytes] = {}
    config = NetworkConfig(
        hall,
        PERIOD,
        broker=broker,
        store=str(tmp_path / "rounds.sqlite"),
        check_keys=keyed(tmp_path, hall),
        estimator="least",
        grace_ms=1000 * WAIT,  # a round closes when it is whole, however busy the machine is
        track=2,
        lines=tmp_path / "rounds.jsonl",
        serve=0,
        home_assistant="homeassistant",
    )
    watcher = MqttClient(
        broker,
        client_id="watcher",
        subscribe=("homeassistant/#", "sfumato/1/hall/collector/#"),
        on_message=lambda topic, payload: heard.update({topic: payload}),
    )
    devices, sender = twins(hall), MqttClient(broker, client_id="devices")
    watcher.start()
    sender.start()
    running = Running(config)
    until(lambda: running.collector is not None and running.collector.connected)
    until(lambda: running.collector.state.connected)
    first = now_round()
    for number in range(3):  # one after the other, so that none is skipped
        send(sender, devices, rng, first + number)
        until(lambda count=number + 1: running.collector.state.rounds["recovered"] == count)  # type: ignore[misc]
    until(lambda: "sfumato/1/hall/collector/state" in heard)
    port = next(told.split(":")[2].split("/")[0] for told in running.told if "state.json" in told)
    page = json.loads(asked(port, "/state.json")[1])
    assert page["accepted"] == 18
    metrics = asked(port, "/metrics")[1]
    assert 'sfumato_rounds_total{site="hall",state="recovered"} 3' in metrics
    state = running.end()
    until(lambda: heard.get("sfumato/1/hall/collector/availability") == b"offline")
    watcher.stop()
    sender.stop()
    assert state.rounds["recovered"] == 3
    shown = json.loads(heard["sfumato/1/hall/collector/state"])
    assert shown["privacy"]["cost"] == 0.25
    assert len([topic for topic in heard if topic.endswith("/config")]) == 5
    lines = [json.loads(line) for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]
    assert [len(line["packets"]) for line in lines] == [6, 6, 6]
    assert len(read_rounds(config.store, site=hall.digest)) == 3


def test_what_came_while_the_collector_was_away_is_taken_when_it_is_back(
    hall: Site, broker: BrokerConfig, tmp_path: Path, rng: np.random.Generator
) -> None:
    config = NetworkConfig(
        hall,
        PERIOD,
        broker=broker,
        store=str(tmp_path / "rounds.sqlite"),
        check_keys=keyed(tmp_path, hall),
        estimator="least",
        grace_ms=1000 * WAIT,  # a round closes when it is whole, however busy the machine is
        track=0,
    )
    devices, sender = twins(hall), MqttClient(broker, client_id="devices again")
    sender.start()
    running = Running(config)
    until(lambda: running.collector is not None and running.collector.connected)
    send(sender, devices, rng, now_round())
    until(lambda: running.collector.state.accepted == 6)
    running.end()
    send(sender, devices, rng, now_round() + 1)
    until(lambda: sender.unacknowledged == 0)
    running = Running(config)
    until(lambda: running.collector is not None and running.collector.state.accepted == 6)
    until(lambda: running.collector.state.rounds["recovered"] == 1)
    running.end()
    sender.stop()
    assert len(read_rounds(config.store, site=hall.digest)) == 2


def test_a_message_that_cannot_be_taken_ends_no_connection_and_is_not_acknowledged() -> None:
    told, acked = list[str](), list[int]()

    def fail(*_: object) -> None:
        raise IndexError("a place that the site lacks")

    link = Subscription(
        BrokerConfig(), client_id="x", topics=(), on_message=fail, on_connected=lambda _: None,
        on_problem=told.append,
    )  # fmt: skip
    client = SimpleNamespace(ack=lambda mid, _: acked.append(mid))
    link._message(client, None, SimpleNamespace(mid=1, qos=1, topic="a", payload=b""))
    assert (told, acked) == (
        ["a message could not be taken (IndexError); it was not acknowledged"],
        [],
    )


def test_check_keys_in_another_file_are_watched_there(hall: Site, tmp_path: Path) -> None:
    hall.write(tmp_path / "site.json")
    file, old = tmp_path / "network.toml", keyed(tmp_path, hall)
    text = 'site = "site.json"\nperiod = "1s"\nstore = "a.sqlite"\ncheck_keys = "{}"\n'
    file.write_text(text.format(old.name))
    config, told = read_network(file), list[str]()
    collector, stop = Collector(config, threads=False), threading.Event()
    new = tmp_path / "new.key"
    write_check_keys(new, CheckKeys("00" * 8, {}))
    looks = iter(range(10_000))

    def change(_: Collector) -> None:  # after every turn
        if (turn := next(looks)) == 0:
            file.write_text(text.format(new.name))
            os.utime(file, ns=(1, 1))
        elif len(told) == 2 and turn % LOOK_EVERY == 1:
            write_check_keys(new, CheckKeys("11" * 8, {}), overwrite=True)
            os.utime(new, ns=(2, 2))
        elif len(told) == 3 or turn > 40 * LOOK_EVERY:
            stop.set()

    collector.wait = lambda _: None  # type: ignore[method-assign, assignment]
    _turns(collector, config, stop, file=file, shown=change, tell=told.append, rounds=None)
    collector.close()
    assert len(told) == 3
    assert collector._gate.key_id == "11" * 8


def test_state_is_for_this_machine_alone(hall: Site, tmp_path: Path) -> None:
    config = NetworkConfig(hall, PERIOD, store=str(tmp_path / "a.sqlite"), estimator="least")
    collector = Collector(config, threads=False)
    with serve_state(lambda: collector.state, 0) as port:
        assert asked(port, "/health")[0] == 503  # there is no broker
        assert asked(port, "/nothing")[0] == 404
        assert asked(port, "/state.json")[0] == 200
        assert asked(port, "/state.json", host="evil.example")[0] == 403
    collector.close()


def event(answer: HTTPResponse) -> dict[str, str]:
    """The next event of a stream; lines that are no event are passed over."""
    found: dict[str, str] = {}
    while line := answer.readline().decode().rstrip("\n"):
        name, _, value = line.partition(": ")
        found[name] = value
    return found if "event" in found else event(answer)


def test_state_is_pushed_when_it_changes_and_the_end_is_said(hall: Site, tmp_path: Path) -> None:
    config = NetworkConfig(hall, PERIOD, store=str(tmp_path / "a.sqlite"), estimator="least")
    collector = Collector(config, threads=False)
    with serve_state(lambda: collector.state, 0, site=hall) as port:
        assert json.loads(asked(port, "/site.json")[1]) == hall.to_json()
        link = HTTPConnection("127.0.0.1", port, timeout=WAIT)
        link.request("GET", "/events", headers={"Origin": "http://localhost:1234"})
        answer = link.getresponse()
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.headers["Access-Control-Allow-Origin"] == "http://localhost:1234"
        first = event(answer)
        assert json.loads(first["data"]) == collector.state.to_json()
        collector.connected = True
        second = event(answer)
        assert (first["event"], first["id"], second["id"]) == ("state", "1", "2")
        assert json.loads(second["data"])["connected"] is True
        # As many more as may listen, and then one too many.
        more = [HTTPConnection("127.0.0.1", port, timeout=WAIT) for _ in range(MAX_LISTENERS)]
        # A page elsewhere can read nothing, and takes no place from who can.
        for stranger in (
            {"Origin": "http://localhost:1.evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            away = HTTPConnection("127.0.0.1", port, timeout=WAIT)
            away.request("GET", "/events", headers=stranger)
            refused = away.getresponse()
            assert refused.status == 403
            assert refused.headers["Access-Control-Allow-Origin"] is None
            away.close()
        answers = []
        for one in more:
            one.request("GET", "/events")
            answers.append(one.getresponse())
        assert [one.status for one in answers] == [200] * (MAX_LISTENERS - 1) + [503]
    assert event(answer)["event"] == "end"
    for open_ in [link, *more]:
        open_.close()
    collector.close()


def test_a_client_that_sends_fast_does_not_wait_for_itself(broker: BrokerConfig) -> None:
    """Answers come while it sends: each of 400 messages is counted, and none stands still."""
    acked: list[int] = []
    client = MqttClient(broker, client_id="fast", on_acked=acked.append)
    client.start()
    until(client.connected.is_set)
    for number in range(400):
        client.publish("sfumato/1/hall/fast/readings", bytes(200), tag=number)
    until(lambda: client.unacknowledged == 0 and len(acked) == 400)
    client.stop()
    assert sorted(acked) == list(range(400))
