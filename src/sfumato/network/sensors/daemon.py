"""The loop of a sensor: rounds by the clock, packets from the outbox, and faults that it survives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from sfumato.errors import BudgetExceeded, InvalidInput, SfumatoError
from sfumato.network.mqtt import MqttClient
from sfumato.network.sensors.config import SensorConfig
from sfumato.network.sensors.inputs import Input, open_input
from sfumato.network.sensors.schedule import Clock, Pace, Schedule, SystemClock
from sfumato.network.sensors.sensor import Sensor
from sfumato.network.topics import client_id_of, level_of, readings_topic

Watch = Callable[[str], None]
"""Is told what happens, in a sentence that has no reading in it."""

LAST_WAIT = 10_000  # ms in the end for what the broker does not have yet


class Publisher(Protocol):
    """What sends packets: at least once, the same bytes."""

    def publish(self, topic: str, payload: bytes, *, tag: int = 0) -> None:
        """Send, now or when the broker is back."""


@dataclass(slots=True)
class SensorRun:
    """What a run of a sensor did.

    Attributes:
        device: The device.
        step: The start of the device that this was.
        rounds: Rounds that were paid for and handed over to be sent.
        again: Packets of earlier runs that were sent again.
        refused: Rounds that the budget of their window did not hold.
        failed: Rounds that a fault lost: a disk that was full, a ledger that could not be written.
    """

    device: str
    step: int
    rounds: int = 0
    again: int = 0
    refused: int = 0
    failed: int = 0
    last_problem: str = field(default="", repr=False)

    def to_json(self) -> dict[str, Any]:
        """The counts."""
        return {
            "device": self.device,
            "step": self.step,
            "rounds": self.rounds,
            "again": self.again,
            "refused": self.refused,
            "failed": self.failed,
        }


def run_sensor(
    config: SensorConfig,
    *,
    rounds: int | None = None,
    clock: Clock | None = None,
    watch: Watch | None = None,
) -> SensorRun:
    """Run a sensor: read, quantise, charge, seal, and publish on a fixed schedule, until it is stopped.

    When a round is, and when its packet is sent, follows from the clock and the period alone; every packet of
    a device has the same size. A round without a reading sends the last one of its window again under
    fresh noise, which only the key holder can tell.

    Args:
        config: What sensor.toml says.
        rounds: Stop after so many; None to go on.
        clock: Where the time comes from; the system unless given.
        watch: Is told of faults, and of the broker.

    Returns:
        What was done.

    Raises:
        InvalidInput: A file is not as it should be; nothing was charged.
        LedgerBusy: Another process has this sensor.
    """
    time = clock or SystemClock()
    tell = watch or (lambda _: None)
    sensor = Sensor(config, now_ms=time.now_ms())
    try:
        name = sensor.device.name
        client = MqttClient(
            config.broker,
            client_id=client_id_of(sensor.device.key_id, sensor.site.name, name),
            username=level_of(name),
            on_acked=sensor.outbox.sent,
            on_connected=lambda up: tell(_connection(config, up)),
            on_refused=lambda why: tell(
                f"the broker refuses packets ({why}); they wait on the disk until the next start"
            ),
        )
        source = open_input(config, sensor.inputs, level_of(name))
        client.start()
        try:
            done = keep_rounds(sensor, source, client, clock=time, rounds=rounds, watch=tell)
            if rounds is not None:
                _drained(client, time)
            return done
        finally:
            source.close()
            client.stop()
    finally:
        sensor.close()


def keep_rounds(
    sensor: Sensor,
    source: Input,
    client: Publisher,
    *,
    clock: Clock,
    rounds: int | None = None,
    watch: Watch | None = None,
) -> SensorRun:
    """Make and send the rounds of a sensor that is open, until the clock is stopped or they are done.

    Args:
        sensor: The sensor.
        source: Where its readings come from.
        client: What sends packets.
        clock: Where the time comes from.
        rounds: Stop after so many; None to go on.
        watch: Is told of faults.

    Returns:
        What was done.
    """
    tell = watch or (lambda _: None)
    schedule, pace = Schedule(sensor.config.period_ms), Pace(sensor.config.period_ms)
    topic = readings_topic(sensor.site.name, sensor.device.name)
    run = SensorRun(sensor.device.name, sensor.device.step)
    for old in sensor.outbox.rounds():
        try:
            kept = sensor.outbox.payload(old)
        except InvalidInput as problem:  # somebody else's file: the others are sent
            tell(str(problem))
            continue
        client.publish(topic, kept, tag=old)
        run.again += 1
    last = sensor.last_round()
    _say_if_silent(sensor.begin, last, clock.now_ms(), tell)
    tried = 0
    while rounds is None or tried < rounds:
        due = schedule.following(clock.now_ms(), last)
        if not clock.wait_until(due):
            break
        if schedule.is_past(due, clock.now_ms()):
            continue  # rounds that nobody was there for are not made up
        last = due
        late = (
            clock.now_ms() - due
        )  # of a machine that is busy: the next round is none the worse for it
        if not pace.take(clock.elapsed_ms() - late):
            continue  # the clock was set forward: rounds do not come faster for it
        tried += 1
        payload = _made(sensor, due, source, run, tell)
        if not clock.wait_until(schedule.send_at(due)):
            break  # it is on the disk, and goes out with the next start
        if payload is not None:
            client.publish(topic, payload, tag=due)
            run.rounds += 1
    return run


def _made(sensor: Sensor, due: int, source: Input, run: SensorRun, tell: Watch) -> bytes | None:
    """The packet of a round, or None where it cannot be; the loop goes on either way."""
    new = source.take()
    try:
        payload = sensor.make(due, new)
    except BudgetExceeded as refusal:
        run.refused += 1
        problem = f"{refusal}; nothing is sent until the next window"
    except (SfumatoError, OSError) as fault:
        run.failed += 1
        problem = f"round {due} is lost: {fault}"
    else:
        run.last_problem = ""
        return payload
    kind = problem.partition(":")[0].partition(" is lost")[0].rstrip("0123456789")
    if kind != run.last_problem:  # said once, not every second
        tell(problem)
    run.last_problem = kind
    return None


def _say_if_silent(begin: int, last: int, now: int, tell: Watch) -> None:
    if last <= now:
        return
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=max(begin, last))
    if last == begin - 1:
        tell(
            f"the `state` folder does not have all ledgers of this device: nothing is made until the next "
            f"window, {moment:%Y-%m-%dT%H:%M:%SZ}, for what was paid in this one is not known"
        )
        return
    tell(
        f"the clock is behind the last round, {moment:%Y-%m-%dT%H:%M:%SZ}: nothing is made until then, "
        "for no round is made twice; if the clock was wrong then, another `state` folder begins with the "
        "next window"
    )


def _connection(config: SensorConfig, up: bool) -> str:
    host, port = config.broker.address
    if up:
        return f"connected to {host}:{port}"
    return f"the broker at {host}:{port} is away or refuses; packets wait on the disk"


def _drained(client: MqttClient, clock: Clock) -> None:
    """Wait until the broker, if it is there, has everything; the rest goes out with the next start."""
    client.connected.wait(timeout=2)
    end = clock.now_ms() + LAST_WAIT
    while client.unacknowledged and client.connected.is_set() and clock.now_ms() < end:
        if not clock.wait_until(clock.now_ms() + 20):
            return
