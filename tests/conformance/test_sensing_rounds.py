"""`sense recover --each`, the Python call and the saved files say the same; so does its page."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.cli.sense_runs import alone, answer, done, refused, spelled, table
from tests.conformance.test_sensing_recover import released
from tests.heatmap.export.test_page import embedded

from sfumato.errors import InvalidParameter
from sfumato.figures import sheet
from sfumato.files import read_floor_plan
from sfumato.sensing import Readings, read_readings, recover_rounds, recover_sources
from sfumato.sensing.render import draw_recovery, draw_rounds, rounds_text
from sfumato.sensing.results import read_recovered_rounds

pytestmark = pytest.mark.unit

TIMES = ("2026-03-01T11:00", "2026-03-01T12:00", "2026-03-01T13:00")
SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    monkeypatch.setattr(sheet, "DPI", 40)


def plans() -> list[str]:
    """plan.png, a dark strip on white, and walls.geojson; as options."""
    pixels = np.full((20, 40, 3), 255, dtype=np.uint8)
    pixels[:4] = 90
    Image.fromarray(pixels).save("plan.png")
    shape = {"type": "Polygon", "coordinates": [SQUARE]}
    Path("walls.geojson").write_text(json.dumps(shape))
    return ["--over", "plan.png", "--over-bounds", "0,0,1,1", "--outline", "walls.geojson"]


@pytest.mark.parametrize("kind", ["line", "plane", "graph"])
def test_rounds_are_the_same_from_everywhere(kind: str) -> None:
    released(kind, times=TIMES[:2])
    result = recover_rounds("r.json")
    words = ["recover", "r.json", "--each"]
    outs = ["--out", "all.json", "--out", "all.csv", "--out", "all.html"]
    plan = [] if kind == "graph" else plans()
    told = answer(*words, *outs, *plan)
    assert told == json.loads(json.dumps(result.summary()))
    saved = read_recovered_rounds("all.json")
    assert json.loads(Path("all.json").read_text()) == json.loads(json.dumps(result.to_json()))
    assert saved.to_json() == result.to_json()
    assert Path("all.csv").read_text() == result.table() == saved.table()
    alone = recover_sources("r.json", time="12:00", certify=False)
    assert saved.round_at(TIMES[1]).to_json() == alone.to_json()
    printed = " ".join(done(*words, "--quiet").stdout.split())
    for one in (result, saved):
        assert " ".join(spelled("recover", rounds_text(one)).split()) == printed
    floor = read_floor_plan("plan.png", bounds=(0, 0, 1, 1), outline="walls.geojson") if plan else (
        read_floor_plan()
    )  # fmt: skip
    assert Path("all.html").read_bytes() == draw_rounds(saved, plan=floor)
    held = embedded(Path("all.html").read_bytes())
    assert [one["name"] for one in held["rounds"]] == list(TIMES[:2])
    assert (held["image"] is None, len(held["lines"])) == ((False, 1) if plan else (True, 0))


def test_a_time_of_the_clock_is_one_round_and_a_range_several() -> None:
    released("line", times=TIMES)
    noon = answer("recover", "r.json", "--time", "12:00")
    assert noon == json.loads(json.dumps(recover_sources("r.json", time=TIMES[1]).summary()))
    words = ["recover", "r.json", "--each", "--estimator", "least", "--time", "12:00..13:00"]
    assert [one["time"] for one in answer(*words)["rounds"]] == list(TIMES[1:])
    two = recover_sources("r.json", average=True, time="12:00..13:00", estimator="least")
    words = ["recover", "r.json", "--average", "--estimator", "least", "--time", "12:00..13:00"]
    assert answer(*words) == json.loads(json.dumps(two.summary()))
    assert two.statement.startswith("2 readings, each ")
    said = refused(2, "recover", "r.json", "--time", "12:00..13:00")
    assert "choose one with --time, or --average them, or recover each of them with --each" in said


def test_rounds_cost_what_they_cost_together() -> None:
    released("line", times=TIMES, rho="10")
    told = answer("recover", "r.json", "--each", "--estimator", "least")
    assert float(Fraction(told["cost"]["rho"])) == pytest.approx(30, rel=1e-3)
    some = answer("recover", "r.json", "--each", "--estimator", "least", "--time", "..12:00")
    assert float(Fraction(some["cost"]["rho"])) == pytest.approx(20, rel=1e-3)
    assert some["statement"].startswith("2 rounds together, for a source that was there in all")


def test_a_round_without_some_sensors_is_solved_with_the_others() -> None:
    read = released("line", times=TIMES)
    part = read.snapshots[1]
    # As a device would have sent it that could not read two of its sensors.
    data = read.to_json()
    kept = [number for number in range(10) if number not in (3, 4)]
    shot = data["snapshots"][1]
    shot["names"] = [shot["names"][number] for number in kept]
    values = shot["release"]["value"]
    shot["release"]["value"] = _some(values, kept)
    Path("gap.json").write_text(json.dumps(data))
    assert read_readings("gap.json").snapshots[1].names == tuple(part.names[n] for n in kept)
    result = recover_rounds("gap.json", estimator="least")
    assert [one.missing for one in result.rounds] == [(), ("s3", "s4"), ()]
    told = answer("recover", "gap.json", "--each", "--estimator", "least")
    assert told["rounds"][1]["missing"] == ["s3", "s4"]
    printed = done("recover", "gap.json", "--each", "--estimator", "least").stdout
    assert "in 1 of 3 rounds sensors are missing (s3 and s4)" in printed


def _some(values: Any, kept: list[int]) -> Any:
    """The readings of some sensors, in whatever form they are saved."""
    if isinstance(values, list):
        return [values[number] for number in kept]
    return {**values, "values": [values["values"][number] for number in kept]}


def test_csv_readings_of_several_times_are_recovered_each() -> None:
    released("line", times=TIMES)
    words = ["recover", "r.csv", "--site", "site.json", "--each", "--estimator", "least"]
    told = answer(*words)
    result = recover_rounds("r.csv", site="site.json", estimator="least")
    assert told == json.loads(json.dumps(result.summary()))
    assert told["cost"] is None
    assert told["statement"] == "nothing was promised by sfumato for these readings"
    with pytest.raises(InvalidParameter, match="`site` goes with"):
        recover_rounds("r.json", site="site.json")


@pytest.mark.parametrize("more", [["--average"], ["--plot", "p.png"], ["--sources", "t.csv"]])
def test_what_is_of_one_answer_does_not_go_with_each(more: list[str]) -> None:
    released("line", times=TIMES)
    table("t.csv", ["cell", "mass"], [("3", 0.8)])
    said = refused(2, "recover", "r.json", "--each", *more)
    assert said.startswith(f"{more[0]} is of one answer, --each of many")


def test_a_page_needs_each_and_a_plan_its_bounds() -> None:
    released("plane")
    plans()
    assert "written as .csv or .json" in refused(2, "recover", "r.json", "--out", "a.html")
    for words in (["--over", "plan.png"], ["--over-bounds", "0,0,1,1"]):
        said = refused(2, "recover", "r.json", "--plot", "p.png", *words)
        assert "give --over together with --over-bounds" in said
    words = ["--over", "plan.png", "--over-bounds", "1,0,0,1"]
    assert "x0 below x1" in refused(2, "recover", "r.json", "--plot", "p.png", *words)
    words = ["--over", "walls.geojson", "--over-bounds", "0,0,1,1"]
    assert "cannot read walls.geojson as an image" in refused(4, "recover", "r.json", *words)


def test_a_plan_lies_under_pictures_of_a_plane_alone() -> None:
    read: Readings = released("plane")
    done("recover", "r.json", "--estimator", "least", "--plot", "bare.png")
    done("recover", "r.json", "--estimator", "least", "--plot", "over.png", *plans())
    floor = read_floor_plan("plan.png", bounds=(0, 0, 1, 1), outline="walls.geojson")
    result = recover_sources(read, estimator="least")
    assert Path("over.png").read_bytes() == draw_recovery(result, plan=floor)
    assert Path("over.png").read_bytes() != Path("bare.png").read_bytes()
    assert "plan.png (sha256 " in floor.sentence


def test_a_plan_under_a_picture_of_a_line_is_refused() -> None:
    released("line")
    said = refused(2, "recover", "r.json", "--estimator", "least", "--plot", "p.png", *plans())
    assert "a floor plan lies under pictures of a plane" in said
