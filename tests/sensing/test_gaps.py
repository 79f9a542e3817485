"""Readings that are missing: averages and tracks use what is there, and say so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato.privacy import ZCDP
from sfumato.sensing import describe_site, heat_line, open_ledger
from sfumato.sensing.diagnostics.field_sensors import FaultySensor
from sfumato.sensing.pipeline import (
    check_recovery,
    recover_rounds,
    recover_sources,
    release_readings,
    track_sources,
)
from sfumato.sensing.recovery.merging import merge, merge_each
from sfumato.sensing.release import Readings
from sfumato.sensing.results.diagnostics import RecoveryDiagnostics
from sfumato.sensing.tracking.rounds import track

pytestmark = pytest.mark.unit

LINE = heat_line(sources=20, sensors=8, diffusion_time=0.02)
HALL = describe_site("hall", operator=LINE, radius="1/10", unit="mass", per_source=1).site
NAMES = HALL.sensors.names


def released(
    folder: Path, cells: list[int], gaps: set[tuple[int, str]], rho: str = "1e8"
) -> Readings:
    book = open_ledger(HALL, folder / "hall.ledger", ZCDP("1e12")).ledger
    rounds = [
        (
            str(number),
            {
                name: float(value)
                for name, value in zip(NAMES, LINE.columns([cell])[:, 0], strict=True)
                if (number, name) not in gaps
            },
        )
        for number, cell in enumerate(cells)
    ]
    return release_readings(rounds, HALL, ledger=book, loss=ZCDP(rho), some=True).readings


def test_one_missing_reading_does_not_end_an_average(tmp_path: Path) -> None:
    noisy = released(tmp_path, [11] * 6, {(3, "2")})
    found = recover_sources(noisy, average=True, estimator="least", radius=0.001)
    assert found.names == NAMES
    assert [one["cell"] for one in found.sources() if one["mass"] > 0.5] == [11]
    said = "1 of 48 readings are missing, 1 of them of sensor '2': used what is there"
    assert said in found.diagnostics.remarks
    assert said in str(found)
    checked = check_recovery(found, readings=noisy, ledgers=[tmp_path / "hall.ledger"])
    assert checked.holds
    assert checked.paid
    # What is certified rests on the noise: half of it is not that of these readings.
    less = replace(found, sigma=0.5 * (found.sigma or 0.0), diagnostics=RecoveryDiagnostics())
    told = check_recovery(less, readings=noisy, ledgers=[tmp_path / "hall.ledger"])
    assert "not made from these" in told.why


def test_the_mean_of_each_sensor_is_that_of_its_own_rounds(tmp_path: Path) -> None:
    gaps = {(0, "2"), (1, "2"), *((number, "5") for number in range(5))}
    noisy = released(tmp_path, [11] * 6, gaps, rho="1")
    one = merge([noisy], average=True)
    sigma = noisy.snapshots[0].sigma
    # Sensor 5 read once in six rounds: it would make the noise of all that of one reading.
    assert one.names == tuple(name for name in NAMES if name != "5")
    assert one.noise == pytest.approx(sigma / 2)
    assert one.min_noise == pytest.approx(sigma / np.sqrt(6))
    read = [
        dict(zip(snapshot.names, snapshot.numbers(), strict=True)) for snapshot in noisy.snapshots
    ]
    assert one.values[2] == pytest.approx(np.mean([at["2"] for at in read if "2" in at]))
    assert one.values[0] == pytest.approx(np.mean([at["0"] for at in read]))
    assert one.remarks == (
        "7 of 48 readings are missing, 5 of them of sensor '5': used what is there",
        "sensor '5' (read in 1 of 6 rounds) left out of the average: its mean has 2.4 times the noise of the "
        "surest",
    )


def test_a_noisier_device_that_read_in_every_round_is_told_as_what_it_is(tmp_path: Path) -> None:
    """As it was: "read in less than half of 4 rounds", of a device that read in all of them."""
    book = open_ledger(HALL, tmp_path / "hall.ledger", ZCDP("1e6")).ledger
    parts = []
    for names, rho in ((NAMES[:4], "100"), (NAMES[4:], "1")):
        rounds = [
            (str(number), dict.fromkeys(names[1:] if (number, rho) == (2, "100") else names, 0.5))
            for number in range(4)
        ]
        parts.append(
            release_readings(rounds, HALL, ledger=book, loss=ZCDP(rho), some=True).readings
        )
    one = merge(parts, average=True)
    assert one.names == NAMES[:4]
    (_, said) = one.remarks
    assert said.startswith(f"sensors {NAMES[4]!r} (read in 4 of 4 rounds), ")
    assert said.endswith(
        "left out of the average: their means have 10 times the noise of the surest or more"
    )


def test_an_average_without_gaps_is_as_it_was(tmp_path: Path) -> None:
    noisy = released(tmp_path, [11] * 3, set(), rho="1")
    one = merge([noisy], average=True)
    assert one.remarks == ()
    assert one.values == pytest.approx(np.mean([s.numbers() for s in noisy.snapshots], axis=0))
    assert [each.time for each in merge_each([noisy])] == ["0", "1", "2"]


def test_every_round_of_a_file_is_checked(tmp_path: Path) -> None:
    noisy = released(tmp_path, [5, 11, 7], {(1, "2")})
    ledgers, file = [tmp_path / "hall.ledger"], tmp_path / "rounds.json"
    recover_rounds(noisy, estimator="least").write(file)
    checked = check_recovery(file, readings=noisy, ledgers=ledgers)
    assert checked.holds
    assert checked.paid
    assert checked.message.startswith(f"{file}: the proofs of 3 rounds hold; releases of these")
    other = Readings(HALL, noisy.snapshots[:2])
    assert "not made from these" in check_recovery(file, readings=other, ledgers=ledgers).why
    data = json.loads(file.read_text())
    dual = data["rounds"][1]["recovery"]["dual"]
    data["rounds"][1]["recovery"]["dual"] = dual[::-1]
    file.write_text(json.dumps(data))
    wrong = check_recovery(file)
    assert not wrong.holds
    assert wrong.message.startswith(f"{file}, round 1: ")


@pytest.mark.parametrize("count", [1, 2])
def test_one_missing_reading_does_not_end_a_track(tmp_path: Path, count: int) -> None:
    noisy = released(tmp_path, [5, 6, 7, 8, 9], {(2, "3"), (4, "0")}, rho="1e4")
    found = track_sources(noisy, count=count, max_mass=1.2)
    assert [one.time for one in found.rounds] == list("01234")
    nearest = [
        min(abs(source.cell - 5 - at) for source in one.sources)
        for at, one in enumerate(found.rounds)
    ]
    assert max(nearest) <= 1
    said = "2 of 40 readings are missing, 1 of them of sensor '0': used what is there"
    assert said in found.remarks
    assert said in str(found)


def test_a_round_without_a_sensor_is_a_round_of_the_others(rng: np.random.Generator) -> None:
    """By hand: the posterior of one round is Bayes' rule on the sensors that read."""
    read = LINE.columns([7])[:, 0] + 0.3 * rng.normal(size=8)
    gone = read.copy()
    gone[[1, 4]] = np.nan
    there = ~np.isnan(gone)
    part = heat_line(sources=20, sensors=LINE.sensors.positions[there], diffusion_time=0.02)
    whole = track(LINE, [gone, gone], sigma=[0.3, 0.4], speed=0.1)
    alone = track(part, [read[there], read[there]], sigma=[0.3, 0.4], speed=0.1)
    np.testing.assert_allclose(whole.chances, alone.chances, atol=1e-9)
    assert whole.masses == pytest.approx(alone.masses)


