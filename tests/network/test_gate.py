"""What a collector takes: known devices, right codes, each packet once, in its round."""

from __future__ import annotations

import pytest
from tests.network.networks import PERIOD, START, Twin, corridor, twins

from sfumato.network.collector.gate import MEANINGS, Gate
from sfumato.network.collector.replay_window import ReplayWindow
from sfumato.network.collector.rounds import Rounds
from sfumato.network.wire import MAX_BYTES, Packet, encode
from sfumato.sensing import Site

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def hall() -> Site:
    return corridor()


def gate_of(site: Site, **more: object) -> Gate:
    devices = {name: frozenset({place}) for place, name in enumerate(site.sensors.names)}
    keys = {twin.name: twin.check_key for twin in twins(site)}
    return Gate(
        site.digest[:32],
        len(site.sensors),
        **{"devices": devices, "period_ms": PERIOD, "check_keys": keys} | more,  # type: ignore[arg-type]
    )


def taken(gate: Gate, topic: str, payload: bytes) -> str:
    found = gate.admit(topic, payload)
    if isinstance(found, str):
        return found
    gate.remember(found, payload)
    return "taken"


def test_a_packet_is_taken_once_and_its_resend_is_harmless(hall: Site) -> None:
    gate, twin = gate_of(hall), Twin(hall, 0)
    message = twin.send(0, 0.5)
    assert taken(gate, *message) == "taken"
    assert taken(gate, *message) == "resent"
    assert taken(gate, *twin.send(1, 0.5)) == "taken"
    assert taken(gate, *message) == "resent"


def test_every_flipped_bit_is_found(hall: Site) -> None:
    gate, twin = gate_of(hall), Twin(hall, 0)
    topic, payload = twin.send(0, 0.5)
    told = set()
    for at in range(len(payload)):
        damaged = bytearray(payload)
        damaged[at] ^= 1 << (at % 8)
        found = gate.admit(topic, bytes(damaged))
        assert isinstance(found, str), at
        told.add(found)
    assert told <= {"wrong-code", "malformed", "wrong-topic"}


def test_who_does_not_hold_the_key_sends_in_vain(hall: Site) -> None:
    gate = gate_of(hall)
    assert taken(gate, *Twin(hall, 0, check_key=b"x" * 32).send(0, 0.5)) == "wrong-code"
    assert taken(gate, *Twin(hall, 0, name="stranger").send(0, 0.5)) == "unknown-device"
    other = Twin(hall, 1)
    assert taken(gate, Twin(hall, 0).topic, other.send(0, 0.5)[1]) == "wrong-topic"
    assert taken(gate, "weather/rain", other.send(0, 0.5)[1]) == "wrong-topic"
    assert taken(gate, other.topic, b"\0" * (MAX_BYTES + 1)) == "too-long"
    assert taken(gate, other.topic, b"{}") == "malformed"


def test_another_site_key_period_or_sensor_is_refused(hall: Site) -> None:
    gate, twin = gate_of(hall, key_id="00" * 8), Twin(hall, 0)
    assert taken(gate, *twin.send(0, 0.5, site="11" * 16)) == "wrong-site"
    assert taken(gate, *twin.send(0, 0.5, key_id="11" * 8)) == "wrong-key"
    assert taken(gate, *twin.send(0, 0.5, period_ms=500)) == "wrong-period"
    assert taken(gate, *twin.send(0, 0.5, sensors=(1,))) == "wrong-sensors"
    assert taken(gate, *twin.send(0, 0.5, sensors=(40000,))) == "wrong-sensors"


def test_a_stolen_device_is_refused_and_its_successor_taken(hall: Site) -> None:
    name = hall.sensors.names[0]
    stolen, new = Twin(hall, 0), Twin(hall, 0, name=f"{name}~2")
    gate = gate_of(
        hall,
        devices={name: frozenset({0}), new.name: frozenset({0})},
        check_keys={name: stolen.check_key, new.name: new.check_key},
        revoked={name},
    )
    assert taken(gate, *stolen.send(0, 0.5)) == "revoked"
    assert taken(gate, *new.send(0, 0.5)) == "taken"


def test_replays_of_an_earlier_start_and_copies_are_told_apart(hall: Site) -> None:
    gate, first = gate_of(hall), Twin(hall, 0, step=3)
    old = first.send(0, 0.5)
    assert taken(gate, *old) == "taken"
    again = Twin(hall, 0, step=4)
    assert taken(gate, *again.send(1, 0.5)) == "taken"
    assert taken(gate, *old) == "old-epoch"
    copy = Twin(hall, 0, step=4)  # the same step, other random bytes: a key file that was put back
    assert taken(gate, *copy.send(2, 0.5)) == "cloned"
    twice = Twin(hall, 0, step=4, epoch=again.epoch)
    assert taken(gate, *twice.send(1, 0.7)) == "conflict"


