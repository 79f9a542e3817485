"""`sfumato audit`: the command with --json, the Python call and the saved file say the same."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.audit.drifting import drifting
from tests.cli.audit_runs import answer, mechanisms, run

import sfumato.audit as house
from sfumato.audit import (
    AuditPlan,
    AuditResult,
    CertificateOptions,
    ReplayResult,
    SelfTest,
    audit_claim,
    plan_audit,
    read_verdict,
    replay_verdict,
    selftest,
)
from sfumato.audit.boxes import runs
from sfumato.errors import InvalidParameter

pytestmark = pytest.mark.unit

PAIR = ("--pair", "[0, 1]")
FEW = ("--budget", "20000")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    mechanisms(tmp_path, monkeypatch, rng)
    # How many runs are made at once goes by how long the last took: here none takes any time.
    monkeypatch.setattr(runs, "time", types.SimpleNamespace(monotonic=lambda: 0.0))


@pytest.fixture
def again(key: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Mechanisms that draw anew from the test's own seed, so that two audits see the same runs."""

    def begin() -> None:
        rng = np.random.default_rng(list(key))
        module = types.ModuleType("mech")
        module.__dict__.update(
            response=lambda data, runs: np.where(rng.random(runs) < 0.75, data, 1 - data),
            noisy=lambda data, runs: data + rng.laplace(scale=0.25, size=runs),
            law=lambda data: [0.75, 0.25] if data == 0 else [0.25, 0.75],
            draw=lambda given: (0, 1),
            drifting=drifting(200, rng).run,
        )
        monkeypatch.setitem(sys.modules, "mech", module)

    return begin


def timeless(found: dict[str, Any]) -> dict[str, Any]:
    """Without what a clock says, and the words that a face adds."""
    return {key: value for key, value in found.items() if key not in ("seconds", "said")}


@pytest.mark.parametrize(
    ("target", "claim", "code", "words", "asked"),
    [
        ("mech:response", "epsilon=0.5", 1, (), {}),
        ("mech:response", "epsilon=3", 0, (), {}),
        ("mech:response", "rho=0.1", 1, ("--bound",), {"bound": True}),
        (
            "mech:noisy",
            "mu=0.5",
            1,
            ("--bound", "--band", "--round", "3"),
            {"bound": True, "band": True, "round_bits": 3},
        ),
        ("mech:drifting", "epsilon=1", 5, ("--bound",), {"bound": True}),
        (
            "mech:response",
            "epsilon=1.2,delta=0",
            0,
            ("--certify", "--outputs", "2", "--proximity", "0.2", "--budget", "10000000"),
            {"certify": CertificateOptions(0.2, 2), "budget": "10000000"},
        ),
        (
            "mech:response",
            "epsilon=1.2",
            0,
            ("--certify", "--outputs", "[0, 1]", "--proximity", "0.5", "--specification", "mech:law",
             "--budget", "10000000"),
            {"certify": CertificateOptions(0.5, [0, 1], "mech:law"), "budget": "10000000"},
        ),
    ],
)  # fmt: skip
def test_an_audit_is_the_same_from_everywhere(
    again: Any, target: str, claim: str, code: int, words: tuple[str, ...], asked: dict[str, Any]
) -> None:
    given = (*PAIR, *(() if "--budget" in words else FEW))
    again()
    told = answer(code, "run", target, "--claim", claim, *given, *words, "--out", "v.json")
    again()
    called = audit_claim(target, claim, **{"inputs": [(0, 1)], "budget": "20000", **asked})
    assert timeless(called.summary()) == timeless(told)
    saved = read_verdict("v.json")
    whole = timeless(saved.to_json())
    assert whole == timeless(called.to_json())
    assert (
        timeless(AuditResult.from_json(json.loads(json.dumps(whole | {"seconds": 0}))).to_json())
        == whole
    )
    assert told["said"][0] == str(called).splitlines()[0] == str(saved).splitlines()[0]


