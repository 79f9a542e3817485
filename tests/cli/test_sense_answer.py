"""What `sfumato sense recover` answers beside R: every estimator, what it is sure of, and fitted fields."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.cli.sense_runs import TOLD, alone, answer, clear, done, refused, rows, table

from sfumato._random import seed_of
from sfumato.figures import sheet
from sfumato.sensing import heat_line, read_recovery, read_site
from sfumato.sensing.recovery.answer import Answer, CredibleRegion, Estimate
from sfumato.sensing.recovery.estimators.off_grid import distinguishes
from sfumato.sensing.render.recovery import cluster_lines, region_lines
from sfumato.spaces import Graph, Grid, Line

pytestmark = pytest.mark.unit

LEAST = ("--estimator", "least")
SIGMA = 0.05
# As noise is, but always the same: its square is 18 for 15 readings, and it follows no source.
NOISE = np.sqrt(2) * np.cos(np.arange(15.0) ** 2 * 2.4)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    monkeypatch.setattr(sheet, "DPI", 50)  # drawing is slow, and nothing here needs more pixels


def row(*, cell: int = 11, dead: int | None = None, offset: float = 0.0) -> list[str]:
    """The words of a recovery: 30 cells, 15 sensors, a source of 0.8 in one cell, and noise."""
    table("sensors.csv", ["sensor", "x"], [(f"s{i}", (i + 0.5) / 15) for i in range(15)])
    done(
        "site", "row.json", "--name", "row", *TOLD, "--line", "30", "--sensors", "sensors.csv",
        "--diffusion-time", "0.01", "--radius", "1/10",
    )  # fmt: skip
    read = read_site("row.json").operator.columns([cell])[:, 0] * 0.8 + offset
    read = read + SIGMA * NOISE
    if dead is not None:
        read[dead] = 0.0
    table("r.csv", ["sensor", "value"], [(f"s{i}", value) for i, value in enumerate(read.tolist())])
    return ["recover", "r.csv", "--site", "row.json", "--sigma", str(SIGMA)]


def test_the_default_answer_stands_beside_r_and_its_proof() -> None:
    words = row()
    told = answer(*words, "--out", "rec.json", "--out", "rec.csv")
    least = answer(*words, *LEAST, "--out", "least.csv")
    assert {name: told[name] for name in ("status", "objective", "gap", "sources", "radius")} == {
        name: least[name] for name in ("status", "objective", "gap", "sources", "radius")
    }
    found = told["answer"]
    assert found["estimator"] == "bayes-median"
    assert sum(found["counts"].values()) == pytest.approx(1, abs=12e-4)  # the rarest are not told
    assert found["total"][0] - 0.2 <= 0.8 <= found["total"][1] + 0.2
    assert 0 <= found["known"] <= 1
    assert found["mixing"]["mixed"] == (found["mixing"]["rhat"] <= 1.1)
    # The noise moves a unit of this width by 0.01 or so: 0.1 is ten times that.
    assert found["bands"][0]["x"] == pytest.approx(0.4, abs=0.1)
    assert found["bands"][0]["probability"] >= 0.9
    # The table has the answer's sources, the file both.
    assert [float(r["mass"]) for r in rows("rec.csv")] == [one["mass"] for one in found["sources"]]
    assert [int(r["cell"]) for r in rows("least.csv")] == [one["cell"] for one in least["sources"]]
    assert answer("check", "rec.json")["holds"]
    assert read_recovery("rec.json").to_json()["answer"] == found


def test_the_same_readings_have_the_same_answer() -> None:
    words = row()
    first = answer(*words)["answer"]
    assert answer(*words)["answer"] == first
    one, other = (answer(*words, "--seed", seed)["answer"] for seed in ("1", "2"))
    assert answer(*words, "--seed", "1")["answer"] == one
    assert one["mixing"]["rhat"] != other["mixing"]["rhat"]
    assert seed_of(np.array([1.0, 2.0])) == hashlib.sha256(np.array([1.0, 2.0]).tobytes()).digest()


def test_words_say_what_is_sure() -> None:
    clear(5, 15)
    said = done("recover", "r.json", "--plot", "a.png", "--sources", truth(5, 15)).stdout
    assert "\nhall: how many sources: 2 with " in said
    assert re.search(r"  a source within 0\.\d+ of 0\.3 with \S+ %", said)
    assert re.search(r"  a source within 0\.\d+ of 0\.8 with \S+ %", said)
    assert "\nR: optimal, " in said
    assert "to the true sources, both scaled to 1: 0 (R: " in said
    assert "NOT mix" not in said
    assert said.splitlines()[1].endswith("; the draws mixed")
    assert "\nits mass: 1 at 0.3, 1 at 0.8\n" in said


def truth(*cells: int) -> str:
    return table("sources.csv", ["cell", "mass"], [(cell, 1) for cell in cells])


def test_draws_that_did_not_mix_are_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    words = row()
    monkeypatch.setattr("sfumato.sensing.diagnostics.mixing.RHAT", 0.5)
    said = done(*words).stdout
    assert said.startswith("verdict: there is an answer, take it with care: its draws did not mix")
    assert "the draws did NOT mix (" in said
    assert "the draws mixed" not in said


def test_where_nothing_can_be_told_there_is_no_answer() -> None:
    clear()
    assert answer("recover", "r.json", "--radius", "1")["answer"] is None


def test_what_does_not_fit_has_no_answer() -> None:
    clear(5)
    told = answer("recover", "r.json", "--upper", "0.01", codes=[9])
    assert (told["status"], told["answer"]) == ("infeasible", None)
    assert told["misfit"]["p_value"] < 1e-3


def test_an_infeasible_radius_is_no_verdict_where_the_physics_fits() -> None:
    words = row()
    told = answer(*words, "--radius", "1e-6")  # no noise is as small
    assert (told["status"], told["misfit"]["said"]) == ("infeasible", "")
    assert told["answer"]["bands"][0]["x"] == pytest.approx(0.4, abs=0.1)
    assert answer(*words, "--radius", "1e-6", *LEAST)["answer"] is None
    said = done(*words, "--radius", "1e-6", "--plot", "a.png")
    assert "a test finds that the physics fits" in said.stdout


def test_without_sigma_or_with_too_many_cells_the_least_mass_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = row()[:-2]
    said = done(*words, "--radius", "0.3")
    assert "bayes-median needs the sigma of the noise: the answer is the least mass" in said.stdout
    told = answer(*words, "--radius", "0.3")
    assert told["answer"]["estimator"] == "least"
    assert told["answer"]["sources"] == told["sources"]
    assert told["misfit"] is None
    assert "needs the sigma" in refused(2, *words, "--radius", "0.3", "--estimator", "mixture")
    assert "needs the sigma" in refused(2, *words, "--radius", "0.3", "--fit", "offset")
    table("edges.csv", ["u", "v"], [(i, i + 1) for i in range(5)])
    done(
        "site",
        "net.json",
        "--name",
        "net",
        *TOLD,
        "--graph",
        "edges.csv",
        "--rate",
        "0.3",
        "--radius",
        "1",
    )
    table(
        "n.csv",
        ["sensor", "value"],
        enumerate(read_site("net.json").operator.columns([0])[:, 0] * 0.8),
    )
    monkeypatch.setattr(
        sys.modules["sfumato.sensing.recovery.estimators.posterior_cells"], "MAX_CELLS", 5
    )
    told = answer("recover", "n.csv", "--site", "net.json", "--sigma", "0.01")
    assert told["remarks"] == [
        "bayes-median takes at most 5 cells, here are 6: the answer is the least mass"
    ]


def test_sources_between_cells_have_errors_and_mixtures_counts() -> None:
    words = row()
    found = answer(*words, "--estimator", "off-grid", "--out", "rec.json")["answer"]
    assert len(found["sources"]) == len(found["mass_errors"]) == 1
    assert found["sources"][0]["x"] == pytest.approx(0.4, abs=0.1)
    assert found["scores"]["1"] == min(found["scores"].values())
    assert answer("check", "rec.json")["holds"]
    said = done(*words, "--estimator", "off-grid").stdout
    assert "\nrow: 1 source, total mass " in said
    assert "error of mass" in said
    assert "wider than what is possible" not in said
    for who in ("mixture", "off-grid"):
        three = answer(*words, "--estimator", who, "--count", "3")["answer"]
        assert (len(three["sources"]), list(three["scores"])) == (3, ["3"])
    fitted = answer(*words, "--estimator", "off-grid", "--count", "2", "--fit", "offset")["answer"]
    assert list(fitted["scores"]) == ["2"]
    free = answer(*words, "--estimator", "mixture", "--most", "4")["answer"]
    assert list(free["scores"]) == ["0", "1", "2", "3", "4"]
    assert "--count goes with" in refused(2, *words, "--count", "3")
    assert "--most goes with" in refused(2, *words, "--most", "3", *LEAST)


def test_errors_wider_than_what_is_possible_are_told() -> None:
    words = [*row(), "--estimator", "off-grid", "--count", "4"]  # of one source
    assert not answer(*words)["answer"]["tells"]
    assert (
        done(*words).stdout.count(
            "errors too wide to tell, or none at all: the readings do not tell"
        )
        == 1
    )


@pytest.mark.parametrize(
    ("place", "mass", "tells"),
    [(0.1, 0.2, True), (0.1, 2.1, False), (1.1, 0.2, False), (1.0, 2.0, True)],
)
def test_an_error_of_a_quarter_of_the_line_or_of_all_mass_is_too_wide(
    place: float, mass: float, tells: bool
) -> None:
    found: Any = SimpleNamespace(
        place_errors=np.array([[0.1], [place]]), mass_errors=np.array([0.1, mass])
    )
    assert distinguishes(found, 2.0, np.array([4.0])) == tells


def test_a_band_is_said_to_hold_with_no_more_than_it_does() -> None:
    operator = heat_line(sources=10, sensors=2, diffusion_time=0.1)
    band = CredibleRegion(np.array([0.4]), 0.1, 0.917)
    found = Answer("mine", Estimate(operator, np.empty((0, 1)), np.empty(0)), (band,))
    saved: Any = SimpleNamespace(site=SimpleNamespace(operator=operator))
    assert region_lines(saved, found) == ["  a source within 0.1 of 0.4 with 91 %"]


@pytest.mark.parametrize(
    ("site", "places", "masses", "said"),
    [
        (Line(10), [0.3, 0.4, 0.5, 0.9], [0.5, 1.0, 0.5, 1.0], "2 at 0.4, 1 at 0.9"),
        (Line(10), [0.1, 0.2, 0.9], [1.0, 3.0, 1.0], "4 at 0.175, 1 at 0.9"),
        (Line(100), [0.1, 0.3, 0.5, 0.6, 0.7, 0.9], [1, 1, 0.2, 1, 1, 1.5],
         "1 at 0.1, 1 at 0.3, 1 at 0.6, 1 at 0.7, 1.5 at 0.9, 0.2 elsewhere"),
        (Grid(2), [(0.125, 0.125), (0.375, 0.125), (0.875, 0.875)], [1, 1, 0.5],
         "2 at (0.25, 0.125), 0.5 at (0.875, 0.875)"),
        (Graph([(0, 1), (1, 2)]), [0, 1], [0.5, 2.0], "2 at 1, 0.5 at 0"),
        (Line(10), [], [], None),
    ],
)  # fmt: skip
def test_mass_is_told_by_its_largest_heaps(
    site: Any, places: list[Any], masses: list[float], said: str | None
) -> None:
    operator = SimpleNamespace(space=site)
    at = np.reshape(places, (len(masses), -1)) if masses else np.empty((0, 1))
    given = SimpleNamespace(estimate=Estimate(operator, at, np.array(masses, dtype=float)))  # type: ignore[arg-type]
    saved: Any = SimpleNamespace(site=SimpleNamespace(operator=operator, cell=str))
    assert cluster_lines(saved, given) == ([] if said is None else [f"its mass: {said}"])  # type: ignore[arg-type]


def test_the_physics_of_a_fine_site_is_tested_too() -> None:
    row()
    done(
        "site", "fine.json", "--name", "fine", *TOLD, "--line", "5000", "--sensors", "sensors.csv",
        "--diffusion-time", "0.01", "--radius", "1/10",
    )  # fmt: skip
    words = ["recover", "r.csv", "--site", "fine.json", "--sigma", str(SIGMA), *LEAST]
    assert answer(*words)["misfit"]["said"] == ""


@pytest.mark.parametrize("estimator", [["off-grid"], ["mixture", "--count", "1"]])
def test_masses_at_the_largest_allowed_are_told(estimator: list[str]) -> None:
    words = [*row(), "--estimator", *estimator]  # one source of 0.8
    told = "a mass is at the largest allowed, 0.7: give --upper if sources may be larger"
    held = done(*words, "--upper", "0.7").stdout
    assert told in held.splitlines()
    assert "largest allowed" not in done(*words).stdout


def test_an_upper_far_above_all_mass_is_told() -> None:
    words = row()  # one source of 0.8
    hint = "far below the largest mass allowed for one, 3:"
    assert hint in " ".join(done(*words, "--upper", "3").stdout.split())
    assert "far below" not in done(*words, "--upper", "1").stdout


def test_a_count_and_a_most_are_not_both_given() -> None:
    words = [*row(), "--estimator", "off-grid", "--count", "1", "--most", "3"]
    assert "--count says how many there are, --most how many at most: give one" in refused(
        2, *words
    )


def test_places_between_nodes_are_refused() -> None:
    table("edges.csv", ["u", "v"], [("a", "b"), ("b", "c")])
    done(
        "site",
        "net.json",
        "--name",
        "net",
        *TOLD,
        "--graph",
        "edges.csv",
        "--rate",
        "0.3",
        "--radius",
        "1",
    )
    read = read_site("net.json").operator.columns([0])[:, 0] * 0.8
    table("n.csv", ["sensor", "value"], zip("abc", read.tolist(), strict=True))
    words = ["recover", "n.csv", "--site", "net.json", "--sigma", "0.01"]
    assert "need heat on a line or in a plane" in refused(2, *words, "--estimator", "off-grid")
    told = answer(*words, "--plot", "n.png")["answer"]
    assert told["bands"][0]["name"] == "a"
    assert sum(told["communities"]) == pytest.approx(1)
    assert told["communities"][0] > 0.99  # label 0 is that of the first node
    assert "community that holds the most mass: 0 with >99 %" in done(*words).stdout


def test_a_dead_sensor_is_warned_of_and_found() -> None:
    """The warning's level is tested in tests/sensing; here 20 deviations must show, and none must not."""
    words = row()
    assert answer(*words)["misfit"]["said"] == ""
    words = row_again(dead=5)
    said = done(*words, *LEAST, codes=[9])
    assert "do not rely on this: the readings do not fit the stated physics" in said.stdout
    assert "sensor 's5'" in said.stdout
    told = answer(*words, "--fit", "sensors", "--out", "rec.json", "--plot", "fit.png")
    assert [one["sensor"] for one in told["answer"]["field"]["suspects"]] == ["s5"]
    assert told["answer"]["bands"][0]["x"] == pytest.approx(0.4, abs=0.1)
    # The proof in the file is of the site as it is stated, with all its readings.
    assert answer("check", "rec.json")["holds"]
    saved = read_recovery("rec.json")
    assert len(saved.names) == 15
    assert told["sources"] == answer(*words, *LEAST, codes=[9])["sources"]


