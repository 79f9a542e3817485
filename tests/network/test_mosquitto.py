"""Sensors against a real broker: TLS, passwords, an access list, outages, and kill -9 at any moment."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.network.mosquitto import Mosquitto, running_mosquitto
from tests.network.ready import make_sensor, make_site

from sfumato.errors import InvalidInput
from sfumato.network import BrokerConfig, MqttClient, decode, embedded_broker, readings_topic
from sfumato.network.mqtt import Protocol, protocol_of
from sfumato.network.sensors import SensorConfig, run_sensor
from sfumato.privacy import Ledger
from sfumato.sensing.release.keys import device_step

PATIENCE = 600.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with running_mosquitto(tmp_path_factory.mktemp("mosquitto"), secure=True) as running:
        yield running


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    assert holds()


@contextmanager
def heard(
    broker: BrokerConfig, topic: str, *, username: str = ""
) -> Iterator[queue.Queue[tuple[str, bytes]]]:
    """What a collector gets."""
    got: queue.Queue[tuple[str, bytes]] = queue.Queue()
    ready = MqttClient(
        broker, client_id=f"test-{username}", username=username, subscribe=(topic,),
        on_message=lambda topic, payload: got.put((topic, payload)),
    )  # fmt: skip
    ready.start()
    try:
        assert ready.connected.wait(PATIENCE)
        yield got
    finally:
        ready.stop()


def secured(broker: Mosquitto, user: str) -> BrokerConfig:
    return BrokerConfig(
        "127.0.0.1", broker.secure, ca_file=broker.folder / "authority.pem",
        password_file=broker.password_file(user), protocol="auto",
    )  # fmt: skip


@pytest.mark.reference
def test_a_sensor_publishes_by_tls_with_its_password(broker: Mosquitto, tmp_path: Path) -> None:
    make_site(tmp_path)
    config = replace(
        make_sensor(tmp_path, rows=((1.0,), (2.0,))), broker=secured(broker, "door"), period_ms=200
    )
    collector = secured(broker, "collector")
    assert protocol_of(collector) == "5"
    with heard(collector, "sfumato/1/hall/+/readings", username="collector") as got:
        run = run_sensor(config, rounds=2)
        assert run.rounds == 2
        packets = [decode(got.get(timeout=PATIENCE)[1]) for _ in range(2)]
    assert [packet.device for packet in packets] == ["door", "door"]
    assert not list((config.state / "outbox").iterdir())


@pytest.mark.reference
def test_a_device_writes_its_own_topic_and_no_other(broker: Mosquitto) -> None:
    collector, acked, refused = secured(broker, "collector"), list[int](), list[str]()
    with heard(collector, "sfumato/1/#", username="collector") as got:
        door = MqttClient(
            secured(broker, "door"), client_id="door", username="door", on_acked=acked.append,
            on_refused=refused.append,
        )  # fmt: skip
        door.start()
        assert door.connected.wait(PATIENCE)
        for tag, device in enumerate(("window", "collector", "door")):
            door.publish(readings_topic("hall", device), device.encode(), tag=tag)
        door.publish("sfumato/1/hall/door/other", b"other", tag=3)
        door.publish(readings_topic("hall", "door"), b"end", tag=4)
        found = [got.get(timeout=PATIENCE)[1]]
        while found[-1] != b"end":
            found.append(got.get(timeout=PATIENCE)[1])
        eventually(lambda: acked == [2, 4])  # what is refused is not taken for sent
        door.stop()
    assert found == [b"door", b"end"]
    assert refused == ["Not authorized"] * 2  # said once, and again after something was taken


@pytest.mark.reference
def test_a_wrong_password_and_a_stranger_of_a_broker_are_refused(
    broker: Mosquitto, tmp_path: Path
) -> None:
    told: queue.Queue[bool] = queue.Queue()
    wrong = replace(secured(broker, "door"), password_file=broker.password_file("window"))
    client = MqttClient(wrong, client_id="x", username="door", on_connected=told.put)
    client.start()
    assert told.get(timeout=PATIENCE) is False
    assert not client.connected.is_set()
    client.stop()
    # Another authority: the connection never comes, and nothing is sent.
    other = replace(secured(broker, "door"), ca_file=None, tls=True)
    assert protocol_of(other) == "3.1.1"
    broker.password_file("door").chmod(0o644)
    with pytest.raises(InvalidInput, match=r"mode 0644.*chmod 600"):
        secured(broker, "door").password()
    broker.password_file("door").chmod(0o600)


@pytest.mark.unit
def test_the_embedded_broker_speaks_3_1_1(tmp_path: Path) -> None:
    make_site(tmp_path)
    config = replace(make_sensor(tmp_path, rows=((1.0,),)), period_ms=100)
    with embedded_broker() as running:
        assert protocol_of(running) == "3.1.1"
        with heard(running, "sfumato/1/hall/+/readings") as got:
            run_sensor(replace(config, broker=replace(running, protocol="auto")), rounds=2)
            assert {decode(got.get(timeout=PATIENCE)[1]).device for _ in range(2)} == {"door"}


@pytest.mark.fault
def test_packets_wait_while_the_broker_is_away(tmp_path: Path) -> None:
    make_site(tmp_path)
    config = replace(make_sensor(tmp_path), period_ms=100)
    with running_mosquitto(tmp_path) as first:
        port = first.plain
    broker = BrokerConfig("127.0.0.1", port, protocol="3.1.1")
    config = replace(config, broker=broker)
    told: list[str] = []
    run = run_sensor(config, rounds=3, watch=told.append)
    assert run.rounds == 3
    waiting = {file.read_bytes() for file in (config.state / "outbox").iterdir()}
    assert len(waiting) == 3
    with running_mosquitto(tmp_path, plain=port), heard(broker, "sfumato/#") as got:
        again = run_sensor(config, rounds=1)
        found = [got.get(timeout=PATIENCE)[1] for _ in range(4)]
    assert again.again == 3
    assert set(found[:3]) == waiting
    eventually(lambda: not list((config.state / "outbox").iterdir()))


@pytest.mark.fault
@pytest.mark.parametrize("protocol", ["3.1.1", "5"])
def test_a_client_that_lost_its_broker_sends_again_by_itself(
    protocol: Protocol, tmp_path: Path
) -> None:
    acked: list[int] = []
    with running_mosquitto(tmp_path) as first:
        broker = BrokerConfig("127.0.0.1", first.plain, protocol=protocol)
        client = MqttClient(broker, client_id="c", on_acked=acked.append)
        client.start()
        client.publish("a", b"1", tag=1)
        eventually(lambda: acked == [1])
    eventually(lambda: not client.connected.is_set())
    client.publish("a", b"2", tag=2)
    client.publish("a", b"3", tag=3)
    assert client.unacknowledged == 2
    with running_mosquitto(tmp_path, plain=first.plain):
        eventually(lambda: sorted(acked) == [1, 2, 3])
        client.stop()


def live(config: SensorConfig) -> None:
    run_sensor(config)


@pytest.mark.fault
def test_twenty_kills_repeat_no_counter_and_charge_nothing_twice(
    broker: Mosquitto, tmp_path: Path, rng: np.random.Generator
) -> None:
    make_site(tmp_path)
    where = BrokerConfig("127.0.0.1", broker.plain, protocol="3.1.1")
    config = replace(make_sensor(tmp_path), broker=where, period_ms=40)
    run_sensor(config, rounds=1)  # the table of its noise is built once, before the forks
    held = Held(where)
    fork = multiprocessing.get_context("fork")
    for cycle in range(20):
        process = fork.Process(target=live, args=(config,))
        process.start()
        # Killed after its start, or some moment after it has paid for one round or two.
        eventually(lambda step=cycle: device_step(config.device_key)[1] > step + 1)  # type: ignore[misc]
        target = paid_bytes(config) + 300 * (cycle % 3)
        eventually(lambda size=target: paid_bytes(config) >= size)  # type: ignore[misc]
        time.sleep(float(rng.uniform(0, 0.03)))
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL
    last = run_sensor(config, rounds=2)
    assert last.step == 21
    assert not list((config.state / "outbox").iterdir())

    payloads = held.all()
    different = {payload: decode(payload) for payload in payloads}
    # A re-send is the same bytes: no round, and no draw, has two packets.
    assert len({packet.round_ms for packet in different.values()}) == len(different)
    assert len({(packet.epoch, packet.first) for packet in different.values()}) == len(different)
    files = sorted((config.state / "windows").glob("*.ledger"))
    paid = [entry.note for file in files for entry in Ledger(file).statement().entries]
    assert len(paid) == len(set(paid))
    assert {f"round {packet.round_ms}" for packet in different.values()} <= set(paid)
    assert len(paid) > 20
    assert len({packet.step for packet in different.values()}) >= 6


def paid_bytes(config: SensorConfig) -> int:
    """How long the ledgers are; an entry is some 430 bytes."""
    return sum(file.stat().st_size for file in (config.state / "windows").glob("*.ledger"))


class Held:
    """A subscriber whose messages the broker keeps while nobody is connected: no thread while we fork."""

    def __init__(self, broker: BrokerConfig) -> None:
        self.broker = broker
        self._session(lambda client: client.subscribe("sfumato/1/hall/door/readings", 1))

    def all(self) -> list[bytes]:
        """Everything that came; the last is a message of our own."""
        got: list[bytes] = []

        def ask(client: object) -> None:
            client.publish("sfumato/1/hall/door/readings", b"end", 1)  # type: ignore[attr-defined]

        self._session(ask, got)
        return got[:-1]

    def _session(self, first: Callable[..., object], got: list[bytes] | None = None) -> None:
        from paho.mqtt import client as paho
        from paho.mqtt.enums import CallbackAPIVersion

        client = paho.Client(CallbackAPIVersion.VERSION2, client_id="held", clean_session=False)
        done: list[bool] = []

        def heard(_: object, __: object, message: paho.MQTTMessage) -> None:
            if got is not None:
                got.append(bytes(message.payload))
                if message.payload == b"end":
                    done.append(True)

        client.on_message = heard
        client.on_subscribe = lambda *_: done.append(True)
        client.connect(*self.broker.address)
        first(client)
        end = time.monotonic() + PATIENCE
        while not done and time.monotonic() < end:
            client.loop(0.1)
        client.disconnect()
        client.loop(0.1)
