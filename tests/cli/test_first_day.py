"""Slips of somebody who is new: what is public is checked before anything is paid, and the near name said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.sense_runs import alone, entries
from tests.cli.test_once_and_resume import ended

from sfumato.cli.endings import INVALID, USAGE
from sfumato.privacy import Ledger, PureDP

pytestmark = [
    pytest.mark.unit,
    pytest.mark.filterwarnings("always:.*are they exchanged"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    rows = "\n".join(
        f"{number},0.5,0.5,2010-09-0{1 + number % 2} 07:15:00+00" for number in range(8)
    )
    Path("visits.csv").write_text(f"user_id,lon,lat,at\n{rows}\n")
    Ledger.create("fsq.ledger", PureDP(2), unit="user", source="fsq")


def words(
    *more: str, ledger: str = "fsq.ledger", user: str = "user_id", file: str = "visits.csv"
) -> list[str]:
    out = "m-{by}.json" if "--time" in more else "m.json"
    return ["heatmap", "release", file, "--user", user, "--plane", "--bounds", "0,0,1,1", "--levels", "2",
            "--method", "laplace", "--epsilon", "1", "--ledger", ledger, "--out", out, *more]  # fmt: skip


def test_a_dry_run_looks_at_what_is_public_of_the_rows() -> None:
    missing = ended(INVALID, *words("--dry-run", file="visit.csv")).stderr
    assert "visit.csv" in missing
    named = ended(INVALID, *words("--dry-run", user="userid")).stderr
    assert "there is no column 'userid'" in named
    assert "did you mean 'user_id'?" in named
    assert "would cost epsilon 1" in ended(0, *words("--dry-run")).stdout
    assert entries("fsq.ledger") == ()


def test_a_column_that_is_not_there_is_no_other_table() -> None:
    ended(0, *words("--quiet"))
    told = ended(INVALID, *words("--overwrite", user="userid")).stderr
    assert "did you mean 'user_id'?" in told
    assert "--other-table" not in told
    told = ended(INVALID, *words("--overwrite", user="at")).stderr  # it is there, and is another
    assert "--other-table" in told


@pytest.mark.parametrize("name", ["fsq.ledge", "fsq", "fsqq.ledger"])
def test_a_ledger_of_nearly_that_name_is_named(name: str) -> None:
    told = ended(INVALID, *words("--dry-run", ledger=name)).stderr
    assert f"there is no ledger at {name}; did you mean fsq.ledger? else make one" in told


def test_a_ledger_of_another_name_is_not_meant() -> None:
    assert "did you mean" not in ended(INVALID, "ledger", "show", "town.ledger").stderr


def test_coordinates_that_are_called_otherwise_are_asked_about() -> None:
    told = ended(0, *words("--dry-run", "--x", "lat", "--y", "lon")).stderr
    assert "got x 'lat' and y 'lon': are they exchanged?" in told
    assert "--x is the longitude and --y the latitude" in told
    assert "exchanged" not in ended(0, *words("--dry-run")).stderr


TIMED = ["--time", "at", "--by", "day", "--mass-per-period"]


def test_what_is_left_of_a_day_is_said_of_that_day() -> None:
    Ledger.create("days.ledger", PureDP(1), unit="user-day", source="fsq")
    day = words(*TIMED, "--from", "2010-09-01", "--to", "2010-09-02", ledger="days.ledger")
    assert "epsilon 1 left for 2010-09-01 in days.ledger" in ended(0, *day, "--dry-run").stdout
    told = ended(0, *day, "--quiet").stdout
    assert "left for 2010-09-01 in days.ledger: epsilon 0\n" in told
    both = words(*TIMED, "--from", "2010-09-02", "--to", "2010-09-04", ledger="days.ledger")
    dry = ended(0, *both, "--dry-run", "--json").stdout
    assert json.loads(dry)["left_for"] == ["2010-09-02", "2010-09-03"]
    told = json.loads(ended(0, *both, "--json").stdout)
    assert told["left_for"] == ["2010-09-02", "2010-09-03"]
    assert told["left"]["epsilon"] == "0"


def test_times_are_named_where_a_map_by_periods_is_empty() -> None:
    Path("visits.csv").write_text("user_id,lon,lat,at\n1,0.5,0.5,01/09/2010\n")
    more = ["--time", "at", "--by", "weekend", "--from", "2010-09-01", "--to", "2010-09-02"]
    told = ended(0, *words(*more, "--quiet")).stdout
    assert "or are times outside the periods, or written otherwise than in ISO 8601?" in told
    assert {path.name for path in Path().glob("m-*")} == {"m-weekday.json", "m-weekend.json"}
    told = ended(0, *words("--quiet")).stdout
    assert "are times" not in told


def test_periods_that_are_none_are_said_back() -> None:
    more = ["--time", "at", "--by", "weekdays", "--from", "2010-09-01", "--to", "2010-09-03"]
    assert "got --by weekdays --from" in ended(USAGE, *words(*more)).stderr