def row_again(**changed: Any) -> list[str]:
    Path("row.json").unlink()
    return row(**changed)


def test_an_offset_is_taken_off() -> None:
    words = [*row(offset=1.5), "--sources", truth(11)]
    told = answer(*words, "--fit", "offset", "--count", "1")
    field = told["answer"]["field"]
    assert field["offset"] == pytest.approx(1.5, abs=8 * SIGMA)
    off = f"an offset of {field['offset']:.3g} ± {field['offset_error']:.2g} mass ("
    assert any(off in sentence for sentence in field["said"])
    assert abs(field["offset"] - 1.5) < 8 * field["offset_error"]
    # Without it the rival spreads sources everywhere.
    assert told["answer"]["emd"] < 0.1 < answer(*words)["answer"]["emd"]
    least = answer(*words, "--fit", "offset", *LEAST, "--out", "rec.json")
    assert least["answer"]["estimator"] == "least"
    assert (
        least["answer"]["sources"] != least["sources"]
    )  # R of the field, not the one with the proof
    assert answer("check", "rec.json")["holds"]
    # With the place of the source taken for known; the default counts that it is not, nor where in its cell.
    fitted = least["field"]
    assert abs(fitted["offset"] - 1.5) < 8 * fitted["offset_error"] < 8 * SIGMA
    assert fitted["offset_error"] < field["offset_error"]
    assert fitted["offset_interval"] is None
    known = "the answer takes the fitted field for known, so it is surer than it should be"
    assert known in done(*words, "--fit", "offset", *LEAST).stdout
    said = " ".join(done(*words, "--fit", "offset").stdout.split())
    assert known not in said  # the default answer counts that the offset is not
    assert "readings tell the offset from sources by what differs between sensors alone" in said
    low, high = field["offset_interval"]
    assert low < 1.5 < high
    free = answer(*words, "--fit", "offset")["field"]["offset_interval"]
    assert high - low < free[1] - free[0]  # of any number of sources


