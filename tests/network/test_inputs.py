"""Inputs and sensor.toml: newest readings, what is none, and mistakes that are named."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.network.ready import make_sensor, make_site

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.network import BrokerConfig, MqttClient, embedded_broker
from sfumato.network.sensors import InputConfig, SensorConfig, read_sensor_config
from sfumato.network.sensors.inputs import Input, open_input, parsed

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SensorConfig:
    folder = tmp_path_factory.mktemp("inputs")
    make_site(folder)
    return make_sensor(folder, rows=((1.5,), ("",), ("nan",), (3,)))


def first(
    source: Input, holds: Callable[[Mapping[str, float]], bool] = bool
) -> Mapping[str, float]:
    end = time.monotonic() + 600
    while time.monotonic() < end:
        found = source.take()
        if holds(found):
            return found
        time.sleep(0.005)
    raise AssertionError("nothing came")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("21.5\n", {"a": 21.5}),
        (" -1e-3 ", {"a": -0.001}),
        ("0", {"a": 0.0}),
        ('{"a": 3, "b": 4}', {"a": 3.0}),
        ('{"a": "7"}', {"a": 7.0}),
        ("1/3", {}),
        ("nan", {}),
        ("inf", {}),
        ("1e400", {}),
        ("1e-999999999", {"a": 0.0}),
        ("1e999999999", {}),
        ("", {}),
        ("warm", {}),
        ("{", {}),
        ('{"a": true}', {}),
        ('{"a": [1]}', {}),
        ("[" * 4000, {}),
        ("1" * 5000, {}),
    ],
)
def test_a_line_is_a_reading_or_none(line: str, found: dict[str, float]) -> None:
    assert parsed(line, ("a",)) == found


def test_a_scale_rounds_once() -> None:
    # 1035 / 1000 by two roundings is another double.
    for raw in range(20_000, 20_400):
        assert parsed(str(raw), ("a",), scale=0.001) == {"a": raw / 1000}


def test_lines_of_stdin(config: SensorConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\nx\n2\n"))
    source = open_input(replace(config, input=InputConfig("stdin")), ("0",), "door")
    assert first(source, lambda found: found == {"0": 2.0} or not found) in ({"0": 2.0}, {})


def test_a_replay_is_a_row_a_round(config: SensorConfig) -> None:
    source = open_input(config, ("0",), "door")
    assert [dict(source.take()) for _ in range(6)] == [{"0": 1.5}, {}, {}, {"0": 3.0}, {}, {}]
    source.close()


def test_files_and_commands_are_asked_again(config: SensorConfig, tmp_path: Path) -> None:
    (tmp_path / "temp1_input").write_text("21500\n")
    files = InputConfig("file", paths={"0": tmp_path / "temp1_input"}, scale=0.001)
    source = open_input(replace(config, input=files, period_ms=20), ("0",), "door")
    assert first(source) == {"0": 21.5}
    (tmp_path / "temp1_input").write_text("22000\n")
    assert first(source, lambda found: found.get("0") == 22.0)
    source.close()
    command = InputConfig("command", command=("echo", '{"0": 5, "x": 6}'))
    source = open_input(replace(config, input=command), ("0",), "door")
    assert first(source) == {"0": 5.0}
    source.close()


def test_a_password_without_tls_stays_here_unless_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "p"
    for host in ("localhost", "127.0.0.2", "::1"):
        assert not BrokerConfig(host, password_file=file).is_tls
    assert not BrokerConfig("b.local", password_file=file, tls=False).is_tls
    assert BrokerConfig("b.local", password_file=file, tls=True).is_tls
    assert BrokerConfig("b.local", password_file=file, ca_file=file).is_tls
    with pytest.raises(InvalidParameter, match="goes over the network"):
        BrokerConfig("b.local", password_file=file)


def test_another_topic_is_heard(config: SensorConfig) -> None:
    with embedded_broker() as broker:
        told = InputConfig("mqtt", topics={"0": "esphome/hall/state"}, field="t", scale=0.5)
        source = open_input(replace(config, input=told, broker=broker), ("0",), "door")
        client = MqttClient(broker, client_id="esphome")
        client.start()
        end = time.monotonic() + 600
        found: Mapping[str, float] = {}
        while not found and time.monotonic() < end:
            client.publish("esphome/hall/state", b'{"t": 9}')
            time.sleep(0.05)
            found = source.take()
        assert found == {"0": 4.5}
        client.stop()
        source.close()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('period = "1s"', 'period = "7s"', "1h is no multiple of the `period`"),
        ('period = "1s"', 'period = "fast"', "a `period` is a number of ms, s, m or h"),
        ('period = "1s"', "perod = 3", "`perod` is no key; there are broker, budget"),
        ('kind = "csv"', 'kind = "pipe"', "`input.kind` is one of stdin, csv, file, command, mqtt"),
        ('kind = "csv"', 'kind = "mqtt"', "`input.topics` is a table"),
        ('sensors = ["0"]', "sensors = []", "`sensors` is a list of different names"),
        ('epsilon = "8"', 'epsilon = "-1"', "epsilon"),
        ('epsilon = "8"', "", "`budget.epsilon` is a text, and must be there"),
        ("port = 1", "port = 70000", "a `port` below 65536"),
        ("port = 1", 'password = "secret"', "a password is in a file of its own, of mode 0600"),
        ("[broker]", "[broker", "it is not TOML"),
        (
            'host = "127.0.0.1"',
            'host = "b.local"\npassword_file = "p"',
            "goes over the network: say `tls`",
        ),
    ],
)
def test_mistakes_in_sensor_toml_are_named(
    config: SensorConfig, old: str, new: str, message: str, tmp_path: Path
) -> None:
    text = (config.site.parent / "door.toml").read_text()
    assert old in text
    (tmp_path / "s.toml").write_text(text.replace(old, new))
    with pytest.raises(InvalidInput, match=message) as found:
        read_sensor_config(tmp_path / "s.toml")
    assert "nothing was started" in str(found.value)
    assert "secret" not in str(found.value)
