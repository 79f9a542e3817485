"""Entities of Home Assistant: discovery as its MQTT integration takes it, states for every template.

The keys and values here are distilled from the schemas of homeassistant 2024.3.3; `make entities` validates the
same payloads with the package itself, in an environment of its own.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from tests.network.networks import PERIOD, START, corridor, readings_at, twins
from tests.network.test_collector import Clock, Heard, config_of

from sfumato.network.collector import Collector, HomeAssistant, discovery, entity_state, prometheus
from sfumato.network.collector.render import live_view, state_lines

pytestmark = pytest.mark.unit

SENSOR = {
    "availability_topic", "device", "entity_category", "expire_after", "icon", "json_attributes_template",
    "json_attributes_topic", "name", "object_id", "state_class", "state_topic", "suggested_display_precision",
    "unique_id", "value_template",
}  # fmt: skip
BINARY = (SENSOR - {"state_class", "suggested_display_precision"}) | {"device_class"}
DEVICE = {"identifiers", "name", "manufacturer", "model"}


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A collector that has recovered two rounds, one without a sensor, and what it published."""
    hall, clock, rounds = corridor(), Clock(), Heard()
    folder = tmp_path_factory.mktemp("entities")
    published: list[tuple[str, str, bool]] = []
    entities = HomeAssistant(
        hall, lambda *one: published.append(one), period_ms=PERIOD, prefix="homeassistant"
    )
    collector = Collector(
        config_of(folder, hall), clock=clock, threads=False, outputs=[rounds, entities]
    )
    rng, devices = np.random.default_rng(1), twins(hall)
    entities.announce()
    for number, there in enumerate((devices, devices[1:])):
        values = readings_at(hall, 20, rng)
        for twin in there:
            collector.take(*twin.send(number, values[twin.place]))
    collector.turn()
    clock.now = START + 3 * PERIOD
    collector.turn()
    state = collector.state
    collector.close()
    return hall, state, rounds.rounds, published


def test_discovery_is_retained_and_as_home_assistant_takes_it(heard: Any) -> None:
    hall, _, _, published = heard
    configs = [
        (topic, json.loads(text)) for topic, text, _ in published if topic.endswith("/config")
    ]
    assert len(configs) == 5
    assert all(retain for topic, _, retain in published if topic.endswith("/config"))
    for topic, config in configs:
        kind = re.fullmatch(
            r"homeassistant/(sensor|binary_sensor)/([a-zA-Z0-9_-]+)/([a-zA-Z0-9_-]+)/config", topic
        )
        assert kind is not None
        assert set(config) <= (SENSOR if kind[1] == "sensor" else BINARY)
        assert set(config["device"]) == DEVICE
        assert config["expire_after"] >= 30
        assert config.get("state_class", "measurement") == "measurement"
        assert config.get("entity_category", "diagnostic") == "diagnostic"
        assert not re.search("[#+]", config["state_topic"])
    assert len({config["unique_id"] for _, config in configs}) == 5
    assert configs == discovery(hall, prefix="homeassistant", expire=30)


def test_a_state_has_what_templates_ask_for(heard: Any) -> None:
    hall, state, rounds, published = heard
    states = [json.loads(text) for topic, text, _ in published if topic.endswith("collector/state")]
    assert [one["missing"] for one in states] == [0, 1]
    assert states[-1] == entity_state(hall, rounds[-1], state)
    for _, config in discovery(hall, prefix="homeassistant", expire=30):
        for template in (config["value_template"], config["json_attributes_template"]):
            for path in re.findall(r"value_json((?:\.\w+)+)", template):
                found = states[-1]
                for key in path.strip(".").split("."):
                    found = found[key]
    told = states[-1]["privacy"]
    assert {"kind", "cost", "left", "window", "epsilon_spent", "rounds", "verdict"} <= set(told)
    assert published[-1] == ("sfumato/1/hall/collector/availability", "offline", True)


def test_metrics_are_prometheus_text(heard: Any) -> None:
    _, state, _, _ = heard
    lines = prometheus(state).splitlines()
    number = r'[a-z_]+\{site="hall"(,[a-z]+="[^"]*")*\} -?[0-9.e+-]+'
    assert all(line.startswith("# ") or re.fullmatch(number, line) for line in lines)
    assert 'sfumato_sensors_missing{site="hall"} 1' in lines
    assert 'sfumato_rounds_total{site="hall",state="recovered"} 2' in lines
    named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {line.split("{")[0] for line in lines if not line.startswith("#")} <= named


def test_the_table_says_who_is_missing_and_what_it_costs(heard: Any) -> None:
    from rich.console import Console

    hall, state, rounds, _ = heard
    text = "\n".join(state_lines(state))
    assert f"missing in the last round: {hall.sensors.names[0]}" in text
    assert "a round costs rho 0.25" in text
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(live_view(hall, rounds, state, {rounds[0].closed.time: "0.525"}))
    console.file.close()
    shown = console.export_text()
    assert "5/6" in shown
    assert "0.525" in shown
