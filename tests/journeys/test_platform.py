"""A platform engineer: the same map by several engines, a daily job that runs twice, alarms on what is left."""

from __future__ import annotations

import importlib.util
import json
import signal
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.journeys.conftest import Day

from sfumato.heatmap import read_heatmap

pytestmark = pytest.mark.fault

ENGINES = [name for name in ("duckdb", "polars") if importlib.util.find_spec(name)]
ASK = ("heatmap", "release", "--user", "user", "--bounds", "0,0,1,1", "--plane", "--levels", "4",
       "--method", "laplace", "--quiet")  # fmt: skip


def table(file: Path, rng: np.random.Generator, rows: int = 20_000) -> None:
    users = rng.integers(0, 4000, rows)
    x, y = rng.beta(2, 5, (2, rows))
    columns = {"user": users, "lon": x, "lat": y}
    pq.write_table(pa.table(columns), file)


def test_a_nightly_job_that_is_started_twice_killed_and_retried(
    day: Day, rng: np.random.Generator
) -> None:
    table(day.folder / "events.parquet", rng)
    day.done(
        "ledger", "create", "p.ledger", "--epsilon", "3", "--unit", "user", "--source", "events"
    )

    def job(night: str) -> tuple[str, ...]:
        return (*ASK, "events.parquet", "--ledger", "p.ledger", "--epsilon", "1", "--once", night,
                "--out", f"{night}.json", "--out", f"{night}.csv")  # fmt: skip

    day.done(*job("monday"))
    first = (day.folder / "monday.json").read_bytes()
    day.done(*job("monday"), code=7)
    assert (day.folder / "monday.json").read_bytes() == first
    assert day.left("p.ledger") == 2.0
    # Killed at three stages, each time started again: one charge, and the files at the end.
    day.killed("before", *job("tuesday"))
    day.killed("charged", *job("tuesday"), number=signal.SIGTERM)
    day.killed("writing", *job("tuesday"), second="tuesday.csv")
    assert json.loads(day.done(*job("tuesday"), "--json", code=7))["made_before"] is True
    assert day.left("p.ledger") == 1.0
    assert (day.folder / "tuesday.csv").exists()
    # Another request under a key is refused, and a file that was changed is kept.
    other = [word if word != "1" else "1/2" for word in job("tuesday")]
    assert "is the key of another request" in day.done(*other, code=4)
    (day.folder / "monday.csv").write_text("mine")
    assert "is not what was released" in day.done(*job("monday"), code=8)
    assert (day.folder / "monday.csv").read_text() == "mine"
    # Alarms.
    day.done("ledger", "show", "p.ledger", "--fail-below", "1")
    assert day.run("ledger", "show", "p.ledger", "--fail-below", "2")[0] == 6
    assert "chain of 2 entries is whole" in day.done("ledger", "verify", "p.ledger")
    assert day.left("p.ledger") == 1.0


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_have_moved_are_drawn_from_their_new_place(
    day: Day, rng: np.random.Generator, engine: str
) -> None:
    table(day.folder / "events.parquet", rng)
    day.done(
        "ledger", "create", "p.ledger", "--epsilon", "1", "--unit", "user", "--source", "events"
    )
    words = (*ASK, "events.parquet", "--ledger", "p.ledger", "--epsilon", "1", "--engine", engine,
             "--out", "m.json")  # fmt: skip
    day.killed("charged", *words)
    (day.folder / "cold").mkdir()
    (day.folder / "events.parquet").rename(day.folder / "cold" / "events.parquet")
    assert "events.parquet" in day.done("heatmap", "resume", "p.ledger", code=4)
    day.done("heatmap", "resume", "p.ledger", "--input", "cold/events.parquet", "--quiet")
    assert json.loads((day.folder / "m.json").read_text())["entry"]["number"] == 1
    assert day.left("p.ledger") == 0.0


def test_two_columns_of_a_database_and_of_a_file_are_the_same_sums(
    day: Day, rng: np.random.Generator
) -> None:
    """The same maps from SQLite and from Parquet: with a million epsilon, the same totals."""
    users = rng.integers(0, 200, 3000)
    x, y = rng.beta(2, 5, (2, 3000))
    device = np.array(["phone", "desk"])[rng.integers(0, 2, 3000)]
    app = np.array(["map", "mail", "hidden"])[rng.integers(0, 3, 3000)]
    columns = {"user": users, "lon": x, "lat": y, "device": device, "app": app}
    pq.write_table(pa.table(columns), day.folder / "events.parquet")
    with sqlite3.connect(day.folder / "events.db") as database:
        database.execute(
            "create table events (user int, lon real, lat real, device text, app text)"
        )
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        database.executemany("insert into events values (?, ?, ?, ?, ?)", rows)
    by = ("--by", "device", "--values", "phone,desk", "--by", "app", "--values", "map,mail")
    totals = []
    for kind, source in (("file", "events.parquet"), ("base", "events.db::events")):
        day.done("ledger", "create", f"{kind}.ledger", "--epsilon", "1000000", "--unit", "user",
                 "--source", "events", "--quiet")  # fmt: skip
        day.done(*ASK, source, "--ledger", f"{kind}.ledger", "--epsilon", "1000000", *by,
                 "--out", f"{kind}-{{by}}.json")  # fmt: skip
        names = ("phone_map", "phone_mail", "desk_map", "desk_mail")
        maps = [read_heatmap(day.folder / f"{kind}-{name}.json") for name in names]
        totals.append([one.tiles.total for one in maps])
    assert totals[0] == pytest.approx(totals[1], abs=0.01)
    assert sum(totals[0]) == pytest.approx(200, abs=0.5)
    # A ledger of user-devices pays once for mass 1 on each device, and shares it over apps.
    day.done("ledger", "create", "d.ledger", "--epsilon", "1", "--unit", "user-device", "--source", "events",
             "--quiet")  # fmt: skip
    ask = (*ASK, "events.db::events", "--ledger", "d.ledger", "--epsilon", "1", "--mass-per-value")
    day.done(*ask, *by[:4], "--out", "{by}.csv")
    assert day.left("d.ledger") == 0.0
