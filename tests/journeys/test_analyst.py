"""An analyst with taxi trips of 537 cabs: a first map, a death, a day by day release of user-days."""

from __future__ import annotations

import csv
import json
import signal
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.journeys.conftest import Day

pytestmark = pytest.mark.fault

BOX = "11.2,43.74,11.32,43.81"
DAYS = [f"2026-03-{number:02d}" for number in range(1, 11)]


def trips(file: Path, rng: np.random.Generator, *, count: int = 3000) -> None:
    """Trips of 537 cabs over ten days, a few of them by far the busiest, most in two places."""
    cabs = np.minimum((rng.pareto(1.2, count) * 40).astype(int), 536)
    middle = np.where(rng.random((count, 1)) < 0.6, [[11.25, 43.77]], [[11.29, 43.79]])
    places = middle + rng.normal(0, 0.006, (count, 2))
    start = datetime(2026, 3, 1)
    with file.open("w", newline="") as target:
        rows = csv.writer(target)
        rows.writerow(["cab", "lon", "lat", "time"])
        for cab, (x, y), second in zip(cabs, places, rng.integers(0, 864_000, count), strict=True):
            when = (start + timedelta(seconds=int(second))).isoformat()
            rows.writerow([f"cab{cab}", f"{x:.6f}", f"{y:.6f}", when])


def test_a_map_of_cabs_and_a_death(day: Day, rng: np.random.Generator) -> None:
    trips(day.folder / "trips.csv", rng)
    create = (
        "ledger",
        "create",
        "cabs.ledger",
        "--epsilon",
        "2",
        "--unit",
        "cab",
        "--source",
        "taxi",
    )
    day.done(*create, "--quiet")
    assert "exists already" in day.done(*create, code=8)
    ask = ("heatmap", "release", "trips.csv", "--user", "cab", "--bounds", BOX, "--levels", "5",
           "--ledger", "cabs.ledger", "--method", "pyramid")  # fmt: skip
    assert "would cost epsilon 1" in day.done(
        *ask, "--epsilon", "1", "--out", "m.json", "--dry-run"
    )
    # Ctrl-C in the middle: it says what it has paid, and the next command delivers it.
    words = (*ask, "--epsilon", "1", "--out", "m.csv", "--out", "m.json", "--quiet")
    said = day.killed("writing", *words, number=signal.SIGINT, second="m.json")
    assert said.endswith(
        "interrupted; entry 1 of cabs.ledger, epsilon 1, was charged and its counts are kept: "
        "sfumato heatmap resume cabs.ledger\n"
    )
    before = (day.folder / "m.csv").read_bytes()
    assert day.left("cabs.ledger") == 1.0
    assert "heatmap, drawn; for m.csv, m.json" in day.done(
        "heatmap", "resume", "cabs.ledger", "--list"
    )
    assert "finished: entry 1" in day.done("heatmap", "resume", "cabs.ledger", "--quiet")
    assert (day.folder / "m.csv").read_bytes() == before
    assert "nothing to finish" in day.done("heatmap", "resume", "cabs.ledger")
    assert day.left("cabs.ledger") == 1.0
    assert "1 release(s) paid for" in day.done(
        "ledger", "verify", "cabs.ledger", "--against", "m.json"
    )
    # Power is lost after the charge, before anything is drawn.
    day.killed("charged", *words[:-5], "--out", "n.json", "--quiet")
    assert day.left("cabs.ledger") == 0.0
    assert not (day.folder / "n.json").exists()
    day.done("heatmap", "resume", "cabs.ledger", "--quiet")
    assert json.loads((day.folder / "n.json").read_text())["entry"]["number"] == 2
    assert "0 left" in day.done(*words[:-5], "--out", "x.json", "--quiet", code=3)


def test_every_row_somebody_else(day: Day, rng: np.random.Generator) -> None:
    trips(day.folder / "trips.csv", rng, count=500)
    day.done("ledger", "create", "t.ledger", "--epsilon", "1", "--unit", "trip", "--source", "taxi")
    ask = ("heatmap", "release", "trips.csv", "--bounds", BOX, "--levels", "5", "--epsilon", "1",
           "--ledger", "t.ledger", "--method", "laplace", "--out", "m.json")  # fmt: skip
    assert "--one-row-one-user" in day.done(*ask, code=2)
    day.done(*ask, "--one-row-one-user", "--quiet")
    assert day.left("t.ledger") == 0.0


