"""One verdict on a recovery, said alike everywhere; a ceiling that holds R down; nothing is hidden."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato import sensing
from sfumato.cli.endings import UNRELIABLE
from sfumato.cli.main import app
from sfumato.figures.recovery import plane as plane_picture
from sfumato.privacy import MovedMass
from sfumato.sensing import heat_line, heat_plane
from sfumato.sensing.model.operators.places import even_places
from sfumato.sensing.pipeline import recover_sources
from sfumato.sensing.planning import synthetic_site
from sfumato.sensing.recovery.ceiling import Ceiling, ceiling_of
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.render import draw_recovery, recovery_text
from sfumato.sensing.render.words import PLAIN, without_parameters
from sfumato.sensing.results import RecoveryResult, Verdict
from sfumato.sensing.results.diagnostics import MisfitReport, RecoveryDiagnostics
from sfumato.sensing.results.verdict import verdict_of
from sfumato.spaces import Grid

pytestmark = pytest.mark.unit
SIDE, SIGMA = 20.0, 0.006
FLOOR = heat_plane(
    sources=Grid(3, (0, 0, SIDE, SIDE)),
    sensors=even_places(36, np.zeros(2), np.full(2, SIDE)),
    diffusion_time=2.0,
)
SITE = synthetic_site("floor", FLOOR, MovedMass("1", FLOOR.space.metric))


def stuck(rng: np.random.Generator) -> np.ndarray:
    readings = FLOOR.columns([21])[:, 0] + SIGMA * rng.standard_normal(36)
    readings[30] = 0.25
    return readings


@pytest.fixture
def faulty(rng: np.random.Generator) -> RecoveryResult:
    return recover_sources(stuck(rng), site=SITE, noise=SIGMA, seed=1)


def test_a_faulty_sensor_is_one_verdict_in_words_json_and_file(faulty: RecoveryResult) -> None:
    assert faulty.verdict.kind == "misfit"
    assert not faulty.verdict.reliable
    assert [one.sensor for one in faulty.diagnostics.faulty_sensors] == ["30"]
    text = recovery_text(faulty)
    first, *_ = text.splitlines()
    assert first == f"verdict: {faulty.verdict.message}"
    assert first.startswith("verdict: do not rely on this: the readings do not fit")
    assert "sensor '30' reads 0.25" in text
    assert "the physics fits" not in text
    data = json.loads(json.dumps(faulty.to_json()))
    assert data["verdict"] == faulty.verdict.to_json()
    again = RecoveryResult.from_json(data)
    assert again.verdict == faulty.verdict
    assert again.diagnostics.suspects == faulty.diagnostics.suspects
    assert recovery_text(again) == text
    # A file of before has no verdict: it gets that of what it says.
    older = {name: value for name, value in data.items() if name != "verdict"}
    assert RecoveryResult.from_json(older).verdict == faulty.verdict


def test_without_the_faulty_sensor_there_is_an_answer(rng: np.random.Generator) -> None:
    found = recover_sources(stuck(rng), site=SITE, noise=SIGMA, seed=1, fit=["sensors"])
    assert [one.sensor for one in found.diagnostics.faulty_sensors] == ["30"]
    assert found.verdict.kind == "care"
    assert "fitted field" in found.verdict.message + "".join(found.verdict.reasons)


def test_a_command_ends_by_its_verdict(
    rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    SITE.write("site.json")
    rows = [
        f"{name},{value!r}"
        for name, value in zip(SITE.sensors.names, stuck(rng).tolist(), strict=True)
    ]
    Path("r.csv").write_text("\n".join(["sensor,value", *rows]) + "\n", encoding="utf-8")
    said = CliRunner().invoke(
        app,
        ["sense", "recover", "r.csv", "--site", "site.json", "--sigma", str(SIGMA), "--json", "--seed", "1",
         "--out", "f.json"],
    )  # fmt: skip
    assert said.exit_code == UNRELIABLE == 9
    shown = json.loads(said.stdout)
    assert shown["verdict"]["kind"] == "misfit"
    called = recover_sources("r.csv", site="site.json", noise=SIGMA, seed=1)
    saved = json.loads(Path("f.json").read_text(encoding="utf-8"))
    assert shown["verdict"] == called.verdict.to_json() == saved["verdict"]
    assert shown["suspects"] == called.to_json()["suspects"] == saved["suspects"]


def test_an_answer_that_explains_nothing_is_not_called_noise() -> None:
    """As it was: p = 4e-92 of the answer, and below it that a test finds that the physics fits."""
    line = heat_line(sources=20, sensors=8, diffusion_time=0.01)
    site = synthetic_site("hall", line, MovedMass("1/10", "line"))
    found = recover_sources(line.columns([5])[:, 0], site=site, noise=0.05, seed=1)
    assert found.answer is not None
    assert found.answer.beliefs is not None
    beliefs = replace(found.answer.beliefs, fits=4e-92, doubt="no 12 sources explain it")
    told = RecoveryDiagnostics(misfit=MisfitReport(0.5, ""))
    for status in ("optimal", "infeasible"):
        verdict = verdict_of(status, replace(found.answer, beliefs=beliefs), told)
        assert verdict == Verdict("misfit", "do not rely on this: no 12 sources explain it")
    assert verdict_of("infeasible", None, told).kind == "nothing"
    unclear = RecoveryDiagnostics(
        misfit=MisfitReport(1.0, "whether sources explain it is not known")
    )
    said = verdict_of("infeasible", None, unclear)
    assert said.kind == "nothing"
    assert said.message.startswith("nothing can be told: whether sources explain it is not known; ")
    assert "noise alone" not in said.message
    assert verdict_of("infeasible", None, RecoveryDiagnostics()).kind == "misfit"
    assert verdict_of("zero", None, told).message.startswith("nothing can be told")
    assert verdict_of("optimal", found.answer, told).kind == "rely"


def said_parameters(file: Path) -> set[str]:
    """Words between backticks in what a module says: not in its docstrings and errors."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    unsaid = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for part in ast.walk(node)
    }
    return {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unsaid
        for word in re.findall("`([^`]+)`", node.value)
    }


