"""An estimator that somebody else wrote goes wherever ours do: command, file, words, tables, forecast."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from experiments.sensors.estimators import Setting, run_trial
from tests.cli.sense_runs import alone, answer, clear, done, run

from sfumato.errors import InvalidParameter
from sfumato.sensing import Operator, heat_line
from sfumato.sensing.pipeline import recover_sources
from sfumato.sensing.planning import Scene, draw_trials, error_of
from sfumato.sensing.recovery import Answer, CredibleRegion, Estimate
from sfumato.sensing.recovery.estimators import (
    RecoveryProblem,
    estimator_named,
    estimator_names,
    register_estimator,
    unregister_estimator,
)
from sfumato.sensing.results import read_recovery

pytestmark = pytest.mark.unit


class Loudest:
    """All mass in the cell that explains most of the readings."""

    name: ClassVar[str] = "loudest"
    options: ClassVar[frozenset[str]] = frozenset({"max_sources"})
    needs_certificate: ClassVar[bool] = False

    def unsuitable(self, operator: Operator, noise: float | None) -> str:
        few = operator.space.size < 3 or noise is None
        return "needs more than 2 cells and the noise" if few else ""

    def estimate(self, problem: RecoveryProblem) -> Answer:
        columns = problem.operator.columns(np.arange(problem.operator.space.size))
        fits = columns.T @ problem.readings / np.maximum((columns**2).sum(axis=0), 1e-300)
        left = ((problem.readings[:, np.newaxis] - columns * fits) ** 2).sum(axis=0)
        best = np.array([int(left.argmin())])
        places = problem.operator.space.places(best)
        return Answer(
            self.name,
            Estimate(problem.operator, places, np.maximum(fits[best], 0)),
            (CredibleRegion(places[0], 0.1, 0.5),),
            details={"left": float(left.min())},
            expected=columns[:, best[0]] * fits[best[0]],
        )


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    alone(tmp_path, monkeypatch)
    register_estimator(Loudest())
    yield
    unregister_estimator("loudest")


def test_it_answers_the_command_and_is_saved() -> None:
    clear(5)
    told = answer("recover", "r.json", "--estimator", "loudest", "--out", "rec.json")
    assert told["answer"]["estimator"] == "loudest"
    assert [one["cell"] for one in told["answer"]["sources"]] == [5]
    assert told["answer"]["left"] < 1e-6
    saved = read_recovery("rec.json")
    assert saved.summary() == told
    assert saved.answer is not None
    assert saved.answer.details == {"left": told["answer"]["left"]}
    assert recover_sources("r.json", estimator="loudest").summary() == told
    assert recover_sources("r.json", estimator=Loudest()).summary() == told
    text = done("recover", "r.json", "--estimator", "loudest", "--plot", "a.png").stdout
    assert "by loudest" in text
    assert "a source within 0.1 of 0.3 with 50 %" in text
    assert answer("check", "rec.json")["holds"]


def test_it_takes_the_options_it_says_and_no_others() -> None:
    clear(5)
    assert run("recover", "r.json", "--estimator", "loudest", "--most", "2").exit_code == 0
    refusal = run("recover", "r.json", "--estimator", "loudest", "--count", "2")
    assert refusal.exit_code == 2
    assert "--count goes with --estimator mixture or off-grid, or --fit" in refusal.stderr


def test_it_is_in_the_table_of_estimators_and_can_be_forecast(rng: np.random.Generator) -> None:
    assert "loudest" in run_trial(Setting("1 source, mass 1", 1), 0).errors
    scene = Scene(heat_line(sources=20, sensors=8, diffusion_time=0.01), 0.01)
    (trial,) = draw_trials(scene, 1, rng=rng)
    assert error_of(scene, trial, "loudest") == pytest.approx(0, abs=0.05)


class Careless(Loudest):
    """One that fails while it works."""

    name: ClassVar[str] = "careless"

    def estimate(self, problem: RecoveryProblem) -> Answer:
        del problem
        raise ZeroDivisionError("not thought of")


class Choosy(Loudest):
    """One that does not work here."""

    name: ClassVar[str] = "choosy"

    def unsuitable(self, operator: Operator, noise: float | None) -> str:
        del noise
        return f"takes at most 5 cells, got {operator.space.size}"


def test_it_is_in_the_forecast_in_words_numbers_and_page() -> None:
    register_estimator(Careless())
    register_estimator(Choosy())
    try:
        asked = (
            "plan",
            "--cells",
            "12",
            "--sensors",
            "4",
            "--rho",
            "8",
            "--trials",
            "2",
            "--seed",
            "3",
        )
        told = answer(*asked)["forecast"]
        assert list(told["estimators"]) == ["least mass", "bayes median", "loudest"]
        assert told["estimators"]["loudest"]["trials"] == 2
        assert told["left_out"] == {
            "careless": "not thought of",
            "choosy": "takes at most 5 cells, got 12",
        }
        said = done(*asked, "--out", "page.html").stdout
        assert re.search(r"^loudest +[0-9.e-]+ .* 2$", said, re.MULTILINE)
        assert "choosy was not simulated: takes at most 5 cells, got 12" in said
        page = Path("page.html").read_text()
        assert page.count("<td>loudest</td>") == 1
        assert "careless was not simulated: not thought of" in page
    finally:
        unregister_estimator("careless")
        unregister_estimator("choosy")


def test_packages_name_theirs_in_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(Loudest):
        name: ClassVar[str] = "other"

    class Broken:
        name, value = "broken", "nowhere:Broken"

        def load(self) -> Any:
            raise ImportError("No module named 'nowhere'")

    def points(*, group: str) -> list[Any]:
        assert group == "sfumato.estimators"
        return [SimpleNamespace(name="other", value="here:Other", load=lambda: Other), Broken()]

    monkeypatch.setattr("importlib.metadata.entry_points", points)
    assert estimator_names()[-3:] == ["loudest", "other", "broken"]
    assert estimator_named("other").name == "other"
    # One that cannot be loaded harms nobody who does not ask for it, and is named to who does.
    words = r"estimator 'broken' of an installed package \(nowhere:Broken\) cannot be loaded: ImportError: No"
    with pytest.raises(InvalidParameter, match=words):
        estimator_named("broken")


def test_names_are_taken_once() -> None:
    with pytest.raises(InvalidParameter, match="there is an estimator 'loudest' already"):
        register_estimator(Loudest())
    with pytest.raises(InvalidParameter, match="an estimator needs 'options'"):
        register_estimator(SimpleNamespace(name="bare"))
    register_estimator(Loudest(), replace=True)
    taken = type("Taken", (Loudest,), {"name": "least"})
    with pytest.raises(InvalidParameter, match="there is an estimator 'least' already"):
        register_estimator(taken())
    assert json.dumps(estimator_names()[:4]) == json.dumps(
        ["bayes-median", "least", "off-grid", "mixture"]
    )


def test_every_builtin_is_what_its_name_says() -> None:
    for name in ("bayes-median", "least", "off-grid", "mixture"):
        assert estimator_named(name).name == name
