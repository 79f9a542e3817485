"""`sfumato sense` with sites, recoveries and files that are none: one sentence, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.sense_runs import (
    HALL,
    ROOMY,
    TOLD,
    alone,
    answer,
    clear,
    done,
    hall,
    listing,
    refused,
    release,
    run,
    table,
)

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


# sites


@pytest.mark.parametrize(
    ("code", "words", "sentence"),
    [
        (2, "--radius 1", "say where sources may be: one of --line, --grid, --places, --graph"),
        (2, "--radius 1 --line 9 --graph edges.csv", "say where sources may be"),
        (2, "--radius 1 --line 9 --diffusion-time 1", "say where sensors are: --sensors"),
        (2, "--radius 1 --line 9 --sensors sensors.csv", "this site needs --diffusion-time"),
        (2, "--radius 1 --graph edges.csv", "this site needs --rate"),
        (
            2,
            "--radius 1 --graph edges.csv --rate -1",
            "rate must lie between 1e-20 and 1e20, got -1.0",
        ),
        (2, "--radius 1 --graph edges.csv --rate 1 --matrix m.csv", "--matrix goes with"),
        (2, "--radius 1 --graph parts.csv --rate 1", "a graph for diffusion must be connected"),
        (4, "--radius 1 --graph sensors.csv --rate 1", "there is no column 'u' among the 2"),
        (
            4,
            "--radius 1 --graph edges.csv --rate 1 --sensors odd.csv",
            "the graph has no node 'inf'",
        ),
        (2, "--line 9 --sensors sensors.csv --diffusion-time 1", "say what is protected"),
        (
            2,
            "--radius 1 --swapped 1 --line 9 --sensors sensors.csv --diffusion-time 1",
            "say what is protected",
        ),
        (
            2,
            "--radius 1 --line 9 --sensors sensors.csv --diffusion-time -0.5",
            "diffusion_time must lie between 1e-20 and 1e20, got -0.5",
        ),
        (
            2,
            "--radius 1 --line 9 --sensors sensors.csv --diffusion-time nan",
            "diffusion_time must lie between 1e-20 and 1e20",
        ),
        (2, "--radius -1 --line 9 --sensors sensors.csv --diffusion-time 1", "radius"),
        (2, "--radius 1 --line 9 --sensors sensors.csv --diffusion-time 1 --step -1", "step must"),
        (
            2,
            "--radius 1 --line 0 --sensors sensors.csv --diffusion-time 1",
            "n must be a whole number",
        ),
        (
            2,
            "--radius 1 --grid 3 --sensors plane.csv --diffusion-time 1",
            "a plane needs its --bounds",
        ),
        (
            2,
            "--radius 1 --grid 3 --bounds 0,0,1,1 --sensors sensors.csv --diffusion-time 1",
            "sensors here have 2 coordinates, got 1",
        ),
        (
            2,
            "--radius 1 --line 9 --sensors twice.csv --diffusion-time 1",
            "a sensor must be named once, got 'a' again",
        ),
        (
            4,
            "--radius 1 --line 9 --sensors odd.csv --diffusion-time 1",
            "the x in row 1 of odd.csv is not a finite number",
        ),
        (
            4,
            "--radius 1 --line 9 --sensors edges.csv --diffusion-time 1",
            "edges.csv needs the places of sensors in columns x, or x and y",
        ),
        (
            4,
            "--radius 1 --places sensors.csv --sensors plane.csv --diffusion-time 1",
            "there is no column 'y'",
        ),
        (2, "--radius 1 --line 9 --matrix m.csv", "matrix must"),
        (
            2,
            "--radius 1 --line 3 --matrix m.csv --sensors sensors.csv",
            "matrix must have one row for each of 4 sensors, got 2",
        ),
        (4, "--radius 1 --line 3 --matrix edges.csv", "edges.csv is not a matrix in .npy or .csv"),
        (4, "--radius 1 --line 3 --matrix empty.npy", "empty.npy is not a matrix"),
        (2, "--radius 1 --line 3 --matrix empty.csv", "matrix must"),
        (4, "--radius 1 --line 3 --matrix none.npy", "none.npy is not a matrix"),
        (4, "--radius 1 --line 3 --matrix pickled.npy", "pickled.npy is not a matrix"),
    ],
)
def test_a_site_that_is_none_is_not_written(code: int, words: str, sentence: str) -> None:
    table("sensors.csv", ["sensor", "x"], HALL.items())
    table("plane.csv", ["sensor", "x", "y"], [("a", 1, 2)])
    table("twice.csv", ["sensor", "x"], [("a", 1), ("a", 2)])
    table("odd.csv", ["sensor", "x"], [("a", "inf")])
    table("edges.csv", ["u", "v"], [("a", "b"), ("b", "c")])
    table("parts.csv", ["u", "v"], [("a", "b"), ("c", "d")])
    Path("m.csv").write_text("1,0,0\n0,1,0\n")
    Path("empty.csv").write_text("")
    Path("empty.npy").write_text("")
    np.save("pickled.npy", np.array([{}]), allow_pickle=True)
    assert refused(code, "site", "site.json", "--name", "here", *words.split()).startswith(sentence)


def test_a_site_is_written_once_and_called_something() -> None:
    hall()
    words = ["--line", "9", "--sensors", "sensors.csv", "--diffusion-time", "1", "--radius", "1"]
    assert "site.json exists already and is kept" in refused(
        8, "site", "site.json", "--name", "x", *words
    )
    assert "a site needs a printable name" in refused(2, "site", "new.json", "--name", "", *words)
    assert "cannot write none/new.json" in refused(
        4, "site", "none/new.json", "--name", "x", *words
    )


def test_a_site_without_a_unit_is_for_planning() -> None:
    hall()
    words = [
        "--line",
        "20",
        "--sensors",
        "sensors.csv",
        "--diffusion-time",
        "0.02",
        "--radius",
        "1/10",
    ]
    said = done("site", "bare.json", "--name", "hall", *words).stderr
    assert said.endswith(
        "it can be planned with, not released from: that takes --unit and --per-source\n"
    )
    told = refused(2, *release("--site", "bare.json", out=["bare.r.json"]))
    assert told.endswith("(`sfumato sense site` takes both); nothing was charged")
    assert not Path("bare.r.json").exists()
    both = "a site says both a printable unit of its readings and what a source"
    assert both in refused(2, "site", "half.json", "--name", "hall", *words, "--unit", "lux")


def test_sites_are_made_up_in_new_folders() -> None:
    Path("there").mkdir()
    assert "there exists already and is kept" in refused(8, "simulate", "there")
    assert "diffusion_time must lie between" in refused(
        2, "simulate", "new", "--diffusion-time", "-1"
    )
    assert "sources" in refused(2, "simulate", "new", "--sources", "101")
    assert not Path("new").exists()


@pytest.mark.parametrize("change", ["set", "format", "kind", "cut"])
def test_a_damaged_site_is_refused(change: str) -> None:
    hall()
    data = json.loads(Path("site.json").read_text())
    match change:
        case "set":
            data["sensors"]["positions"][0] = [0.5]
        case "format":
            data["format"] = "sfumato-site/2"
        case "kind":
            data["operator"]["kind"] = "magic"
        case _:
            del data["operator"]
    Path("bad.json").write_text(json.dumps(data))
    for words in (
        ["plan", "bad.json", "--rho", "1"],
        release("--site", "bad.json"),
        ["ledger", "bad.json", "l", "--rho", "1"],
    ):
        assert refused(4, *words).startswith("bad.json is not a whole site: ")


@pytest.mark.parametrize(
    ("code", "words", "sentence"),
    [
        (2, "plan site.json", "say what one reading costs"),
        (2, "plan site.json --rho 1 --plot p.pdf", "this is written as .png, got p.pdf"),
        (2, "ledger site.json new.ledger", "give the budget as --epsilon"),
        (8, "ledger site.json hall.ledger --rho 1", "hall.ledger"),
        (4, "ledger none.json new.ledger --rho 1", "cannot read none.json"),
    ],
)
def test_plans_and_ledgers_of_nothing(code: int, words: str, sentence: str) -> None:
    hall()
    assert refused(code, *words.split()).startswith(sentence)


# recover


@pytest.mark.parametrize(
    ("code", "words", "sentence"),
    [
        (2, "r.csv", "readings in a .csv come as one file, with --site; nothing was recovered"),
        (2, "r.csv r.json --site site.json", "readings in a .csv come as one file, with --site"),
        (2, "plain.csv", "readings in a .csv need --site and --sigma; nothing was recovered"),
        (2, "plain.csv --sigma 1", "readings in a .csv come as one file, with --site"),
        (2, "plain.csv --site site.json", "readings in a .csv need --sigma, or a --radius"),
        (2, "r.csv --site site.json --sigma -1", "sigma must be positive and finite, got -1.0"),
        (2, "r.json --sigma 1", "--sigma goes with .csv readings"),
        (2, "r.json --radius wide", "--radius is a number or 'papers', got 'wide'"),
        (2, "r.json --radius -1", "radius must be positive"),
        (2, "r.json --radius nan", "radius must be positive"),
        (2, "r.json --upper 0", "--upper must be positive and finite, got 0.0"),
        (2, "r.json --time noon", "there is no reading at 'noon', only "),
        (2, "r.json --out x.txt", "this is written as .csv or .json, got x.txt"),
        (2, "r.json --plot x.jpg", "this is written as .png, got x.jpg"),
        (4, "r.json --out none/x.json", "the folder of none/x.json must exist"),
        (4, "site.json", "site.json is a site, not readings of one: give noisy readings, "),
        (4, "r.json site.json", "site.json is a site, not readings of one: "),
        (4, "none.json", "cannot read none.json: No such file or directory"),
        (4, "cut.json", "cut.json is not a whole file of readings"),
        (4, "r.json --sources none.csv", "cannot read none.csv"),
        (
            4,
            "r.json --sources far.csv",
            "far.csv: site 'hall' has no cell '20'; nothing was recovered",
        ),
        (4, "r.json --sources readings.csv", "there is no column 'cell'"),
        (4, "part.csv --site site.json --sigma 1", "row 1 of part.csv is of no sensor"),
    ],
)
def test_recoveries_of_nothing(code: int, words: str, sentence: str) -> None:
    clear(5)
    Path("cut.json").write_bytes(Path("r.json").read_bytes()[:-100])
    table("far.csv", ["cell", "mass"], [(20, 1)])
    table("part.csv", ["sensor", "value"], [("roof", 1)])
    table("plain.csv", ["sensor", "value"], [("door", 1)])
    assert refused(code, "recover", *words.split()).startswith(sentence)


def test_a_line_in_the_wrong_unit_is_not_a_site() -> None:
    table("far.csv", ["sensor", "x"], [("a", 1.25), ("b", 28.75)])
    words = [
        "site",
        "far.json",
        "--name",
        "far",
        "--line",
        "60",
        "--sensors",
        "far.csv",
        "--diffusion-time",
        "9",
    ]
    assert refused(2, *words, "--radius", "1").startswith(
        "no sensor lies where sources may be (0 to 1); is --length missing? nothing was built"
    )
    assert "at 0 to 30: far.json" in done(*words, "--radius", "1", "--length", "30").stderr
    assert refused(2, "site", "far.txt", *words[2:], "--radius", "1").startswith(
        "a site is written to a .json"
    )


def test_noisy_tables_say_their_own_sigma() -> None:
    clear(5)
    with_json, with_csv = (
        answer("recover", *words, *ROOMY)
        for words in (["r.json"], ["r.csv", "--site", "site.json"])
    )
    assert with_csv["status"] == with_json["status"] == "optimal"
    assert with_csv["sigma"] == pytest.approx(with_json["sigma"])


def test_files_of_different_sites_are_not_joined() -> None:
    clear(5)
    words = [
        "--name",
        "hall",
        "--line",
        "20",
        "--sensors",
        "sensors.csv",
        "--radius",
        "1/10",
        *TOLD,
    ]
    done(
        "site", "slow.json", *words, "--diffusion-time", "0.01"
    )  # the same sensors, another physics
    done(*release("--site", "slow.json", out=["slow.r.json"]))
    assert refused(4, "recover", "r.json", "slow.r.json") == (
        "the files are of different sites; nothing was recovered"
    )


@pytest.mark.parametrize("name", ["readings.csv", "r.json", "none.json", "cut.json"])
def test_what_is_no_recovery_is_not_checked(name: str) -> None:
    clear(5)
    done("recover", "r.json", "--out", "rec.json", *ROOMY)
    Path("cut.json").write_bytes(Path("rec.json").read_bytes()[:-100])
    sentence = refused(4, "check", name)
    assert sentence.startswith((f"{name} is not a whole recovery: ", f"cannot read {name}"))


# the form of every mistake


@pytest.mark.parametrize(
    ("code", "words"),
    [(2, release("--windows", "w")), (3, release(rho="101")), (4, release(out=["site.json"]))],
)
def test_mistakes_in_json(code: int, words: list[str]) -> None:
    hall()
    result = run(*words, "--json")
    assert (result.exit_code, result.stdout) == (code, "")
    error = json.loads(result.stderr)["error"]
    assert error == {"message": error["message"], "exit": code}


@pytest.mark.parametrize(
    "words",
    [[], ["release"], ["recover"], ["unseal", "r.json"], ["simulate", "x", "--sources", "0"],
     ["simulate", "x", "--on", "sphere"], ["recover", "r.json", "--communities", "0"],
     ["release", "x", "--share", "0"], ["key", "device", "m", "d"]],
)  # fmt: skip
def test_usage_is_exit_2(words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert listing() == {}