def test_sensors_that_take_turns_are_all_used(tmp_path: Path) -> None:
    turns = {(number, name) for number in range(4) for name in NAMES if int(name) % 2 != number % 2}
    noisy = released(tmp_path, [11] * 4, turns)
    found = recover_sources(noisy, average=True, estimator="least", radius=0.001)
    assert found.names == NAMES
    followed = track_sources(noisy, max_mass=1.2)
    assert all(abs(one.sources[0].cell - 11) <= 1 for one in followed.rounds)
    assert any("were looked for in 2 of 4 rounds" in remark for remark in followed.remarks)


def test_a_round_that_only_a_faulty_sensor_read_is_left_out_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = {(2, name) for name in NAMES if name != "3"}
    noisy = released(tmp_path, [5, 6, 7, 8], alone, rho="1e4")
    broken = FaultySensor("3", "dead", 1e-9, -0.5, 0.01)
    monkeypatch.setattr(
        "sfumato.sensing.pipeline.track.faulty_in_track", lambda *_, **__: ((broken,), 3)
    )
    found = track_sources(noisy, max_mass=1.2, leave_out_faulty=True)
    assert [one.time for one in found.rounds] == list("013")
    assert any("1 of 4 rounds have readings of faulty sensors only" in one for one in found.remarks)
    assert [one.time for one in track_sources(noisy, max_mass=1.2).rounds] == list("0123")
