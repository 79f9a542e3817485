"""The graphon experiments run, write what they promise and find what expected.toml says."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from experiments.graphon import report
from experiments.graphon.protocol import contrasted, definite, generator, mean_point, packed
from experiments.sensors.claims import Claim
from experiments.sensors.points import Part, exact_point

from sfumato.graphon.distance import definiteness

ROOT = Path(__file__).parents[2]


@pytest.mark.unit
def test_a_quick_run_is_what_is_expected(tmp_path: Path) -> None:
    report.main(["--quick", "--out", str(tmp_path)])
    findings = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert len(findings) == len(report.read_claims(quick=True)) > 12
    decided = [one for one in findings if one["verdict"] != "undecided"]
    assert all(one["verdict"] == one["expected"] for one in decided)
    assert len(decided) > 10, "few networks decide few claims"
    assert {"holds", "does not hold"} <= {one["verdict"] for one in decided}
    for picture in ("errors", "phase"):
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "points.csv").read_text(encoding="utf-8").startswith("figure,series,metric")
    assert "data:image/png" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.unit
def test_a_surprise_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = Part("p", "Heading", "words", (exact_point("f", "a", "n", 1, 1), exact_point("f", "a", "n", 2, 3)))
    claim = Claim("c", "f", "here", "it falls", "falls", "a", "holds", metric="value")
    monkeypatch.setattr(report, "PARTS", (lambda *, quick: part,))
    monkeypatch.setattr(report, "read_claims", lambda *, quick: [claim])
    with pytest.raises(SystemExit) as stopped:
        report.main(["--quick", "--out", str(tmp_path)])
    assert stopped.value.code == 1


@pytest.mark.unit
def test_every_claim_says_where_it_stands() -> None:
    tables = tomllib.loads((ROOT / "experiments/graphon/expected.toml").read_text(encoding="utf-8"))["claim"]
    assert len({one["name"] for one in tables}) == len(tables)
    claims = report.read_claims(quick=False)
    assert len(claims) == len(tables) > len(report.read_claims(quick=True))
    assert all(claim.where and claim.text for claim in claims)
    assert all(claim.note for claim in claims if claim.verdict != "holds"), "a disagreement is explained"
    assert {"|"}.isdisjoint("".join(claim.text + claim.note for claim in claims)), "it would break a table"


@pytest.mark.unit
def test_the_models_are_what_they_say() -> None:
    rng = generator("models")
    assert np.unique(contrasted(5, 0.4, rng).matrix) == pytest.approx([0.08, 0.4])
    # n = 100, k = 5, rho = 0.25: eta = 0.1, so chances are 0.25 (1/2 +- 0.025).
    assert np.unique(packed(100, 5, 0.25, rng).matrix) == pytest.approx([0.11875, 0.13125])
    assert definiteness(definite(4, rng)) == 1
    assert mean_point("f", "s", "x", 1.0, [1.0, 3.0]).middle == 2
    assert generator("a").random() == generator("a").random() != generator("b").random()