def test_an_audit_of_samples_is_the_same_from_everywhere(rng: np.random.Generator) -> None:
    sides = [(at + rng.laplace(scale=0.25, size=2000)).round(4) for at in (0.0, 1.0)]
    for name, side in zip(("a.csv", "b.csv"), sides, strict=True):
        Path(name).write_text("\n".join(map(str, side)))
    words = ("--samples", "a.csv", "b.csv", "--claim", "epsilon=1", "--bound", "--out", "v.json")
    told = answer(1, "run", *words)
    called = audit_claim(("a.csv", "b.csv"), "epsilon=1", bound=True, budget="60s,1000000")
    assert timeless(called.summary()) == timeless(told)
    assert timeless(read_verdict("v.json").to_json()) == timeless(called.to_json())
    other = {"target": None, "pairs": None}
    for both in (sides, [side.tolist() for side in sides], [pd.Series(side) for side in sides]):
        held = audit_claim((both[0], both[1]), "epsilon=1", bound=True, budget="60s,1000000")
        assert timeless(held.summary() | other) == timeless(told | other)


def test_an_audit_of_a_command_is_the_same_from_everywhere() -> None:
    words = ("--command", "echo {data}", "--claim", "epsilon=1", *PAIR, "--budget", "400")
    told = answer(1, "run", *words, "--out", "v.json")
    called = audit_claim("echo {data}", "epsilon=1", inputs=[(0, 1)], budget="400")
    assert timeless(called.summary()) == timeless(told)
    assert timeless(read_verdict("v.json").to_json()) == timeless(called.to_json())


def test_random_data_are_the_same_from_everywhere(again: Any, key: bytes) -> None:
    words = (
        "--certify",
        "--outputs",
        "2",
        "--proximity",
        "0.4",
        "--data",
        "mech:draw",
        "--budget",
        "10000000",
    )
    claim = "epsilon=1.2,delta=0.01,gamma=0.2"
    again()
    told = answer(0, "run", "mech:response", "--claim", claim, *words)
    again()
    certify = CertificateOptions(0.4, 2, data="mech:draw")
    rng = np.random.default_rng(list(key))
    called = audit_claim("mech:response", claim, certify=certify, budget="10000000", rng=rng)
    assert timeless(called.summary()) == timeless(told)


def test_a_function_and_its_name_are_the_same_mechanism(again: Any) -> None:
    again()
    named = audit_claim("mech:response", "epsilon=0.5", inputs=[(0, 1)], budget="20000")
    again()
    function = sys.modules["mech"].response
    given = audit_claim(function, "epsilon=0.5", inputs=[(0, 1)], budget="20000")
    other = {"target": None}
    assert timeless(named.to_json() | other) == timeless(given.to_json() | other)


def test_a_replay_is_the_same_from_everywhere(again: Any) -> None:
    again()
    found = audit_claim("mech:response", "epsilon=0.5", inputs=[(0, 1)], budget="20000")
    found.write("v.json")
    again()
    told = answer(1, "replay", "v.json", "mech:response")
    again()
    called = replay_verdict("v.json", "mech:response")
    assert called.to_json() == timeless(told)
    again()
    assert replay_verdict(found, "mech:response").to_json() == called.to_json()
    assert ReplayResult.from_json(called.to_json()).to_json() == called.to_json()
    assert told["said"] == str(called).splitlines()


