"""Broken sensors of a network, one way each; `tests/saboteurs.py` lists them with what catches them."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any


def network(name: str) -> Any:
    """The module itself: the room's door hands out functions of the same names."""
    return import_module(f"sfumato.network.{name}")


def silent_without_a_reading() -> None:
    """On change: a round without a reading sends nothing."""
    daemon = network("sensors.daemon")
    true = daemon._made

    def on_change(sensor: Any, due: int, source: Any, run: Any, tell: Any) -> Any:
        new = source.take()
        if not new:
            return None
        return true(sensor, due, type("Once", (), {"take": lambda self: new})(), run, tell)

    daemon._made = on_change


def counts_too_steep() -> None:
    """A small device whose counts move its units further than the noise is for."""
    network("sensors.microcontroller")._down = lambda number: int(number) + 1


def rounds_cost_by_epsilon_alone() -> None:
    """Of devices with epsilon and delta the one with the larger epsilon is said to be the dearest."""
    module = network("collector.closed_rounds")
    module.LiveRound = lambda _, readings: SimpleNamespace(
        cost=max((one.cost for one in readings.values()), key=lambda one: one.epsilon)
    )


def laplace_named_gaussian() -> None:
    """A packet of Laplace noise that says it is Gaussian: nobody can take it off, and tests are wrong."""
    network("sensors.sensor").law_name = lambda plan: "gaussian"


def dummies_not_masked() -> None:
    """The status byte as it is: everybody can tell a dummy."""
    wire = network("wire")
    true = wire._mask_message
    wire._mask_message = lambda packet: true(wire.replace(packet, first=0, epoch=bytes(12)))


def last_round_forgotten() -> None:
    """After a start the sensor does not know which rounds were paid for."""
    network("sensors.sensor").Sensor.last_round = lambda self: 0


def resends_made_again() -> None:
    """What waits is not sent as it is: a new packet of another draw takes its place."""
    outbox = network("sensors.outbox")
    wire = network("wire")

    def again(self: Any, round_ms: int) -> bytes:
        packet = wire.decode(self._file(round_ms).read_bytes())
        values = tuple(value + 1 for value in packet.values)
        return bytes(wire.encode(wire.replace(packet, values=values)))

    outbox.Outbox.payload = again


def packets_acknowledged_before_they_are_kept() -> None:
    """A collector that is killed then loses what the broker thinks it has."""
    collector = network("collector.collector").Collector
    true = collector.take

    def early(self: Any, topic: str, payload: bytes, done: Any = lambda: None) -> Any:
        found = true(self, topic, payload, lambda: None)
        done()
        return found

    collector.take = early


def packets_taken_again() -> None:
    """A replay window that remembers nothing."""
    network("collector.replay_window").ReplayWindow.remember = lambda self, packet, payload: None


def needed_rounds_deleted() -> None:
    """Whatever is old goes, also what the present window has paid."""
    network("collector.collector").Collector.forget_before = lambda self, number: (
        self.store.forget_before(number)
    )


def codes_not_checked() -> None:
    """Whoever knows the form of a packet is believed."""
    network("collector.gate").is_checked = lambda packet, key: True