def test_a_diffusion_time_is_estimated() -> None:
    words = row()
    data = json.loads(Path("row.json").read_text())
    data["operator"]["diffusion_time"] = 0.03
    Path("wrong.json").write_text(json.dumps(data))
    words[words.index("row.json")] = "wrong.json"
    field = answer(*words, "--fit", "time", "--count", "1")["answer"]["field"]
    low, high = field["interval"]
    assert low <= 0.01 <= high < 0.03
    assert any("weaker than stated" in sentence for sentence in field["said"])
    line = heat_line(sources=3, sensors=3, diffusion_time=0.1)
    table("m.csv", ["1", "0", "0"], line.columns([0, 1, 2]).tolist()[:2])
    done(
        "site",
        "m.json",
        "--name",
        "m",
        "--line",
        "3",
        "--matrix",
        "m.csv",
        "--sensors",
        sensors3(),
        "--radius",
        "1",
    )
    table("v.csv", ["sensor", "value"], [("a", 1.0), ("b", 0.4), ("c", 0.1)])
    sentence = refused(2, "recover", "v.csv", "--site", "m.json", "--sigma", "0.1", "--fit", "time")
    assert sentence == "a matrix has no diffusion time to --fit; nothing was recovered"


def sensors3() -> str:
    return table("three.csv", ["sensor", "x"], [("a", 0.2), ("b", 0.5), ("c", 0.9)])