@pytest.mark.parametrize(
    ("claim", "words", "asked"),
    [
        ("epsilon=1,delta=1e-3", ("--outputs", "16"), {"outputs": 16}),
        ("epsilon=1", ("--outputs", "16", "--specification", "0.01"), {"outputs": 16, "min_mass": 0.01}),
        ("epsilon=1,delta=0.01,gamma=0.05", ("--weight", "0.1"), {"weight": 0.1}),
        ("epsilon=1", (), {}),
        ("rho=1", ("--confidence", "0.9"), {"confidence": 0.9}),
        ("epsilon=400,delta=0.1", (), {}),
    ],
)  # fmt: skip
def test_a_plan_is_the_same_from_everywhere(
    claim: str, words: tuple[str, ...], asked: dict[str, Any]
) -> None:
    told = answer(0, "plan", "--claim", claim, *words)
    called = plan_audit(claim, **asked)
    assert called.to_json() == timeless(told)
    assert AuditPlan.from_json(json.loads(json.dumps(called.to_json()))) == called
    assert told["said"][: len(str(called).splitlines())] == str(called).splitlines()


def test_a_selftest_is_the_same_from_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one audit of each, and no broken mechanisms but one: the same seed, the same result."""
    room: Any = sys.modules[selftest.__module__]
    monkeypatch.setattr(house, "selftest", selftest)
    monkeypatch.setattr(room, "TESTS", ("fixed",))
    kept = [
        one for one in room.private_specimens(np.random.default_rng(1)) if "Our" not in one.name
    ]
    names = {one.name for one in kept[:3]}
    specimens = room.private_specimens
    monkeypatch.setattr(
        room, "private_specimens", lambda rng: [one for one in specimens(rng) if one.name in names]
    )
    caught = room.catch_all
    monkeypatch.setattr(room, "catch_all", lambda rng: caught(rng, ("RNM3",)))
    told = answer(0, "selftest", "--audits", "2", "--seed", "1")
    called = selftest(audits=2, rng=np.random.default_rng(1))
    assert called.to_json() == timeless(told)
    assert SelfTest.from_json(json.loads(json.dumps(called.to_json()))) == called


def test_a_budget_may_be_a_number_of_runs(again: Any) -> None:
    again()
    said = audit_claim("mech:response", "epsilon=3", inputs=[(0, 1)], budget="2000")
    again()
    counted = audit_claim("mech:response", "epsilon=3", inputs=[(0, 1)], budget=2000)
    assert timeless(counted.to_json()) == timeless(said.to_json())
    for budget in (0, -5, 2.5, True, None):
        with pytest.raises(InvalidParameter, match=r"a budget is a time .* nothing was run"):
            audit_claim("mech:response", "epsilon=3", inputs=[(0, 1)], budget=budget)  # type: ignore[arg-type]


def test_refusals_are_the_same_from_everywhere() -> None:
    told = run("run", "mech:response", "--claim", "epsilon=1,gamma=0.1", *PAIR)
    assert "a claim with gamma is about random data" in told.stderr
    for inputs, claim, words in (
        ([(0, 1)], "epsilon=1,gamma=0.1", "a claim with gamma is about random data"),
        (None, "epsilon=1", "none are guessed; nothing was run"),
        ("tables", "epsilon=1", "inputs are one of numbers"),
        ("list-replace", "epsilon=1", "inputs must be neighbors in the sense of the claim"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            audit_claim("mech:response", claim, inputs=inputs)


def test_an_old_saved_verdict_opens() -> None:
    """Written in November 2026, before results were one value."""
    old = read_verdict(Path(__file__).parents[1] / "audit" / "data" / "verdict-2026-11.json")
    assert (old.kind, old.target, old.diagnostics) == ("REFUTED", "mech:response", ())
    assert old.total_runs == old.verdict.runs
    assert old.bound is not None
    assert old.band is not None
    assert old.can_replay
    assert replay_verdict(old, lambda data, runs: np.full(runs, data)).refuted


def test_a_notebook_gets_words_counts_and_pictures(again: Any) -> None:
    again()
    found = audit_claim("mech:response", "epsilon=0.2", inputs=[(0, 1)], budget="3000", band=True)
    page = found._repr_html_()
    for words in ("REFUTED", "Witness", "Wealth", "Band of delta", "<table>"):
        assert words in page, words
    assert page.count("data:image/png;base64,") == 3
