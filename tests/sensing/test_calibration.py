"""Calibration: a volunteer's places give gain, time and levels back, in intervals that hold as said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.cli.sense_runs import alone, answer, done

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import read_rows, write_table
from sfumato.sensing import Columns, calibrate_site, describe_site, read_site
from sfumato.sensing.diagnostics.calibration import Fitted, fit_calibration
from sfumato.sensing.model.operators.heat import heat
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.render import calibration_lines
from sfumato.sensing.results import CalibrationResult

PLACES = np.array([(1.0, 1.0), (5.0, 1.0), (9.0, 1.0), (1.0, 5.0), (5.0, 5.0), (9.0, 5.0)])
GAIN, TIME, LEVELS = 12.0, 2.0, np.array([20.0, 20.5, 19.5, 20.2, 19.8, 20.0])


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


def scene(
    rng: np.random.Generator, rounds: int, sigma: float, *, empty: int = 4
) -> tuple[Any, Any, Any, Any]:
    """A volunteer at a random place in each round, and an empty room in some: readings row by row."""
    where = rng.uniform((0, 0), (10, 6), size=(rounds, 2))
    where[:empty] = np.nan
    sensors = np.tile(np.arange(6), rounds)
    places = np.repeat(where, 6, axis=0)
    masses = np.where(np.isnan(places[:, 0]), 0.0, 1.0)
    ways = np.where(np.isnan(places), 0.0, PLACES[sensors] - places)
    seen = GAIN * masses * heat(ways, TIME).prod(axis=1)
    return LEVELS[sensors] + seen + sigma * rng.normal(size=sensors.size), sensors, places, masses


def floor(**more: Any) -> Any:
    given: dict[str, Any] = {
        "sensors": Sensors(PLACES, "abcdef"), "grid": 3, "bounds": (0, 0, 10, 6),
        "diffusion_time": 1.0, "radius": 1, "unit": "C", "per_source": 1, "ambient": 0,
    }  # fmt: skip
    return describe_site("floor", **{**given, **more}).site


def written(rng: np.random.Generator, *, rounds: int = 20, sigma: float = 0.1) -> None:
    values, sensors, places, _ = scene(rng, rounds, sigma)
    rows = [
        (number // 6, "abcdef"[sensor], value, *("" if np.isnan(x) else x for x in place))
        for number, (value, sensor, place) in enumerate(
            zip(values.tolist(), sensors.tolist(), places.tolist(), strict=True)
        )
    ]
    write_table("volunteer.csv", ["time", "sensor", "value", "x", "y"], rows)


@pytest.mark.unit
def test_without_noise_all_comes_back(rng: np.random.Generator) -> None:
    fit = fit_calibration(*scene(rng, 12, 1e-9), PLACES)
    assert fit.gain is not None
    assert fit.time is not None
    assert fit.beside is not None
    assert [fit.gain.value, fit.time.value] == pytest.approx([GAIN, TIME])
    assert fit.beside.value == pytest.approx(GAIN / (4 * np.pi * TIME))
    assert fit.levels == pytest.approx(LEVELS)


@pytest.mark.statistical
def test_intervals_hold_as_often_as_they_say(rng: np.random.Generator) -> None:
    """Of 400 fits; intervals of half the width must be found out."""
    truths = {
        "gain": GAIN, "time": TIME, "beside": GAIN / (4 * np.pi * TIME), "ambient": LEVELS.mean()
    }  # fmt: skip
    count = 400
    held, narrow = dict.fromkeys(truths, 0), dict.fromkeys(truths, 0)
    for _ in range(count):
        fit = fit_calibration(*scene(rng, 16, 0.05), PLACES)
        for name, truth in truths.items():
            one: Fitted = getattr(fit, name)
            held[name] += one.low <= truth <= one.high
            half = (one.high - one.low) / 4
            narrow[name] += abs(truth - one.value) <= half
    for name in truths:
        # Two-sided, 1e-6 in all four; the linearised model is off by less than 2 % at this noise.
        assert stats.binomtest(held[name], count, 0.95).pvalue > 1e-6, (name, held)
        assert stats.binomtest(narrow[name], count, 0.95).pvalue < 1e-6, (name, narrow)


@pytest.mark.unit
def test_a_volunteer_makes_a_site_that_releases(rng: np.random.Generator) -> None:
    written(rng, sigma=0.001)  # so that the fit is linear in it, and t holds far out
    made = calibrate_site(floor(), "volunteer.csv", public=True, out="new.json")
    assert made.gain is not None
    assert made.time is not None
    # Three times an interval of 95 % is 5.9 standard errors: beside the truth in less than 1e-7 of seeds
    # (t with some 100 degrees), and the guess that the site had is not in it.
    for one, truth in ((made.time, TIME), (made.gain, GAIN)):
        assert abs(one.value - truth) <= 3 * (one.high - one.low) / 2
    assert abs(made.time.value - 1.0) > 3 * (made.time.high - made.time.low) / 2
    site = read_site("new.json")
    assert site == made.site
    assert site.operator.time == made.time.value
    # Noise is for the upper end: a source like the volunteer is not protected less by luck.
    assert site.per_source is not None
    assert float(site.per_source) >= made.gain.high > made.gain.value
    assert site.level is not None
    levels = [float(one) for one in site.level.of(site.sensors.names, None)]
    error = max(error for _, _, error in made.offsets)
    assert 7 * error < LEVELS.max() - LEVELS.mean()
    assert levels == pytest.approx(LEVELS, abs=7 * error)
    assert CalibrationResult.from_json(json.loads(json.dumps(made.to_json()))) == made
    lines = calibration_lines(made)
    assert "public by their owner's consent" in lines[0]
    assert "to a sensor where it stands" in lines[1]


@pytest.mark.unit
def test_a_wide_table_calibrates_as_a_long_one_does(rng: np.random.Generator) -> None:
    written(rng, sigma=0.001)
    rows = read_rows("volunteer.csv")
    wide: dict[str, dict[str, Any]] = {}
    for row in rows:
        at = wide.setdefault(row["time"], {name: row[name] for name in ("time", "x", "y")})
        at[row["sensor"]] = row["value"]
    wide["3"]["b"] = "unavailable"
    header = ["at", "x", "y", *"abcdef"]
    write_table("wide.csv", header, [tuple(at.values()) for at in wide.values()])
    kept = [row for row in rows if (row["time"], row["sensor"]) != ("3", "b")]
    write_table("long.csv", list(kept[0]), [tuple(row.values()) for row in kept])
    called = Columns(time="at")
    made = calibrate_site(floor(), "wide.csv", public=True, columns=called)
    assert made.to_json() == calibrate_site(floor(), "long.csv", public=True).to_json()
    write_table("typo.csv", [*header[:-1], "eff"], [tuple(at.values()) for at in wide.values()])
    with pytest.raises(InvalidInput, match=r"no column for 1 of 6 sensors, 'f' first.*: 'eff'. Is"):
        calibrate_site(floor(), "typo.csv", public=True, columns=called)
    with pytest.raises(
        InvalidInput, match=r"no column 'time' among the 9 of wide\.csv, and the base"
    ):
        calibrate_site(floor(baseline="out"), "wide.csv", public=True)


@pytest.mark.unit
def test_an_empty_room_gives_levels_only() -> None:
    rows = [
        (hour, name, 20 + place / 10 + 0.01 * (-1) ** hour)
        for hour in range(4)
        for place, name in enumerate("abcdef")
    ]
    write_table("empty.csv", ["time", "sensor", "value"], rows)
    made = calibrate_site(floor(), "empty.csv", public=True)
    assert (made.gain, made.time, made.beside) == (None, None, None)
    assert made.ambient.value == pytest.approx(20.25)
    assert [off for _, off, _ in made.offsets] == pytest.approx(
        [-0.25, -0.15, -0.05, 0.05, 0.15, 0.25]
    )
    assert made.site.operator.time == 1.0
    assert "nobody stood in the room" in calibration_lines(made)[1]
    with pytest.raises(InvalidParameter, match="does not say what a source adds"):
        calibrate_site(
            floor(unit="", per_source=None, ambient=None), "empty.csv", public=True, unit="C"
        )


@pytest.mark.unit
def test_what_cannot_be_fitted_is_refused_and_nothing_written(rng: np.random.Generator) -> None:
    site = floor()
    flat = [(n, name, 20.0 + rng.normal(), 5, 3) for n in range(6) for name in "abcdef"]
    write_table("flat.csv", ["time", "sensor", "value", "x", "y"], flat)
    with pytest.raises(InvalidInput, match="nothing was fitted"):
        calibrate_site(site, "flat.csv", public=True, out="new.json")
    write_table("few.csv", ["sensor", "value"], [(name, 20) for name in "abcdef"])
    with pytest.raises(InvalidInput, match="6 readings are too few for 6 sensors"):
        calibrate_site(site, "few.csv", public=True, out="new.json")
    write_table("part.csv", ["sensor", "value"], [("a", 20)] * 20)
    with pytest.raises(InvalidInput, match="every sensor must be read, number 2 of 6 is not"):
        calibrate_site(site, "part.csv", public=True, out="new.json")
    write_table("other.csv", ["sensor", "value"], [("z", 20)])
    with pytest.raises(InvalidInput, match=r"row 1 of other\.csv is of no sensor"):
        calibrate_site(site, "other.csv", public=True, out="new.json")
    write_table("out.csv", ["time", "sensor", "value"], [(1, "out", 20), (2, "out", 21)])
    with pytest.raises(InvalidInput, match=r"out\.csv has readings of the baseline 'out' only"):
        calibrate_site(floor(baseline="out"), "out.csv", public=True, out="new.json")
    assert not Path("new.json").exists()


@pytest.mark.unit
@pytest.mark.parametrize("reads", [20.0, 35.0])
def test_a_sensor_that_does_not_read_the_volunteer_is_named_and_nothing_written(
    reads: float, rng: np.random.Generator
) -> None:
    """Stuck at any number, with noise or without; all others fit."""
    values, sensors, places, masses = scene(rng, 20, 0.05)
    assert fit_calibration(values, sensors, places, masses, PLACES).unresponsive == ()
    stuck = np.where(sensors == 4, reads + 0.05 * rng.normal(size=values.size), values)
    assert fit_calibration(stuck, sensors, places, masses, PLACES).unresponsive == (4,)
    rows = [
        ("abcdef"[sensor], reads if sensor == 4 else value, *("" if np.isnan(x) else x for x in at))
        for value, sensor, at in zip(
            values.tolist(), sensors.tolist(), places.tolist(), strict=True
        )
    ]
    write_table("stuck.csv", ["sensor", "value", "x", "y"], rows)
    with pytest.raises(InvalidInput, match="sensor 'e' does not read the volunteer where the"):
        calibrate_site(floor(), "stuck.csv", public=True, out="new.json")
    assert not Path("new.json").exists()


@pytest.mark.unit
def test_a_sensor_that_never_changes_in_an_empty_room_is_named(rng: np.random.Generator) -> None:
    noise = np.round(rng.normal(size=(12, 6)), 1)
    noise[:, 2] = 0.0
    rows = [(n, name, 20 + noise[n, i]) for n in range(12) for i, name in enumerate("abcdef")]
    write_table("empty.csv", ["time", "sensor", "value"], rows)
    made = calibrate_site(floor(), "empty.csv", public=True)
    assert made.stuck == ("c",)
    assert calibration_lines(made)[-1].startswith("LOOK AT sensor 'c': its readings are one and")
    assert CalibrationResult.from_json(json.loads(json.dumps(made.to_json()))) == made
    for row in range(12):
        rows[6 * row + 4] = (row, "e", 20.5)
    write_table("two.csv", ["time", "sensor", "value"], rows)
    two = calibration_lines(calibrate_site(floor(), "two.csv", public=True))[-1]
    assert two.startswith(
        "LOOK AT sensors 'c' and 'e': readings of each are one and the same number"
    )
    assert "they look stuck, and what they read where nobody is would be wrong" in two
    # Where all sensors read in steps that their noise seldom leaves, that says nothing.
    coarse = [(n, name, 20 + (n == i)) for n in range(4) for i, name in enumerate("abcdef")]
    write_table("coarse.csv", ["time", "sensor", "value"], coarse)
    assert calibrate_site(floor(), "coarse.csv", public=True).stuck == ()


@pytest.mark.unit
def test_a_stuck_sensor_does_not_move_with_the_weather(rng: np.random.Generator) -> None:
    """Less a running baseline it would: what it read is looked at."""
    outside = np.round(10 + 3 * np.sin(np.arange(12)), 1)
    noise = np.round(0.3 * rng.normal(size=(12, 6)), 1)
    rows: list[tuple[Any, ...]] = []
    for n, out in enumerate(outside.tolist()):
        rows.append((n, "out", out))
        for i, name in enumerate("abcdef"):
            rows.append((n, name, 20.0 if name == "c" else 10 + out + noise[n, i]))
    write_table("empty.csv", ["time", "sensor", "value"], rows)
    assert calibrate_site(floor(baseline="out"), "empty.csv", public=True).stuck == ("c",)


@pytest.mark.unit
def test_a_sensor_far_from_the_volunteer_is_not_stuck(rng: np.random.Generator) -> None:
    """Its steps are coarser than its noise: so would others read one number, if nobody stood there."""
    values, sensors, places, masses = scene(rng, 20, 0.01)
    near = sensors != 0
    masses = np.where(near, masses, 0.0)
    coarse = np.where(near, np.round(values, 1), 20.0)
    fit = fit_calibration(coarse, sensors, places, masses, PLACES)
    assert fit.unresponsive == fit.stuck == ()


@pytest.mark.unit
def test_a_calibration_is_the_same_by_command_and_by_call(rng: np.random.Generator) -> None:
    written(rng)
    floor().write("site.json")
    told = answer("calibrate", "site.json", "volunteer.csv", "--public", "--out", "a.json")
    result = calibrate_site("site.json", "volunteer.csv", public=True, out="b.json")
    assert {**told, "site": "b.json"} == result.to_json()
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    shown = done("calibrate", "site.json", "volunteer.csv", "--public", "--out", "c.json").stdout
    assert shown.splitlines() == [*calibration_lines(result), "c.json"]


@pytest.mark.unit
def test_rows_that_nobody_said_are_public_are_not_read() -> None:
    """A table of people would pass as one of an empty room, and its exact means stand in the site."""
    floor().write("site.json")
    with pytest.raises(InvalidParameter, match=r"said aloud by `public=True`; nothing was read"):
        calibrate_site("site.json", "there-is-none.csv", public=False, out="new.json")
    refused = done("calibrate", "site.json", "there-is-none.csv", "--out", "new.json", codes=(2,))
    assert "said aloud by --public; nothing was read" in refused.stderr
    assert not Path("new.json").exists()