def test_a_picture_has_a_plain_word_for_every_parameter_that_a_verdict_names() -> None:
    room = Path(sensing.__file__).parent
    files = [room / "results/verdict.py", room / "pipeline/track.py"]
    files += [*(room / "diagnostics").glob("*.py"), *(room / "recovery").rglob("*.py")]
    said = set[str]().union(*map(said_parameters, files))
    assert {"fit='offset'", "fit='sensors'", "leave_out_faulty"} <= said <= set(PLAIN)
    told = without_parameters("and `fit='offset'` finds both")
    assert told == "and a fit of the level finds both"


def test_a_ceiling_that_holds_r_down_is_told_with_what_a_larger_one_gives(
    rng: np.random.Generator,
) -> None:
    line = heat_line(sources=100, sensors=50, diffusion_time=0.01)
    site = synthetic_site("hall", line, MovedMass("1/10", "line"))
    readings = 2 * line.columns([30])[:, 0] + 0.1 * rng.standard_normal(50)
    found = recover_sources(readings, site=site, noise=0.1, radius=1.0, estimator="least")
    ceiling = found.diagnostics.ceiling
    assert ceiling is not None
    assert ceiling.cells >= 1
    larger = recover(line, readings, radius=found.certificate.radius, max_mass=2.0)
    assert (ceiling.larger, ceiling.larger_cells) == (2.0, len(larger.support))
    assert ceiling.larger_total == pytest.approx(larger.objective)
    # The price is the slope of the total in the ceiling, which is convex in it.
    step = 0.05
    beside = recover(line, readings, radius=found.certificate.radius, max_mass=1 + step)
    assert ceiling.price is not None
    fall = found.certificate.objective - beside.objective
    # Convex, so that its fall over a step is between the slopes at both ends of the step; 1e-7 is what
    # solvers leave open. Where no cell is at the ceiling any more, the slope is 0.
    beyond = ceiling_of(beside)
    after = 0.0 if beyond is None or beyond.price is None else beyond.price
    assert after * step - 1e-7 <= fall <= ceiling.price * step + 1e-7
    unsolved = replace(ceiling, larger=None, larger_cells=None, larger_total=None)
    assert unsolved.message.endswith("; no larger one that was tried was solved")
    assert found.to_json()["ceiling"]["larger"]["upper"] == 2.0
    assert Ceiling.from_json(found.to_json()["ceiling"]) == ceiling
    assert ceiling_of(recover(line, readings, radius=0.1, max_mass=4.0)) is None


