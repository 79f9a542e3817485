"""`sfumato audit`: certificates, replays, plans and the selftest."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.audit_runs import FEW, MANY, PAIR, answer, ended, mechanisms, run

import sfumato.audit as house
from sfumato.audit import Budget
from sfumato.audit.catalogue.self_test import Catch, Level, SelfTest
from sfumato.audit.property_testing.limits import (
    distinguishing_bound,
    queries_with_specification,
    queries_without_information,
)
from sfumato.audit.verdict import CONFIDENCE
from sfumato.cli.audit import claims as audit
from sfumato.privacy import ApproxDP, PureDP, RandomApproxDP

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    mechanisms(tmp_path, monkeypatch, rng)


# certificates


def test_what_is_near_is_certified() -> None:
    words = (
        "run",
        "mech:response",
        "--claim",
        "epsilon=1.2,delta=0",
        *PAIR,
        "--certify",
        "--outputs",
        "2",
    )
    told = ended(0, *words, "--proximity", "0.2", *MANY)
    assert told.splitlines()[0] == (
        "CERTIFIED with confidence 0.99: mech:response keeps epsilon 1.2, delta 0.2 (one user added or "
        "removed) on what was tested; claimed was epsilon 1.2, delta 0, and this is it up to a proximity of "
        "0.2"
    )
    assert "no other input was tested" in told
    assert ended(5, *words, "--proximity", "0.01", "--budget", "50").startswith("INCONCLUSIVE")


def test_what_is_far_is_refuted_by_the_testers_and_saved_in_words() -> None:
    words = (
        "--claim",
        "epsilon=0,delta=0",
        *PAIR,
        "--certify",
        "--outputs",
        "2",
        "--proximity",
        "0.2",
    )
    files = ("--out", "v.json", "--report", "r.html")
    told = ended(1, "run", "mech:response", *words, *MANY, *files)
    assert told.startswith("REFUTED with confidence 0.99: mech:response does not keep")
    assert "runs of each input" in told, "the notes of the testers"
    result = run("replay", "v.json", "mech:response")
    assert result.exit_code == 4
    assert "saved in words only" in result.stderr


def test_a_pure_claim_is_unverifiable_without_stated_laws() -> None:
    words = (
        "run",
        "mech:response",
        "--claim",
        "epsilon=1.2",
        *PAIR,
        "--certify",
        "--proximity",
        "0.5",
    )
    result = run(*words, "--outputs", "2")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "cannot be verified without information" in result.stderr
    told = ended(0, *words, "--outputs", "[0, 1]", "--specification", "mech:law", *MANY)
    assert told.startswith(
        "CERTIFIED with confidence 0.99: mech:response keeps epsilon 1.7 (one user added"
    )


def test_a_claim_about_random_data() -> None:
    words = ("run", "mech:response", "--claim", "epsilon=1.2,delta=0.01,gamma=0.2", "--certify")
    rest = ("--proximity", "0.4", "--outputs", "2", *MANY)
    told = ended(0, *words, *rest, "--data", "mech:draw")
    assert told.splitlines()[0].startswith(
        "CERTIFIED with confidence 0.99: mech:response keeps epsilon 1.2, delta 0.41 except with probability "
        "0.6 over the data (one user added or removed) on what was tested; claimed was epsilon 1.2, delta "
        "0.01 except with probability 0.2 over the data, and this is it up to a proximity of 0.4"
    )
    assert "random pairs, of which" in told
    assert answer(0, *words, *rest, "--data", "mech:draw")["certified"]["gamma"] == "3/5"
    heavy = answer(0, *words, *rest, "--data", "mech:draw", "--weight", "2")
    assert (heavy["certified"]["delta"], heavy["certified"]["gamma"]) == ("41/100", "2/5")
    assert "must return two inputs, got int" in run(*words, *rest, "--data", "mech:strange").stderr


# replay


def test_a_witness_is_run_again() -> None:
    ended(1, "run", "mech:response", "--claim", "epsilon=0.5", *PAIR, *FEW, "--out", "v.json")
    found = answer(1, "replay", "v.json", "mech:response", "--runs", "20000")
    assert found["refuted"]
    assert found["p_value"] <= found["level"] == pytest.approx(0.01)
    assert sum(found["hits"]) == pytest.approx(20_000, rel=0.05)
    told = run("replay", "v.json", "mech:slow", "--runs", "500", "--confidence", "0.999999")
    assert told.exit_code == 5
    assert "the verdict is of mech:response, this runs mech:slow" in told.stderr
    assert told.stdout.startswith("not refuted by these runs alone: p-value")


def test_without_a_witness_there_is_nothing_to_replay() -> None:
    ended(
        0,
        "run",
        "mech:response",
        "--claim",
        "epsilon=3",
        *PAIR,
        "--budget",
        "4000",
        "--out",
        "v.json",
    )
    result = run("replay", "v.json", "mech:response")
    assert result.exit_code == 4
    assert "v.json is NOT_REFUTED and has no witness" in result.stderr


# plan


def test_a_plan_says_how_many_runs() -> None:
    found = answer(
        0, "plan", "--claim", "epsilon=1,delta=1e-3", "--outputs", "16", "--proximity", "0.01"
    )
    wanted = queries_without_information(
        ApproxDP(1, "1e-3"), outputs=16, proximity=0.01, error=1 - 0.99
    )
    blind = distinguishing_bound(1.0, 1e-3, proximity=0.01, error=1 - 0.99)
    assert found["verifiable"]
    assert (found["least"], found["enough"], found["total"]) == (
        max(wanted.min_runs, blind), wanted.enough_runs, wanted.total,
    )  # fmt: skip
    told = ended(0, "plan", "--claim", "epsilon=1,delta=1e-3", "--outputs", "16")
    assert f"no test does with fewer than {found['least']:,} runs of each input" in told
    assert f"{wanted.total:,} runs in all" in told
    tiny = answer(0, "plan", "--claim", "epsilon=0.01,delta=1e-6", "--proximity", "1e-6")
    assert tiny["least"] >= distinguishing_bound(0.01, 1e-6, proximity=1e-6) > 10**6


def test_options_have_the_defaults_of_the_functions() -> None:
    """They are written out in the options, which are read before anything slow is loaded."""
    for command in (audit.plan, audit.run):
        assert inspect.signature(command).parameters["confidence"].default == CONFIDENCE
    assert Budget.parse(inspect.signature(audit.run).parameters["budget"].default) == Budget()


def test_a_plan_with_stated_laws() -> None:
    found = answer(0, "plan", "--claim", "epsilon=1", "--outputs", "16", "--specification", "0.01")
    wanted = queries_with_specification(
        PureDP(1), outputs=16, proximity=0.1, min_mass=0.01, error=1 - 0.99
    )
    assert (found["enough"], found["proximity"]) == (wanted.enough_runs, 0.1)


def test_a_plan_with_random_data() -> None:
    found = answer(0, "plan", "--claim", "epsilon=1,delta=0.01,gamma=0.05", "--weight", "0.1")
    wanted = queries_without_information(
        RandomApproxDP(1, "0.01", "0.05"), outputs=2, proximity=0.01, weight=0.1, error=1 - 0.99
    )
    assert found["pairs"] == wanted.pairs > 1
    (command,) = (line for line in found["said"] if line.startswith("to do it: "))
    assert command.endswith(
        f"--certify --proximity 0.01 --outputs 2 --weight 0.1 --budget {found['total']} "
        "--data MODULE:FUNCTION"
    )
    assert not any("to try to refute" in line for line in found["said"])


@pytest.mark.parametrize(
    ("claim", "given"), [("epsilon=1.2,delta=0", ()), ("epsilon=1.2", ("--specification", "0.25"))]
)
def test_what_a_plan_suggests_runs_as_it_stands(claim: str, given: tuple[str, ...]) -> None:
    planned = answer(
        0, "plan", "--claim", claim, "--proximity", "0.3", "--confidence", "0.999", *given
    )
    lines = [line.partition(": sfumato audit ")[2] for line in planned["said"]]
    certify, refute = (line for line in lines if line)
    filled = certify.replace("--specification MODULE:FUNCTION", "--specification mech:law")
    filled = filled.replace("MODULE:FUNCTION", "mech:response").replace(
        "--inputs FORM", "--pair '[0, 1]'"
    )
    filled = filled.replace("[ALL, OF, THEM]", "[0, 1]")
    assert ended(0, *shlex.split(filled), *MANY).startswith("CERTIFIED with confidence 0.999:")
    filled = refute.replace("MODULE:FUNCTION", "mech:response").replace(
        "--inputs FORM", "--pair '[0, 1]'"
    )
    assert ended(0, *shlex.split(filled), "--budget", "2000", "--confidence", "0.999999")


@pytest.mark.parametrize("claim", ["epsilon=1", "rho=1", "mu=1", "epsilon=1,gamma=0.1"])
def test_a_plan_says_that_it_cannot_be_done_and_why(claim: str) -> None:
    found = answer(0, "plan", "--claim", claim)
    assert not found["verifiable"]
    assert "mcmillan18" in found["why"]
    told = ended(0, "plan", "--claim", claim)
    assert told.startswith("cannot be verified: ")
    assert ("what can be certified is less" in told) == (claim == "epsilon=1")
    assert "to do it" not in told


@pytest.mark.parametrize(
    "words", [("epsilon=400,delta=0.1", "--outputs", "4"), ("epsilon=800", "--specification", "0.1"),
              ("epsilon=1000,delta=0.1,gamma=0.1",), ("epsilon=1000",)],
)  # fmt: skip
def test_a_plan_for_an_epsilon_beyond_all_runs_says_so(words: tuple[str, ...]) -> None:
    found = answer(0, "plan", "--claim", *words)
    assert not found["verifiable"]
    given = ("--claim", words[0], *PAIR, "--certify", "--proximity", "0.1", "--outputs", "2", *MANY)
    if "gamma" not in words[0]:
        result = run("run", "mech:response", *given)
        assert (result.exit_code, result.stdout) == (5, "")


# the selftest


@pytest.mark.parametrize(("caught", "code"), [(True, 0), (False, 1)])
def test_the_selftest_ends_as_it_found(
    caught: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def stub(**words: Any) -> SelfTest:
        asked.update(words)
        level = Level("fixed", "Laplace", words["audits"], 0)
        return SelfTest((level,), (Catch("HalfNoise", caught, 200),))

    monkeypatch.setattr(house, "selftest", stub)
    found = answer(code, "selftest", "--audits", "60", "--seed", "1")
    assert asked["audits"] == 60
    assert asked["rng"].random() == np.random.default_rng(1).random()
    said = found.pop("said")
    assert found == {
        "passed": caught,
        "levels": [
            {
                "test": "fixed",
                "mechanism": "Laplace",
                "audits": 60,
                "errors": 0,
                "nominal": pytest.approx(0.05),
            }
        ],
        "catches": [{"mechanism": "HalfNoise", "caught": caught, "runs": 200}],
    }
    word = "caught after 200 runs" if caught else "NOT caught in 200 runs"
    assert f"HalfNoise, broken: {word}" in said
    assert said[-1] == ("passed" if caught else "FAILED: do not rely on this auditor")
    told = ended(code, "selftest")
    assert asked["audits"] == 40
    assert told.startswith("mechanism  test ")
    assert ("40 audits are too few to say; give --audits 100" in told) == caught