def test_many_sources_at_one_place_make_one_look_at_the_unit() -> None:
    said = "of 0.25 or less are all at one place: a single larger one may be there"
    words = row()
    ends = [0, 9]
    assert said in answer(*words, "--upper", "0.25", codes=ends)["answer"]["doubt"]
    assert said in " ".join(done(*words, "--upper", "0.25", "--quiet", codes=ends).stdout.split())
    assert answer(*words)["answer"]["doubt"] == ""


def test_nothing_that_must_be_known_is_hushed() -> None:
    """Misfits, suspects and what was fitted stand with the result, also where --quiet is asked for."""
    words = row(dead=5)
    bad = done(*words, *LEAST, "--quiet", codes=[9]).stdout
    assert "the readings do not fit the stated physics" in bad
    said = done(*words, "--fit", "sensors", "--quiet").stdout
    assert "sensor 's5' reads nothing but noise where the others say" in " ".join(said.split())
    assert answer(*words, "--fit", "sensors")["field"]["suspects"][0]["shows"] == "dead"


def test_a_fit_that_leaves_nothing_says_whose_answer_is_shown() -> None:
    """Flat readings are an offset to whoever looks for one; R of readings as released is another thing."""
    row()
    table("flat.csv", ["sensor", "value"], [(f"s{i}", 1.0 + SIGMA * NOISE[i]) for i in range(15)])
    words = ["recover", "flat.csv", "--site", "row.json", "--sigma", str(SIGMA), "--fit", "offset"]
    said = done(*words, "--plot", "flat.png").stdout
    assert "row: R of the readings as released, without the fitted field: optimal" in said
    assert "with the fitted field nothing can be told" in said
    told = answer(*words)
    assert told["answer"] is None
    assert any("cannot be told apart here" in one for one in told["verdict"]["reasons"])
    assert told["field"]["offset"] == pytest.approx(1.0, abs=8 * SIGMA)


def test_a_radius_holds_for_the_fitted_field_too() -> None:
    words = [*row(offset=1.5), "--fit", "offset", "--count", "1", *LEAST]
    near, wide = (answer(*words, *more)["answer"] for more in ([], ["--radius", "0.5"]))
    assert sum(one["mass"] for one in wide["sources"]) < sum(one["mass"] for one in near["sources"])
