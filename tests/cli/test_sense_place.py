"""`sfumato sense place`: the best of the places that could have a sensor."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from tests.cli.sense_runs import TOLD, alone, answer, done, refused, rows, table

from sfumato.privacy import ApproxDP, MovedMass, SwappedCells
from sfumato.sensing import Sensors, Site, heat_line, linear, read_site
from sfumato.sensing.planning.forecast import Estimator, Scene, Trial
from sfumato.sensing.planning.placement import place_sensors
from sfumato.spaces import Line

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("alone_here")]

PNG = b"\x89PNG"


@pytest.fixture
def alone_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


CANDIDATES = [(f"c{i}", i / 12) for i in range(1, 13)]
PLACE = (
    "place", "candidates.csv", "--count", "4", "--line", "20", "--diffusion-time", "0.02", "--epsilon", "4",
    "--delta", "1/10", "--radius", "1/20",
)  # fmt: skip


def test_sensors_are_placed_as_the_library_places_them() -> None:
    table("candidates.csv", ["sensor", "x"], CANDIDATES)
    told = answer(
        *PLACE, "--out", "chosen.csv", "--plot", "chosen.png", "--trials", "12", "--seed", "1"
    )
    sensors = Sensors([[x] for _, x in CANDIDATES], [name for name, _ in CANDIDATES])
    wanted = place_sensors(
        heat_line(sources=20, sensors=sensors, diffusion_time=0.02),
        4,
        loss=ApproxDP(4, "1/10"),
        neighbors=MovedMass("1/20", "line"),
    )
    assert told["chosen"] == list(wanted.names)
    assert (told["sigma"], told["uniform_sigma"]) == (wanted.sigma, wanted.uniform_sigma)
    assert (told["error"], told["said"]) == (wanted.error, wanted.message)
    assert told["error"] <= told["uniform_error"]
    ratio = told["gain"]["ratio"]
    assert ratio["low"] <= ratio["value"] <= ratio["high"]
    assert Path("chosen.png").read_bytes().startswith(PNG)
    assert [row["sensor"] for row in rows("chosen.csv")] == told["chosen"]
    # What it writes is what a site is made of.
    done(
        "site", "site.json", "--name", "placed", *TOLD, "--line", "20", "--sensors", "chosen.csv",
        "--diffusion-time", "0.02", "--radius", "1/20",
    )  # fmt: skip
    assert read_site("site.json").sensors.names == wanted.names
    text = done(*PLACE, "--quiet").stdout
    assert text.splitlines()[0] == f"4 of 12 candidates: {', '.join(wanted.names)}"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--grid", "3"], "say where sources may be: either --line or --grid; nothing was placed"),
        (["--swapped", "1"], "say what is protected: --radius"),
        (["--count", "13"], "count must be"),
        (["--out", "chosen.txt"], "this is written as .csv, got chosen.txt"),
    ],
)
def test_no_placement(words: list[str], sentence: str) -> None:
    table("candidates.csv", ["sensor", "x"], CANDIDATES)
    assert refused(2, *PLACE, *words).startswith(sentence)


RING = [(f"n{i}", f"n{(i + 1) % 12}") for i in range(12)]
OF_SITE = ("place", "--site", "site.json", "--count", "4", "--epsilon", "4", "--delta", "1/10")


def graph_site() -> None:
    table("edges.csv", ["u", "v"], [*RING, ("n0", "n6")])
    table("sensors.csv", ["sensor", "x"], [(f"s{i}", f"n{11 - i}") for i in range(10)])
    done(
        "site", "site.json", "--name", "building", *TOLD, "--graph", "edges.csv", "--sensors", "sensors.csv",
        "--rate", "0.5", "--radius", "1/8",
    )  # fmt: skip


def test_sensors_of_a_site_on_a_graph_are_candidates() -> None:
    graph_site()
    site = read_site("site.json")
    wanted = place_sensors(site.operator, 4, loss=ApproxDP(4, "1/10"), neighbors=site.neighbors)
    told = answer(
        *OF_SITE, "--out", "chosen.csv", "--plot", "chosen.png", "--trials", "3", "--seed", "1"
    )
    assert (told["candidates"], told["chosen"]) == (10, list(wanted.names))
    assert (told["sigma"], told["error"]) == (wanted.sigma, wanted.error)
    assert Path("chosen.png").read_bytes().startswith(PNG)
    # Nodes by name, so that a site is made of it.
    assert rows("chosen.csv") == [
        {"sensor": name, "x": f"n{11 - int(name[1:])}"} for name in wanted.names
    ]
    done(
        "site", "few.json", "--name", "few", *TOLD, "--graph", "edges.csv", "--sensors", "chosen.csv",
        "--rate", "0.5", "--radius", "1/8",
    )  # fmt: skip
    few = read_site("few.json").operator
    assert few.sensors == wanted.operator.sensors
    assert np.array_equal(few.columns(np.arange(12)), wanted.operator.columns(np.arange(12)))


def test_sensors_of_a_site_by_a_matrix_are_candidates() -> None:
    rng = np.random.default_rng(1)
    np.save("matrix.npy", rng.random((6, 8)))
    table("sensors.csv", ["sensor", "x", "y"], [(f"s{i}", i, i % 2) for i in range(6)])
    done(
        "site", "site.json", "--name", "machine", *TOLD, "--line", "8", "--matrix", "matrix.npy", "--sensors",
        "sensors.csv", "--swapped", "1",
    )  # fmt: skip
    told = answer(*OF_SITE, "--out", "chosen.csv")
    site = read_site("site.json")
    wanted = place_sensors(site.operator, 4, loss=ApproxDP(4, "1/10"), neighbors=site.neighbors)
    assert (told["chosen"], told["sigma"]) == (list(wanted.names), wanted.sigma)
    assert [row["sensor"] for row in rows("chosen.csv")] == told["chosen"]
    assert list(rows("chosen.csv")[0]) == ["sensor", "x", "y"]
    # A table has no third coordinate: nothing is written rather than a wrong one.
    Path("site.json").unlink()
    matrix = np.load("matrix.npy")
    Site("deep", linear(matrix, Line(8), sensors=rng.random((6, 3))), SwappedCells(1)).write(
        "site.json"
    )
    sentence = "a table of sensors has x and perhaps y, got 3 coordinates; nothing was written"
    assert refused(4, *OF_SITE, "--out", "deep.csv") == sentence


@pytest.mark.parametrize(
    ("words", "own"),
    [
        (["--line", "20"], "--line"),
        (["--length", "1"], "--length"),
        (["--grid", "3"], "--grid"),
        (["--bounds", "0,0,1,1"], "--bounds"),
        (["--diffusion-time", "0"], "--diffusion-time"),
        (["--radius", "1/8"], "--radius"),
        (["--swapped", "1"], "--swapped"),
    ],
)
def test_a_site_says_its_own_when_sensors_are_placed(words: list[str], own: str) -> None:
    graph_site()
    sentence = f"a site says its own {own}; leave one out; nothing was placed"
    assert refused(2, *OF_SITE, *words) == sentence


def test_candidates_are_a_table_or_a_site() -> None:
    graph_site()
    table("candidates.csv", ["sensor", "x"], CANDIDATES)
    rule = "say where sensors could be: a table of candidates or --site, got"
    assert refused(2, *PLACE, "--site", "site.json") == f"{rule} both; nothing was placed"
    assert refused(2, "place", *PLACE[2:]) == f"{rule} neither; nothing was placed"
    at = PLACE.index("--diffusion-time")
    without = (*PLACE[:at], *PLACE[at + 2 :])
    assert refused(2, *without) == "say how far heat spreads: --diffusion-time; nothing was placed"


def test_simulated_trials_without_an_answer_are_told() -> None:
    table("candidates.csv", ["sensor", "x"], CANDIDATES)
    words = (*PLACE, "--trials", "5", "--seed", "1", "--quiet")
    assert "simulated, 5 times 1 source: " in done(*words).stdout
    assert "left out" not in done(*words).stdout
    seen = iter(range(10))

    def some(scene: Scene, lot: Trial, estimator: Estimator) -> float:
        return float("nan") if next(seen) == 3 else 0.1

    with mock.patch("sfumato.sensing.planning.placement.error_of", some):
        said = done(*words).stdout.splitlines()[-1]
    assert said.startswith("simulated, 4 times 1 source: ")
    assert said.endswith("; 1 of 5 had no proven answer and are left out")
