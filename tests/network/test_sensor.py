"""A sensor: paid, sealed, on the disk, sent on time; nothing twice, and nothing that readings decide."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.broken_disk import fill
from tests.network.ready import SITE, START, FakeClock, Given, Kept, make_sensor, make_site

from sfumato.errors import InvalidInput, LedgerBusy
from sfumato.network import decode, encode, is_checked, read_packets, unseal_packets
from sfumato.network.collector import StoredPacket, open_store
from sfumato.network.sensors import Sensor, SensorConfig, SensorRun, keep_rounds
from sfumato.privacy import ApproxDP, Ledger
from sfumato.sensing.pipeline import make_device_key
from sfumato.sensing.release import read_check_keys, read_master_key


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_site(tmp_path)
    return tmp_path


def ran(
    config: SensorConfig, *values: dict[str, float], rounds: int = 3, clock: FakeClock | None = None,
    acked: bool = True, told: list[str] | None = None,
) -> tuple[SensorRun, Kept]:  # fmt: skip
    time = clock or FakeClock()
    sensor = Sensor(config, now_ms=time.now)
    try:
        client = Kept(time, sensor.outbox if acked else None)
        run = keep_rounds(
            sensor, Given(*values), client, clock=time, rounds=rounds,
            watch=None if told is None else told.append,
        )  # fmt: skip
        return run, client
    finally:
        sensor.close()


def entries(config: SensorConfig) -> list[str]:
    """The rounds that ledgers say were paid for."""
    files = sorted((config.state / "windows").glob("*.ledger"))
    return [entry.note for file in files for entry in Ledger(file).statement().entries]


def unsealed(folder: Path, packets: list[bytes]) -> list[tuple[float, str]]:
    found = unseal_packets(map(decode, packets), read_master_key(folder / "master.key"), site=SITE)
    return [(row.value, row.status) for row in found.rows]


@pytest.mark.unit
def test_rounds_are_paid_sealed_and_sent_on_time(folder: Path) -> None:
    config = make_sensor(folder)
    run, client = ran(config, {"0": 1.5}, {"0": 2.5}, {"0": -4.0})
    assert (run.rounds, run.refused, run.failed, run.again) == (3, 0, 0, 0)
    packets = [decode(payload) for _, _, payload in client.sent]
    assert [packet.round_ms for packet in packets] == [START + 1000, START + 2000, START + 3000]
    assert [when for when, _, _ in client.sent] == [START + 1250, START + 2250, START + 3250]
    assert {topic for _, topic, _ in client.sent} == {"sfumato/1/hall/door/readings"}
    key = read_check_keys(folder / "check.key").devices["door"]
    assert all(is_checked(packet, key) for packet in packets)
    assert entries(config) == [f"round {packet.round_ms}" for packet in packets]
    assert not list((config.state / "outbox").iterdir())
    # The noise is there, and the key takes it off to the lattice.
    assert {packet.first for packet in packets} == {0, 1, 2}
    step = 2.0 ** packets[0].exponent
    values = unsealed(folder, [payload for _, _, payload in client.sent])
    assert [status for _, status in values] == ["read"] * 3
    assert np.allclose([value for value, _ in values], [1.5, 2.5, -4.0], atol=step)
    assert not np.allclose([packet.numbers()[0] for packet in packets], [1.5, 2.5, -4.0], atol=step)


@pytest.mark.unit
def test_cost_left_and_window_are_the_ledgers(folder: Path) -> None:
    config = make_sensor(folder)
    _, client = ran(config, {"0": 1.0})
    (file,) = (config.state / "windows").glob("*.ledger")
    statement = Ledger(file).statement()
    last = decode(client.sent[-1][2])
    assert last.window is not None
    assert (last.window.began.isoformat(), last.window.length) == ("2026-11-18T11:00:00+00:00", 60)
    left: Any = statement.left
    assert 0 < last.left.amount <= left.rho
    assert last.left.amount == pytest.approx(float(left.rho), rel=1e-15)
    assert last.cost.amount * config.rounds_per_window == pytest.approx(
        float(left.rho) + 3 * last.cost.amount, rel=1e-12
    )


@pytest.mark.unit
def test_when_and_how_long_do_not_depend_on_what_was_read(folder: Path) -> None:
    """Constant, changing, wild, malformed and missing readings: the same times, the same sizes."""
    inputs: list[list[dict[str, float]]] = [
        [{"0": 0.0}] * 6,
        [{"0": float(10**n)} for n in range(6)],
        [{"0": -1e90}, {}, {"0": 1e-90}, {}, {}, {"0": 5.0}],
        [{}] * 6,
    ]
    seen = []
    for number, values in enumerate(inputs):
        make_device_key(folder / "master.key", folder / f"d{number}.key", name=f"d{number}")
        config = make_sensor(folder, device=f"d{number}")
        clock = FakeClock()
        _, client = ran(config, *values, rounds=6, clock=clock)
        seen.append((clock.waits, [(when, len(payload)) for when, _, payload in client.sent]))
    assert all(one == seen[0] for one in seen)
    assert len({size for _, size in seen[0][1]}) == 1


@pytest.mark.unit
def test_a_missing_reading_sends_the_last_one_under_fresh_noise(folder: Path) -> None:
    config = make_sensor(folder, sensors=("0", "2"))
    given: tuple[dict[str, float], ...] = ({}, {"0": 3.0}, {"0": 4.0, "2": 7.0}, {}, {"2": 8.0})
    _, client = ran(config, *given, rounds=5)
    payloads = [payload for _, _, payload in client.sent]
    found = unsealed(folder, payloads)
    assert [status for _, status in found[::2]] == ["none", "none", "read", "held", "held"]
    values = np.array([value for value, _ in found]).reshape(5, 2)
    step = 2.0 ** decode(payloads[0]).exponent
    assert np.allclose(values, [[0, 0], [3, 0], [4, 7], [4, 7], [4, 8]], atol=step)
    assert len({decode(payload).values for payload in payloads}) == 5


@pytest.mark.unit
def test_a_reading_is_not_held_into_another_window(folder: Path) -> None:
    """Each window has a budget of its own: one reading in many of them would be averaged out."""
    sensor = Sensor(make_sensor(folder, window="1m"))
    began = START - START % 60_000
    after = (1000, 2000, 60_000, 61_000, 120_000)
    made = [sensor.make(began + ms, {"0": 3.0} if ms == 1000 else {}) for ms in after]
    sensor.close()
    found = unsealed(folder, made)
    assert [status for _, status in found] == ["read", "held", "none", "none", "none"]
    assert [value for value, _ in found[2:]] == [0, 0, 0]


@pytest.mark.unit
def test_what_was_not_acknowledged_is_sent_again_as_it_was(folder: Path) -> None:
    config = make_sensor(folder)
    _, first = ran(config, {"0": 1.0}, rounds=2, acked=False)
    (config.state / "outbox" / "notes.packet").write_bytes(b"not ours")
    (config.state / "outbox" / "7.packet").write_bytes(b"")
    told: list[str] = []
    run, second = ran(config, {"0": 1.0}, rounds=1, clock=FakeClock(START + 9_400), told=told)
    assert run.again == 2
    assert ["is not a packet; it was not sent" in line for line in told] == [True]
    assert [payload for _, _, payload in second.sent[:2]] == [
        payload for _, _, payload in first.sent
    ]
    steps = [decode(payload).step for _, _, payload in second.sent]
    assert steps == [0, 0, 1]
    assert entries(config) == [f"round {START + after}" for after in (1000, 2000, 10_000)]


@pytest.mark.fault
def test_a_clock_that_jumps_makes_no_round_twice(folder: Path) -> None:
    class Jumping(FakeClock):
        jumps = (50_500, -40_000, 3_600_000)

        def wait_until(self, moment_ms: int) -> bool:
            there = super().wait_until(moment_ms)
            if len(self.waits) % 4 == 0 and len(self.waits) // 4 <= len(self.jumps):
                self.now += self.jumps[len(self.waits) // 4 - 1]
            return there

    config = make_sensor(folder)
    _, client = ran(config, rounds=9, clock=Jumping())
    rounds = [decode(payload).round_ms for _, _, payload in client.sent]
    assert rounds == sorted(set(rounds))
    assert len(entries(config)) == len(set(entries(config))) == 9
    # After a start with a clock behind the last round it waits, and says so.
    told: list[str] = []
    run, _ = ran(config, rounds=1, clock=FakeClock(START, end_ms=START + 60_000), told=told)
    assert run.rounds == 0
    assert "the clock is behind the last round, 2026-11-18T12" in told[0]


@pytest.mark.fault
def test_a_clock_that_runs_too_fast_makes_no_more_rounds(folder: Path) -> None:
    class Fast(FakeClock):
        def elapsed_ms(self) -> int:
            return self.elapsed // 10  # ten seconds of the clock are one

    clock = Fast(end_ms=START + 100_300)
    run, _ = ran(make_sensor(folder), rounds=1000, clock=clock)
    assert run.rounds in (10, 11)


@pytest.mark.fault
def test_a_window_without_budget_is_silent_until_the_next(folder: Path) -> None:
    config = make_sensor(folder)  # noise for an hour of rounds
    short = replace(config, budget=ApproxDP("1/4", "1e-6"))
    told: list[str] = []
    begin = START - START % 3_600_000 + 3_600_000 - 5_700
    run, client = ran(short, rounds=9, clock=FakeClock(begin), told=told)
    assert run.rounds == 9
    left = [decode(payload).left.amount for _, _, payload in client.sent]
    assert left[5] > left[4]  # the next hour has its own
    make_device_key(folder / "master.key", folder / "poor.key", name="poor")
    config = make_sensor(folder, device="poor")
    poor = replace(config, budget=ApproxDP("1/40", "1e-6"))
    run, client = ran(poor, rounds=9, clock=FakeClock(begin), told=told)
    assert run.rounds + run.refused == 9
    assert len(entries(poor)) == run.rounds == len(client.sent)
    assert run.refused
    refusals = [line for line in told if "nothing is sent until the next window" in line]
    assert len(refusals) == len(set(refusals)) == 2  # one for each window


@pytest.mark.fault
def test_a_full_disk_loses_rounds_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_sensor(folder)
    sensor, clock = Sensor(config), FakeClock()
    client, told = Kept(clock, sensor.outbox), list[str]()
    whole = keep_rounds(sensor, Given(), client, clock=clock, rounds=2)
    with monkeypatch.context() as broken:
        fill(broken)
        lost = keep_rounds(sensor, Given(), client, clock=clock, rounds=3, watch=told.append)
    after = keep_rounds(sensor, Given(), client, clock=clock, rounds=2)
    sensor.close()
    assert (whole.rounds, lost.rounds, lost.failed, after.rounds) == (2, 0, 3, 2)
    assert len(told) == 1
    assert "is lost" in told[0]
    sent = [f"round {decode(payload).round_ms}" for _, _, payload in client.sent]
    paid = entries(config)
    assert len(set(paid)) == len(paid)
    assert set(sent) <= set(paid)
    assert len(sent) == 4


@pytest.mark.unit
def test_an_outbox_that_is_full_charges_nothing(folder: Path) -> None:
    config = replace(make_sensor(folder), outbox=2)
    run, _ = ran(config, rounds=5, acked=False)
    assert (run.rounds, run.failed, len(entries(config))) == (2, 3, 2)


@pytest.mark.fault
def test_another_state_folder_is_silent_until_the_next_window(folder: Path) -> None:
    """A budget is of a window, not of a folder: what another folder paid is not known."""
    config = make_sensor(folder)
    hour = START - START % 3_600_000 + 3_600_000
    assert ran(config)[0].rounds == 3
    other, told = replace(config, state=folder / "other"), list[str]()
    for _ in range(2):  # a second start makes it no better
        run, _ = ran(other, clock=FakeClock(end_ms=hour - 1), told=told)
        assert run.rounds == 0
    assert "nothing is made until the next window, 2026-11-18T12:00:00Z" in told[0]
    _, client = ran(other, rounds=1)
    assert decode(client.sent[0][2]).round_ms == hour
    # The first folder has missed starts of the key: what was paid meanwhile is not in it.
    _, client = ran(config, rounds=1, clock=FakeClock(hour + 500))
    assert decode(client.sent[0][2]).round_ms == hour + 3_600_000
    # A folder that has all starts goes on at once.
    _, client = ran(config, rounds=1, clock=FakeClock(hour + 3_600_500))
    assert decode(client.sent[0][2]).round_ms == hour + 3_601_000


@pytest.mark.unit
def test_the_last_round_is_in_the_newest_ledger_that_has_one(folder: Path) -> None:
    sensor = Sensor(make_sensor(folder, window="1m"))
    sensor.make(START + 1000, {})
    sensor.outbox.sent(START + 1000)
    sensor._ledger(datetime.fromtimestamp((START + 3_600_000) // 1000 // 60 * 60, UTC))
    assert sensor.last_round() == START + 1000
    sensor.close()


@pytest.mark.unit
def test_two_processes_cannot_have_one_sensor(folder: Path) -> None:
    config = make_sensor(folder)
    sensor = Sensor(config)
    before = config.device_key.read_text()
    for same in (config, replace(config, state=folder / "other")):
        with pytest.raises(LedgerBusy, match="another process has the sensor"):
            Sensor(same)
    assert config.device_key.read_text() == before
    sensor.close()
    Sensor(config).close()


@pytest.mark.unit
def test_what_does_not_fit_together_is_refused_before_the_key_moves(folder: Path) -> None:
    config = make_sensor(folder)
    before = config.device_key.read_text()
    for wrong, message in (
        (replace(config, sensors=("9",)), "has no sensor '9'"),
        (replace(config, noise_plan=folder / "none.json"), "there is no noise plan"),
        (replace(config, site=folder / "none.json"), "No such file"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Sensor(wrong)
    make_device_key(folder / "master.key", folder / "c.key", name="collector")
    with pytest.raises(InvalidInput, match="no device may be called 'collector'"):
        Sensor(replace(config, device_key=folder / "c.key"))
    replace(SITE, name="hall", step=Fraction(1)).write(folder / "other.json")
    with pytest.raises(InvalidInput, match="made for another site"):
        Sensor(replace(config, site=folder / "other.json"))
    assert config.device_key.read_text() == before


@pytest.mark.unit
def test_the_key_holder_refuses_what_others_made(folder: Path) -> None:
    config = make_sensor(folder)
    _, client = ran(config, {"0": 1.0}, rounds=2)
    lines = [json.dumps(decode(payload).to_json()) for _, _, payload in client.sent]
    changed = json.loads(lines[0])
    raw = bytearray.fromhex(changed["payload"])
    raw[-40] ^= 1  # a reading
    changed["payload"] = raw.hex()
    (folder / "rounds.jsonl").write_text("\n".join([*lines, json.dumps(changed), "{}", "nothing"]))
    found = unseal_packets(read_packets(folder / "rounds.jsonl"), folder / "master.key", site=SITE)
    assert (len(found.rows), found.refused) == (2, 3)
    log = (folder / "master.key.log").read_text()
    assert re.search(r'"what": "unsealed".*"times": 2', log)


@pytest.mark.unit
def test_forged_packets_stop_no_unsealing_and_a_store_is_read_too(folder: Path) -> None:
    config = make_sensor(folder)
    _, client = ran(config, {"0": 1.0}, rounds=2)
    good = [decode(payload) for _, _, payload in client.sent]
    forged = [
        replace(good[0], site="ab" * 16),
        replace(good[0], device="nobody"),
        replace(good[0], epoch=(2**31).to_bytes(4, "big") + bytes(8)),
    ]
    found = unseal_packets([*forged, *good], folder / "master.key", site=SITE)
    assert (len(found.rows), found.refused) == (2, 3)
    other = unseal_packets(good, folder / "master.key", site=replace(SITE, step=Fraction(1)))
    assert (len(other.rows), other.refused) == (0, 2)
    store = open_store(folder / "rounds.sqlite", site=SITE.digest)
    rows = [StoredPacket("door", 0, one.first, one.first, True, encode(one)) for one in good]
    store.add_packets([*rows, StoredPacket("door", 0, 9, 9, True, b"no packet")])
    again = unseal_packets(read_packets(folder / "rounds.sqlite"), folder / "master.key", site=SITE)
    store.close()
    assert (again.rows, again.refused) == (found.rows, 1)
    with pytest.raises(InvalidInput, match="cannot read"):
        list(read_packets(folder / "none.sqlite"))


@pytest.mark.unit
def test_no_key_is_in_anything_that_is_printed_logged_sent_or_kept(folder: Path) -> None:
    config = make_sensor(folder)
    secrets = [
        json.loads((folder / name).read_text())["key"] for name in ("master.key", "door.key")
    ]
    secrets += json.loads((folder / "check.key").read_text())["devices"].values()
    told: list[str] = []
    run, client = ran(config, {"0": 1.0}, acked=False, told=told)
    secrets.append(json.loads((folder / "door.key").read_text())["key"])
    found = unseal_packets([decode(one) for _, _, one in client.sent], folder / "master.key")
    sensor = Sensor(config)
    said = [
        *told, repr(run), json.dumps(run.to_json()), repr(found), repr(sensor.device), repr(config),
        repr(read_check_keys(folder / "check.key")), repr(read_master_key(folder / "master.key")),
        (folder / "master.key.log").read_text(),
    ]  # fmt: skip
    sensor.close()
    kept = b"".join(file.read_bytes() for file in config.state.rglob("*") if file.is_file())
    for secret in secrets:
        assert not any(secret in text for text in said)
        for held in (kept, *(payload for _, _, payload in client.sent)):
            assert bytes.fromhex(secret) not in held
            assert secret.encode() not in held
