"""`sfumato heatmap release --time`: a frame for each period, one charge, and a film of all of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.heatmap.export.test_page import embedded, read
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap import read_heatmap
from sfumato.heatmap.export import timelapse as film
from sfumato.privacy import Ledger, PureDP

pytestmark = pytest.mark.unit

PEOPLE = 30
# Noise of about a thousandth of a user.
CLEAR = "1000"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """People who are there on the first day, and some of them again on the third."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)
    user = np.concatenate([np.arange(PEOPLE), np.arange(PEOPLE // 3)])
    day = np.repeat([5, 7], [PEOPLE, PEOPLE // 3])
    moments = [f"2026-01-{one:02}T09:30:00+01:00" for one in day]
    table = pa.table(
        {"user": user, "x": np.full(user.size, 0.3), "y": np.full(user.size, 0.7), "t": moments}
    )
    pq.write_table(table.append_column("day", pa.array(day.astype(str))), "rows.parquet")
    Ledger.create("city.ledger", PureDP(100_000), unit="user", source="city")
    return tmp_path


def run(*more: str, epsilon: str = CLEAR, ledger: str = "city.ledger") -> Result:
    words = [
        "heatmap", "release", "rows.parquet", "--user", "user", "--x", "x", "--y", "y", "--plane",
        "--bounds", "0,0,1,1", "--levels", "3", "--epsilon", epsilon, "--ledger", ledger, *more,
    ]  # fmt: skip
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


DAYS = ["--time", "t", "--by", "day", "--from", "2026-01-05", "--to", "2026-01-09"]


def test_a_film_and_a_file_for_each_day() -> None:
    result = run(*DAYS, "--out", "film.html", "--out", "map-{by}.json", "--out", "page-{by}.html")
    assert result.exit_code == 0, result.stderr
    names = [f"2026-01-0{day}" for day in (5, 6, 7, 8)]
    files = {path.name for path in Path().iterdir()}
    assert files >= {
        "film.html",
        *(f"map-{n}.json" for n in names),
        *(f"page-{n}.html" for n in names),
    }
    maps = [read_heatmap(f"map-{name}.json") for name in names]
    # A third of the people share their mass between two days.
    assert [one.tiles.total for one in maps] == pytest.approx([25, 0, 5, 0], abs=0.5)
    assert [one.counted["period"]["start"][:10] for one in maps] == names
    held = embedded(Path("film.html").read_bytes())
    assert held["totals"] == pytest.approx([25, 0, 5, 0], abs=0.5)
    (entry,) = Ledger("city.ledger").statement().entries
    assert entry.cost == PureDP(1000)


def test_mass_per_period_and_a_ledger_of_user_days() -> None:
    made = run(*DAYS, "--mass-per-period", "--out", "map-{by}.json", "--json")
    assert json.loads(made.stdout)["entry"]["cost"] == {"kind": "PureDP", "epsilon": "4000"}
    found = read_heatmap("map-2026-01-07.json")
    assert found.tiles.total == pytest.approx(10, abs=0.5)
    Ledger.create("days.ledger", PureDP(1000), unit="user-day", source="city")
    made = run(*DAYS, "--mass-per-period", "--out", "day-{by}.json", ledger="days.ledger")
    promised, left, off, *marks = made.stdout.splitlines()
    assert promised == (
        "epsilon 1000 for each user-day (one user-day added or removed), central model"
    )
    days = "2026-01-05 to 2026-01-08"
    assert left == f"left for {days} (the least of them) in days.ledger: epsilon 0"
    assert off.startswith("on average mass is ")
    assert " off, by map (all 90% intervals: " in off
    assert "looked at" not in off  # all four
    # Nobody is there on the second and the fourth day; one in twenty such maps is not told from others.
    each = [f"2026-01-0{day}" for day in (5, 6, 7, 8)]
    empty = [day for day in each if read_heatmap(f"day-{day}.json").empty]
    assert set(empty) <= {each[1], each[3]}
    assert marks == [
        f"{len(empty)} of 4 maps indistinguishable from empty: 19 of 20 maps of nobody stay below the "
        f"same mark ({', '.join(empty)})"
    ] * bool(empty)


def test_a_ledger_of_user_days_pays_for_days_by_one_clock() -> None:
    Ledger.create("days.ledger", PureDP(9000), unit="user-day", source="city")
    rows, film = (
        Path("rows.parquet").read_bytes(),
        [*DAYS, "--mass-per-period", "--out", "day-{by}.json"],
    )
    # It is refused before a row is read, and in a plan as well.
    Path("rows.parquet").write_bytes(b"cannot be read")
    for more in (
        ["--out", "map.json"],
        [*DAYS, "--out", "m-{by}.json"],
        ["--out", "map.json", "--dry-run"],
    ):
        refused = run(*more, ledger="days.ledger")
        assert refused.exit_code == 2
        assert (
            "protects each user-day pays for periods of a day with --mass-per-period"
            in refused.stderr
        )
    private = run(
        *["--bounds", "private", "--outer", "0,0,1,1", "--out", "map.json"], ledger="days.ledger"
    )
    assert (private.exit_code, "protects each user-day" in private.stderr) == (2, True)
    assert Ledger("days.ledger").statement().entries == ()
    Path("rows.parquet").write_bytes(rows)
    assert run(*film, "--time-zone", "Europe/Rome", ledger="days.ledger").exit_code == 0
    for zone in ([], ["--time-zone", "UTC"], ["--dry-run"]):
        refused = run(*film, *zone, "--overwrite", ledger="days.ledger")
        assert refused.exit_code == 4
        assert "protects each user-day by the clock 't' in Europe/Rome" in refused.stderr
        assert refused.stderr.endswith("; nothing was charged\n")
    shown = CliRunner().invoke(app, ["ledger", "show", "days.ledger"])
    assert "per user-day by the clock 't' in Europe/Rome" in shown.stdout
    shown = CliRunner().invoke(app, ["ledger", "show", "days.ledger", "--json"])
    found = json.loads(shown.stdout)
    assert found["clock"] == found["entries"][0]["clock"] == {"column": "t", "zone": "Europe/Rome"}
    assert len(found["entries"]) == 1


def test_of_many_maps_the_terminal_and_the_film_say_how_far_off_some_are() -> None:
    """Fourteen maps: four are looked at, and both say so in the same words."""
    days = ["--time", "t", "--by", "day", "--from", "2026-01-01", "--to", "2026-01-15"]
    made = run(*days, "--out", "film.html", "--out", "map-{by}.json")
    assert made.exit_code == 0, made.stderr
    off = made.stdout.splitlines()[2]
    assert off.startswith("on average mass is ")
    assert off.endswith("; 4 of 14 maps looked at)")
    page = read(Path("film.html").read_bytes())
    assert off in " ".join("".join(page.inside[""]).split())
    result = json.loads(run(*days, "--out", "again-{by}.json", "--json").stdout)
    assert len(result["errors"]) == len(result["errors_of"]) == 4
    saved = json.loads(Path(f"again-{result['errors_of'][3]}.json").read_text(encoding="utf-8"))
    assert saved["error"] == result["errors"][3]


def test_a_zone_moves_the_hours() -> None:
    hours = [
        "--time",
        "t",
        "--by",
        "hour",
        "--from",
        "2026-01-05T08:00",
        "--to",
        "2026-01-05T11:00",
    ]
    assert run(*hours, "--out", "utc-{by}.json").exit_code == 0
    assert run(*hours, "--time-zone", "Europe/Helsinki", "--out", "local-{by}.json").exit_code == 0
    totals = [
        [read_heatmap(f"{kind}-2026-01-05T{hour:02}.json").tiles.total for hour in (8, 9, 10)]
        for kind in ("utc", "local")
    ]
    assert totals[0] == pytest.approx([30, 0, 0], abs=0.5)
    assert totals[1] == pytest.approx([0, 0, 30], abs=0.5)


def test_a_plan_says_the_cost_and_the_frames_and_reads_no_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("sfumato.heatmap.pipeline.release_plan.sum_cells")
    plan = run(*DAYS, "--mass-per-period", "--out", "film.html", "--dry-run", epsilon="1/2")
    assert plan.stdout.startswith(
        "would cost epsilon 2 for 4 frames; epsilon 100000 left in city.ledger; "
    )
    one = ["--time", "t", "--by", "whole", *DAYS[DAYS.index("--from") :]]
    plan = run(*one, "--out", "{by}.png", "--out", "{by}.json", "--dry-run", epsilon="1/2")
    assert plan.stdout.startswith("would cost epsilon 0.5 for 1 frame; epsilon 100000 left in ")
    twice = run(*one, "--out", "map.png", "--out", "map.json", "--dry-run", epsilon="1/2")
    assert twice.stderr.startswith("sfumato: with --by every one of --out needs {by} in its name")
    assert twice.stderr.count("every one of --out") == 1
    plan = run(*DAYS, "--out", "film.html", "--dry-run", "--json", epsilon="1/2")
    assert json.loads(plan.stdout)["frames"] == 4
    dear = run(*DAYS, "--mass-per-period", "--out", "film.html", "--dry-run", epsilon="50000")
    assert dear.exit_code == 3
    assert "epsilon 50000 in each of 4 periods: asked epsilon 200000" in dear.stderr
    assert not Ledger("city.ledger").statement().entries


def test_without_time_a_day_is_a_column() -> None:
    made = run("--by", "day", "--values", "5,7", "--out", "map-{by}.json")
    assert made.exit_code == 0, made.stderr
    assert read_heatmap("map-7.json").counted["by"] == "day"
    assert "period" not in read_heatmap("map-7.json").counted


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--time", "t", "--by", "day", "--from", "2026-01-05"], "--time needs --by hour, day"),
        (["--time", "t", "--by", "fortnight", *DAYS[4:]], "--time needs --by hour, day"),
        ([*DAYS, "--values", "a"], "one list for each column"),
        (
            [*DAYS, "--by", "no", "--by", "more", "--values", "a", "--values", "b"],
            "two columns at most",
        ),
        ([*DAYS, "--mass-per-value"], "about the values of a column"),
        (["--by", "day", "--values", "5", "--from", "2026-01-05"], "name it with --time"),
        (["--mass-per-period"], "name it with --time"),
        ([*DAYS[:5], "yesterday", *DAYS[6:]], "--from must be a date or a time like"),
        ([*DAYS[:5], "2026-01-05T00:00Z", *DAYS[6:]], "without an offset"),
        (
            [*DAYS[:3], "hour", "--from", "2020-01-01", "--to", "2021-01-01"],
            "must number 1 to 1000",
        ),
        ([*DAYS, "--time-zone", "Mars"], "a time zone is a name like"),
        ([*DAYS, "--out", "all.png"], "every one of --out needs {by} in its name"),
        ([*DAYS, "--levels", "16"], "groups times cells must be at most 2**32"),
        (["--time", "user", *DAYS[2:]], "column 'user' must hold times"),
        (["--time", "never", *DAYS[2:]], "there is no column 'never'"),
    ],
)
def test_a_mistake_is_one_sentence_and_costs_nothing(more: list[str], words: str) -> None:
    result = run("--out", "map-{by}.json", *more, "--quiet")
    assert result.exit_code in (2, 4), result.output
    assert words in result.stderr
    assert result.stderr.startswith("sfumato: ")
    assert result.stderr.count("\n") == 1
    assert not Ledger("city.ledger").statement().entries
    assert {path.name for path in Path().iterdir()} == {"rows.parquet", "city.ledger"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--bounds", "private", "--outer", "0,0,1,1"], "does not go with --bounds private"),
        (["--user", "", "--one-row-one-user"], "goes without --mass-per-period"),
    ],
)
def test_mass_per_period_needs_users_and_an_area(more: list[str], words: str) -> None:
    result = run(*DAYS, "--mass-per-period", "--out", "film.html", "--quiet", *more)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not Ledger("city.ledger").statement().entries


def test_maps_are_kept_when_the_film_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as disk:
        disk.setattr(film, "save", full)
        result = run(*DAYS, "--out", "film.html")
    assert result.exit_code == 4
    assert result.stderr.endswith(
        "sfumato: could not write film.html (the disk is full); entry 1 of city.ledger, epsilon 1000, was "
        "charged and its counts are kept: sfumato heatmap resume city.ledger\n"
    )
    assert not Path("film.html").exists()
    words = ["heatmap", "resume", "city.ledger", "--out", "map-{by}.json"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert len(Ledger("city.ledger").statement().entries) == 1
    kept = sorted(Path().glob("map-*.json"))
    assert [read_heatmap(one).group for one in kept] == [f"2026-01-0{day}" for day in (5, 6, 7, 8)]
    mixed = [str(kept[place]) for place in (2, 0, 3, 1)]
    made = CliRunner().invoke(
        app, ["heatmap", "film", *mixed, "--out", "again.html", "--title", "A week"]
    )
    assert (made.exit_code, made.stdout) == (0, "again.html\n")
    held = embedded(Path("again.html").read_bytes())
    assert (held["title"], held["names"][0]) == ("A week", "Mon 2026-01-05")
    assert held["totals"] == pytest.approx([25, 0, 5, 0], abs=0.5)