def test_ten_days_with_the_whole_budget_each(day: Day, rng: np.random.Generator) -> None:
    """A user-day ledger pays for each day by itself; a second release of a day is refused, by its name."""
    trips(day.folder / "trips.csv", rng)
    day.done(
        "ledger", "create", "days.ledger", "--epsilon", "1", "--unit", "cab-day", "--source", "taxi"
    )

    def ask(start: str, out: str) -> tuple[str, ...]:
        end = (datetime.fromisoformat(start) + timedelta(days=1)).date().isoformat()
        return ("heatmap", "release", "trips.csv", "--user", "cab", "--bounds", BOX, "--levels", "4",
                "--ledger", "days.ledger", "--epsilon", "1", "--method", "laplace", "--time", "time",
                "--by", "day", "--from", start, "--to", end, "--mass-per-period", "--out", out,
                "--quiet")  # fmt: skip

    for number, start in enumerate(DAYS):
        if number == 4:  # the machine dies in the middle of a night
            day.killed("kept", *ask(start, "{by}.json"))
            day.done("heatmap", "resume", "days.ledger", "--quiet")
        else:
            day.done(*ask(start, "{by}.json"))
    assert len(list(day.folder.glob("2026-03-*.json"))) == 10
    told = day.done(*ask("2026-03-05", "again-{by}.json"), code=3)
    assert "2026-03-05" in told
    assert len(day.told("ledger", "show", "days.ledger")["entries"]) == 10


def test_from_a_plan_to_a_comparison_of_weekends(day: Day, rng: np.random.Generator) -> None:
    """Plan frames, map by weekday, count pickups, compare, totals by district, a film, polygons, a notebook."""
    trips(day.folder / "trips.csv", rng)
    halves = {"west": (11.2, 11.26), "east": (11.26, 11.32)}
    shapes = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": [
            [[a, 43.74], [b, 43.74], [b, 43.81], [a, 43.81], [a, 43.74]]]}}
        for name, (a, b) in halves.items()
    ]  # fmt: skip
    districts = day.folder / "districts.geojson"
    districts.write_text(json.dumps({"type": "FeatureCollection", "features": shapes}))
    assert "expect noise" in day.done(
        "heatmap", "plan", "--users", "537", "--epsilon", "1", "--frames", "24"
    )
    day.done("ledger", "create", "c.ledger", "--epsilon", "4", "--unit", "cab", "--source", "taxi")
    ask = ("heatmap", "release", "trips.csv", "--user", "cab", "--bounds", BOX, "--levels", "4",
           "--ledger", "c.ledger", "--epsilon", "1", "--quiet")  # fmt: skip
    week = ("--time", "time", "--by", "weekday", "--from", "2026-03-01", "--to", "2026-03-11")
    day.done(
        *ask, *week, "--outline", "districts.geojson", "--out", "{by}.json", "--out", "week.html"
    )
    assert '"scale":' in (day.folder / "week.html").read_text()
    # Eight in the morning on Mondays: by two columns of one time.
    both = ("--by", "hour-of-day", "--method", "laplace", "--out", "{weekday}-{hour-of-day}.csv")
    day.done(*ask, *week, *both)
    assert (day.folder / "monday-08h.csv").exists()
    # Pickups, not cabs.
    day.done(*ask, "--rows-per-user", "8", "--out", "pickups.json", "--out", "pickups.geojson")
    told = day.told("heatmap", "totals", "pickups.json", "districts.geojson")
    assert [one["name"] for one in told["zones"]] == ["west", "east"]
    assert "rows are counted, at most 8 of each cab" in (day.folder / "pickups.json").read_text()
    said = day.told("heatmap", "compare", "saturday.json", "monday.json", "--zones", "districts.geojson",
                    "--out", "change.png", "--out", "change.csv")  # fmt: skip
    assert len(said["zones"]) == 2
    assert (day.folder / "change.csv").read_text().startswith("name,before,after,change")
    day.done("heatmap", "film", "monday.json", "tuesday.json", "--out", "two.html")
    assert day.told("emd", "monday.json", "sunday.json")["unit"] == "m"
    # The notebook opens what the command saved.
    from sfumato.heatmap import read_heatmap

    frame = read_heatmap(day.folder / "monday.json").to_dataframe()
    assert {"users", "share"} <= set(frame.columns)
    assert day.left("c.ledger") == 1.0