def test_a_ceiling_that_the_truth_meets_is_no_reason_for_care(rng: np.random.Generator) -> None:
    """Two sources of just the largest mass, near each other: R takes them for one that is larger."""
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    site = synthetic_site("hall", line, MovedMass("1/10", "line"))
    readings = line.columns([40, 46]).sum(axis=1) + 0.17 * rng.standard_normal(50)
    found = recover_sources(readings, site=site, noise=0.17, radius=1.3, estimator="least")
    ceiling = found.diagnostics.ceiling
    assert ceiling is not None
    assert not ceiling.matters
    assert found.verdict.kind == "rely", found.verdict
    assert "is reached by R, and the readings allow it" in recovery_text(found)


def test_a_ceiling_that_the_readings_speak_against_is_said_in_the_verdict(
    rng: np.random.Generator,
) -> None:
    """A source of mass 2 on a floor, under a largest mass of 1: cells beside it do not make up for it."""
    readings = 2 * FLOOR.columns([21])[:, 0] + 0.004 * rng.standard_normal(36)
    found = recover_sources(readings, site=SITE, noise=0.004, estimator="least")
    ceiling = found.diagnostics.ceiling
    assert ceiling is not None
    assert ceiling.p_value is not None
    assert ceiling.p_value < 1e-3
    assert found.verdict.kind != "rely"
    assert "with `max_mass` 2 R has" in found.verdict.message + "".join(found.verdict.reasons)


def test_an_answer_spread_over_many_cells_for_a_ceiling_is_said_in_the_verdict() -> None:
    """Issue 21: a source of mass 2 gave 41 cells, "optimal", and nothing was said."""
    wide = Ceiling(1.0, 1, 41, 2.0, 0.1, 2.0, 1, 1.99, p_value=0.5)
    assert wide.matters
    assert "holds R down" in wide.message
    assert not replace(wide, of=3).matters
    assert replace(wide, of=3, p_value=None).matters


def test_nothing_lies_over_sensors_frames_or_the_legend(
    faulty: RecoveryResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The banner is above the panel, the legend between heading and panel, and suspects have a ring."""
    figures: list[Any] = []

    def keep(figure: Any) -> bytes:
        figures.append(figure)
        return b""

    monkeypatch.setattr(plane_picture, "png", keep)
    draw_recovery(faulty)
    (figure,) = figures
    figure.canvas.draw()
    axis = figure.axes[0]
    (banner,) = (one for one in figure.texts if one.get_text().startswith("do not rely"))
    (heading,) = (one for one in axis.texts if one.get_text() == "recovered sources")
    frame, legend = axis.get_window_extent(), axis.get_legend().get_window_extent()
    boxes = [banner.get_window_extent(), heading.get_window_extent(), legend, frame]
    for upper, lower in pairwise(boxes):
        assert upper.y0 >= lower.y1 - 2
    assert "contradicted by the others" in {one.get_text() for one in axis.get_legend().get_texts()}
    assert any("Verdict: do not rely" in one.get_text() for one in figure.texts)
    words = [one for one in axis.texts if one.get_text().endswith("%")]
    drawn = [one.get_window_extent() for one in words]
    for i, box in enumerate(drawn):
        assert frame.y0 <= box.y0
        assert box.y1 <= frame.y1
        assert not any(box.overlaps(other) for other in drawn[:i])
