"""A refusal names every mistake at once, loads nothing heavy, and neither reads nor charges."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter, Mistakes, SfumatoError
from sfumato.heatmap import plan_release, release_heatmap
from sfumato.privacy import Ledger, PureDP

pytestmark = pytest.mark.unit

HEAVY = {"numba", "scipy", "matplotlib", "pandas", "duckdb", "ibis", "pyarrow", "opendp", "ot"}
LOADED = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules}))))
from sfumato.cli.main import main
main()
"""
BOX = "11.2,43.74,11.32,43.81"


def refused(*words: str) -> str:
    run = CliRunner().invoke(app, ["heatmap", "release", *words])
    assert run.exit_code == 2, run.output
    return run.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["rows.parquet"],
        ["none.parquet", "--epsilon", "zero", "--ledger", "none.ledger", "--out", "map.xyz", "--by", "city"],
        ["none.parquet", "--epsilon", "1", "--ledger", "none.ledger", "--out", "map.png", "--user", "u"],
    ],
)  # fmt: skip
def test_a_refusal_loads_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOADED, "heatmap", "release", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2, run.stderr
    assert " mistakes: " in run.stderr
    modules = set(json.loads(run.stdout))
    assert "typer" in modules
    assert not HEAVY & modules


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "heatmap rehearse none.parquet --by city --method abacus --levels 3 --bounds 1,2",
            ["--epsilon must be given", "--by needs", "abacus", "--public", "--user", "no file none"],
        ),
        (
            "heatmap compare a.json b.json --coverage 2 --out x.tif --out no/c.png",
            ["end in one of", "folder of no/c.png", "coverage must lie", "no file at a.json", "no file at b"],
        ),
        (
            "heatmap plan --epsilon no --levels 3 --bounds 1,2 --want best --out p.txt --rows 4",
            ["plans end in", "four numbers", "for levels 6 to 10", "--rows-per-user", "what is wanted"],
        ),
        (
            "sense release none.csv --epsilon no --out r.txt --out no/r.json",
            ["--site must be given", "as .csv or .json, got r.txt", "folder of no/r.json", "no file at none"],
        ),
        (
            "sense recover none.json --radius far --out r.txt --plot p.jpg",
            ["got r.txt", "written as .png, got p.jpg", "--radius is a number", "no file at none.json"],
        ),
        (
            "audit run none:none --budget much --confidence 2 --out v.txt --report r.txt",
            ["--claim must be given", "as .html, got r.txt", "as .json, got v.txt", "budget", "confidence"],
        ),
        (
            "graph blocks none.csv --k many --columns a --plot p.jpg --once key --ledger n.ledger",
            ["written as .png", "--once is for", "both --epsilon", "--k must", "--columns", "no file at none"],
        ),
        ("graph distance a.json b.json --k no --columns a", ["--k must", "--columns", "no file at a.json"]),
        ("graph limits g.json --plot p.jpg --columns a", ["as .png", "--columns must", "no file at g.json"]),
    ],
)  # fmt: skip
def test_every_command_tells_all_mistakes_at_once_and_loads_nothing_heavy(
    words: str, told: list[str], tmp_path: Path
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOADED, *words.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (2, 4), run.stderr
    assert " mistakes: " in run.stderr
    for one in told:
        assert one in run.stderr, (one, run.stderr)
    assert not (HEAVY & set(json.loads(run.stdout.splitlines()[-1]))), run.stdout


def test_what_is_missing_is_told_together_with_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused("none.parquet", "--by", "city", "--method", "abacus", "--method-option", "x")
    assert said.startswith(
        "sfumato: 6 mistakes: (1) --epsilon, --ledger, --out must be given; (2) "
    )
    for words in (
        "--by needs its public values in --values",
        "a map method is one of zoom, ",
        "name it with --user, or say --one-row-one-user",
        "the area is public and must be given, once: --bounds W,S,E,N",
        "there is no file none.parquet",
    ):
        assert said.count(words) == 1, words
    assert said.endswith("; nothing was read or charged\n")
    assert said.count("nothing was") == 1


def test_one_mistake_is_told_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Ledger.create("city.ledger", PureDP(1), unit="user", source="city")
    Path("rows.csv").write_text("user,lon,lat\n", encoding="utf-8")
    words = [
        "rows.csv",
        "--ledger",
        "city.ledger",
        "--out",
        "map.png",
        "--user",
        "user",
        "--bounds",
        BOX,
    ]
    assert refused(*words) == "sfumato: --epsilon must be given; nothing was read\n"
    zero = refused(*words, "--epsilon", "0")
    assert zero == "sfumato: epsilon must be above 0, got 0; nothing was charged\n"
    assert not Ledger("city.ledger").statement().entries


def test_help_says_what_is_required() -> None:
    run = CliRunner().invoke(app, ["heatmap", "release", "--help"], env={"COLUMNS": "200"})
    assert run.output.count("[required]") == 4  # with INPUT


def test_a_dry_run_looks_for_the_file_and_charges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a file is there is public, and who plans wants to know."""
    monkeypatch.chdir(tmp_path)
    Ledger.create("city.ledger", PureDP(1), unit="user", source="city")
    words = f"none.csv --epsilon 1 --ledger city.ledger --out map.png --user user --bounds {BOX}"
    run = CliRunner().invoke(app, ["heatmap", "release", *words.split(), "--dry-run"])
    assert run.exit_code == 4, run.output
    assert "none.csv" in run.stderr
    assert Ledger("city.ledger").statement().entries == ()


def test_a_dry_run_takes_no_missing_file_for_another_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Advice to say `other_table` would be wrong for a name with a slip in it."""
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("city.ledger", PureDP(2), unit="user", source="city")
    Path("jan.csv").write_text("user,lon,lat\nann,11.25,43.77\n")
    box = tuple(map(float, BOX.split(",")))
    release_heatmap("jan.csv", user="user", bounds=box, levels=3, ledger=ledger, epsilon=1)
    Path("people.csv").write_text("user,lon,lat\nann,11.25,43.77\n")
    said = {}
    for name in ("jna.csv", "people.csv"):
        words = f"{name} --epsilon 1 --ledger city.ledger --out m.png --user user --bounds {BOX}"
        run = CliRunner().invoke(app, ["heatmap", "release", *words.split(), "--dry-run"])
        assert run.exit_code == 4
        said[name] = run.stderr
    assert said["jna.csv"].startswith("sfumato: there is no file jna.csv")
    assert "--other-table" in said["people.csv"]


def test_python_is_told_all_mistakes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("city.ledger", PureDP(1), unit="user", source="city")
    Path("map.png").write_bytes(b"")
    rows = pa.table({"user": ["ann"], "lon": [11.25], "lat": [43.77]})
    asked: dict[str, Any] = {
        "ledger": ledger,
        "epsilon": -1,
        "bounds": (1, 2, 3),
        "method": "abacus",
        "note": "a\nb",
        "outputs": ["map.png", "map.xyz", "none/map.png"],
    }
    for ask in (plan_release, release_heatmap):
        with pytest.raises(InvalidParameter, match=r"^8 mistakes: ") as caught:
            ask(rows, **asked)
        assert len(caught.value.mistakes) == 8
        assert {type(one) for one in caught.value.mistakes} == {InvalidParameter, ExistsAlready}
    assert not ledger.statement().entries
    assert Path("map.png").read_bytes() == b""


def test_mistakes_of_one_kind_stay_of_it() -> None:
    mistakes = Mistakes()
    mistakes.tell()
    for number in range(2):
        with mistakes.noted():
            raise InvalidInput(f"no {number}; nothing was read")
    with pytest.raises(
        InvalidInput, match=r"^2 mistakes: \(1\) no 0; \(2\) no 1; nothing was read or"
    ):
        mistakes.tell()
    with mistakes.noted():
        raise InvalidParameter("no 2")
    with pytest.raises(InvalidParameter, match=r"^3 mistakes: ") as caught:
        mistakes.tell()
    again = Mistakes()
    with again.noted():
        raise caught.value
    assert again.found == mistakes.found
    # Two outputs without {by} are one mistake: it was told twice over, word for word.
    for told in (caught.value, InvalidInput("no 1; nothing was read")):
        with again.noted():
            raise told
    assert again.found == mistakes.found
    assert issubclass(InvalidParameter, SfumatoError)


def test_a_wrong_column_and_too_little_budget_are_told_before_what_reads_rows_is_loaded(
    tmp_path: Path,
) -> None:
    Ledger.create(tmp_path / "city.ledger", PureDP(1), unit="user", source="city")
    pq.write_table(pa.table({"who": ["a"], "lon": [11.25], "lat": [43.76]}), tmp_path / "r.parquet")
    words = f"heatmap release r.parquet --bounds {BOX} --ledger city.ledger --out m.png"
    for more, told, code in (
        ("--user user --epsilon 1", "there is no column 'user', only 'who', 'lon', 'lat'", 4),
        ("--user who --epsilon 2", "asked epsilon 2, 1 left in city.ledger", 3),
    ):
        run = subprocess.run(
            [sys.executable, "-c", LOADED, *words.split(), *more.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == code, run.stderr
        assert told in run.stderr
        # Ibis and what is below it take most of the second that such a refusal took.
        loaded = set(json.loads(run.stdout.splitlines()[-1]))
        assert not loaded & {"ibis", "sqlglot", "duckdb", "pandas", "matplotlib", "numba"}


def test_files_in_the_place_of_a_pattern_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("may.csv").write_text("user,lon,lat\n", encoding="utf-8")
    said = " ".join(refused("april.csv", "may.csv", "--epsilon", "1").replace("│", " ").split())
    assert "unexpected argument may.csv: several files are one table by a pattern" in said
    assert "'*.csv'" in said
    assert "pattern" not in refused("april.csv", "nothing", "--epsilon", "1")