def test_no_check_keys_are_nobodys_and_none_are_unchecked(hall: Site) -> None:
    message = Twin(hall, 0).send(0, 0.5)
    assert taken(gate_of(hall, check_keys={}), *message) == "unknown-device"
    assert taken(gate_of(hall, check_keys=None), *message) == "taken"


def test_reordering_is_taken_within_the_window_and_refused_beyond(hall: Site) -> None:
    window, twin = ReplayWindow(size=4), Twin(hall, 0)
    packets = [twin.packet(number, 0.5) for number in range(9)]

    def take(packet: Packet) -> str:
        found = window.judge(packet, encode(packet))
        if found == "new":
            window.remember(packet, encode(packet))
        return found

    assert [take(packets[at]) for at in (0, 2, 1, 4, 5)] == ["new"] * 5
    assert take(packets[3]) == "new"  # four are remembered: 2, 1 is forgotten, 4, 5
    assert take(packets[0]) == "reordered"
    assert take(packets[8]) == "new"
    assert len(window.seen) == 4


def test_a_window_knows_what_it_took_in_any_order(hall: Site) -> None:
    """Whatever the order, no packet is taken twice."""
    import random

    window, twin = ReplayWindow(size=8), Twin(hall, 0)
    packets = [twin.packet(number, 0.5) for number in range(40)]
    order = [*packets, *packets]
    random.Random(4).shuffle(order)  # noqa: S311
    counted: dict[int, int] = {}
    for packet in order:
        if window.judge(packet, encode(packet)) == "new":
            window.remember(packet, encode(packet))
            counted[packet.first] = counted.get(packet.first, 0) + 1
    assert set(counted.values()) == {1}


def rounds_of(site: Site) -> Rounds:
    return Rounds(site.sensors.names, PERIOD, 200, 60_000, 5_000)


def test_a_round_closes_when_it_is_complete_or_over(hall: Site) -> None:
    rounds, devices = rounds_of(hall), twins(hall)
    for twin in devices:
        assert rounds.place(twin.packet(0, 0.5), START) == "placed"
    assert [one.missing for one in rounds.due(START)] == [()]
    for twin in devices[:-2]:
        rounds.place(twin.packet(1, 0.5), START + PERIOD)
    assert rounds.due(START + 2 * PERIOD + 199) == []
    (one,) = rounds.due(START + 2 * PERIOD + 200)
    assert one.missing == hall.sensors.names[-2:]
    assert one.time == "2026-09-21T14:13:21Z"


def test_late_and_double_readings_are_told_apart(hall: Site) -> None:
    rounds, devices = rounds_of(hall), twins(hall)
    now = START + PERIOD
    assert rounds.place(devices[0].packet(0, 0.5), now) == "placed"
    assert rounds.place(devices[0].packet(0, 0.6), now) == "duplicate"
    assert len(rounds.due(now + PERIOD)) == 1
    assert rounds.place(devices[1].packet(0, 0.5), now) == "late"
    assert rounds.place(devices[1].packet(0, 0.5), now) == "duplicate"
    assert rounds.due(now + 2 * PERIOD) == []  # what is late opens nothing


def test_clocks_that_jump_lose_their_rounds_and_nothing_else(hall: Site) -> None:
    rounds, (one, two, *_) = rounds_of(hall), twins(hall)
    assert rounds.place(one.packet(3600, 0.5), START) == "too-early"
    assert rounds.place(one.packet(-3600, 0.5), START) == "too-late"
    assert rounds.place(one.packet(0, 0.5), START) == "placed"
    # Our own clock jumps an hour ahead: the round is over, those between do not exist.
    later = START + 3600 * PERIOD
    assert [r.number for r in rounds.due(later)] == [START // PERIOD]
    assert rounds.place(two.packet(3600, 0.5), later) == "placed"
    assert len(rounds.due(later + 2 * PERIOD)) == 1
    # And back: rounds are taken as before, not held for an hour.
    assert rounds.place(one.packet(5, 0.5), START + 5 * PERIOD) == "placed"
    assert len(rounds.due(START + 7 * PERIOD)) == 1


def test_what_is_remembered_of_rounds_is_bounded(hall: Site) -> None:
    rounds, twin = rounds_of(hall), Twin(hall, 0)
    for number in range(1000):
        rounds.place(twin.packet(number, 0.5), START + number * PERIOD)
        rounds.due(START + (number + 2) * PERIOD)
    assert len(rounds._closed) <= 2 * 60 + 3
    assert not rounds.waiting


def test_every_refusal_has_a_meaning(hall: Site) -> None:
    told = {"late", "duplicate", "odd-noise", "too-late", "too-early", "queue-full"}
    assert told < set(MEANINGS)
