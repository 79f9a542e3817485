"""Levels, names of columns, rounds and references are the same by command, by call and from the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.sense_runs import HALL, alone, answer, done, refused, table

from sfumato.privacy import ZCDP
from sfumato.sensing import Columns, describe_site, read_readings, read_site, release_readings

pytestmark = pytest.mark.unit
SHARED = Path(__file__).resolve().parents[3] / "shared/data/sensors"
SITE = (
    "--line", "20", "--sensors", "s.csv", "--sensor", "name", "--x", "at", "--diffusion-time", "0.02",
    "--radius", "1/10", "--beside", "1C", "--ambient", "20C", "--baseline", "out", "--largest", "5C",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


def test_a_site_in_degrees_is_one_command_and_the_same_by_call() -> None:
    table("s.csv", ["name", "at"], HALL.items())
    told = answer("site", "a.json", "--name", "hall", *SITE)
    result = describe_site(
        "hall", line=20, sensors="s.csv", columns=Columns(sensor="name", x="at"), diffusion_time=0.02,
        radius="1/10", beside="1C", ambient="20C", baseline="out", largest="5C", out="b.json",
    )  # fmt: skip
    assert {**told, "site": "b.json"} == result.to_json()
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    said = done("site", "c.json", "--name", "hall", *SITE).stderr
    assert "taken off readings, public: 20 C, and what 'out' reads" in said
    without = [word for word in SITE if word not in ("--ambient", "20C", "--baseline", "out")]
    assert "--ambient (0 if it is taken off already)" in refused(
        2, "site", "d.json", "--name", "hall", *without
    )


def test_a_release_by_rounds_is_the_same_and_its_file_says_so() -> None:
    table("s.csv", ["name", "at"], HALL.items())
    done("site", "site.json", "--name", "hall", *SITE)
    done("ledger", "site.json", "hall.ledger", "--rho", "1e14")
    rows = [
        (f"2026-11-16T09:0{minute}:{3 * place:02}Z", name, 22 + place + minute)
        for minute in range(3)
        for place, name in enumerate(HALL)
    ]
    table("r.csv", ["when", "who", "degrees"], rows)
    table("out.csv", ["time", "value"], [("2026-11-16T08:00Z", 2)])
    words = ["release", "r.csv", "--site", "site.json", "--ledger", "hall.ledger", "--rho", "1e12",
             "--sensor", "who", "--value", "degrees", "--time", "when",
             "--reference", "out.csv"]  # fmt: skip
    assert "--round-time 30s makes 3 rounds of them" in refused(4, *words, "--out", "a.json")
    told = answer(*words, "--round-time", "1m", "--out", "a.json")
    result = release_readings(
        "r.csv", "site.json", ledger="hall.ledger", loss=ZCDP("1e12"), round_time="1m",
        columns=Columns(sensor="who", value="degrees", time="when"), reference="out.csv",
        out=["b.json"],
    )  # fmt: skip
    same = {**result.to_json(), "written": ["a.json"]}
    assert {**told, "ledgers": 0} == {**same, "ledgers": 0}
    first, second = read_readings("a.json"), read_readings("b.json")
    assert [one.time for one in first.snapshots] == [f"2026-11-16T09:0{n}Z" for n in range(3)]
    unit = float(read_site("site.json").per_source or 1)
    for number, (one, other) in enumerate(zip(first.snapshots, second.snapshots, strict=True)):
        exact = [min(place + number, 5) / unit for place in range(4)]
        assert one.numbers() == pytest.approx(exact, abs=1e-3)
        assert other.numbers() == pytest.approx(exact, abs=1e-3)


@pytest.mark.skipif(not SHARED.exists(), reason="the sensor data of the project is not here")
def test_the_labs_wide_parquet_is_read_as_it_is() -> None:
    import pandas as pd

    places = pd.read_csv(SHARED / "intel_lab_mote_positions.csv").query("in_temperature_file == 1")
    places.assign(mote=[f"mote_{one:02}" for one in places.mote]).to_csv("motes.csv", index=False)
    hour = pd.read_parquet(SHARED / "intel_lab_temperature_30s.parquet").iloc[1200:1320:60]
    hour.to_parquet("hour.parquet")
    done(
        "site", "lab.json", "--name", "lab", "--sensors", "motes.csv", "--sensor", "mote", "--x", "x_m",
        "--y", "y_m", "--grid", "4", "--bounds", "0,0,41,32", "--diffusion-time", "8", "--radius", "1",
        "--beside", "2C", "--ambient", "18C", "--step", "0.01", "--largest", "20C",
    )  # fmt: skip
    done("ledger", "lab.json", "lab.ledger", "--rho", "1e12")
    words = (
        "release",
        "hour.parquet",
        "--site",
        "lab.json",
        "--ledger",
        "lab.ledger",
        "--rho",
        "1e10",
    )
    told = answer(*words, "--time", "step", "--out", "r.json")
    assert told["readings"] == 2
    site, read = read_site("lab.json"), read_readings("r.json").snapshots[0]
    above = hour.iloc[0][list(read.names)].to_numpy(dtype=float) - 18
    assert read.numbers() * float(site.per_source or 1) == pytest.approx(above, abs=0.01)


@pytest.mark.skipif(not SHARED.exists(), reason="the sensor data of the project is not here")
def test_the_thermal_arrays_own_ambient_is_a_running_baseline() -> None:
    import pandas as pd

    frame = pd.read_parquet(SHARED / "thermal_array_4x4_people.parquet").iloc[:2]
    names = [f"t{number:02}_dC" for number in range(1, 17)]
    frame.drop(columns="time").assign(round=["a", "b"]).to_parquet("array.parquet")
    table("s.csv", ["sensor", "x", "y"], [(n, i % 4, i // 4) for i, n in enumerate(names)])
    done(
        "site", "array.json", "--name", "array", "--sensors", "s.csv", "--grid", "2", "--bounds",
        "-0.5,-0.5,3.5,3.5", "--diffusion-time", "0.5", "--radius", "1", "--beside", "60dC",
        "--baseline", "ambient_dC", "--step", "1",
    )  # fmt: skip
    done("ledger", "array.json", "array.ledger", "--rho", "1e12")
    answer("release", "array.parquet", "--site", "array.json", "--ledger", "array.ledger", "--rho", "1e10",
           "--time", "round", "--out", "r.json")  # fmt: skip
    site, read = read_site("array.json"), read_readings("r.json").snapshots[1]
    above = frame.iloc[1][names].to_numpy(dtype=float) - float(frame.iloc[1]["ambient_dC"])
    assert read.numbers() * float(site.per_source or 1) == pytest.approx(above, abs=0.1)
    assert json.loads(Path("array.json").read_text())["level"]["running"] == "ambient_dC"
