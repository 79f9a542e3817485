"""The audit experiments run, write what they promise and find what expected.toml says; and they can fail."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path

import pytest
from experiments.audit import queries, report
from experiments.audit.protocol import gaussian, generator, geometric, response, spread, worst
from experiments.sensors.claims import Claim
from experiments.sensors.points import Part, exact_point

from sfumato.audit.limits import boundary_pair
from sfumato.privacy import max_divergence

ROOT = Path(__file__).parents[2]


@pytest.mark.unit
def test_a_quick_run_is_what_is_expected(tmp_path: Path) -> None:
    report.main(["--quick", "--out", str(tmp_path)])
    findings = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert len(findings) == len(report.read_claims(quick=True)) > 25
    assert all(one["held"] == one["agrees"] for one in findings)
    for picture in queries.TITLES:
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "points.csv").read_text(encoding="utf-8").startswith("figure,series,metric")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "data:image/png" in html
    assert "does not hold" in html


@pytest.mark.unit
def test_a_surprise_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = Part("p", "Heading", "words", (exact_point("f", "a", "n", 1, 1), exact_point("f", "a", "n", 2, 3)))
    claim = Claim("c", "f", "here", "it falls", "falls", "a", True, metric="value")
    monkeypatch.setattr(report, "PARTS", (lambda *, quick: part,))
    monkeypatch.setattr(report, "read_claims", lambda *, quick: [claim])
    with pytest.raises(SystemExit) as stopped:
        report.main(["--quick", "--out", str(tmp_path)])
    assert stopped.value.code == 1
    assert "SURPRISE: c was expected to hold" in capsys.readouterr().out


@pytest.mark.unit
def test_every_claim_says_where_it_stands() -> None:
    tables = tomllib.loads((ROOT / "experiments/audit/expected.toml").read_text(encoding="utf-8"))["claim"]
    assert len({one["name"] for one in tables}) == len(tables)
    claims = report.read_claims(quick=False)
    assert len(claims) == len(tables) > len(report.read_claims(quick=True))
    assert all(claim.where and claim.text for claim in claims)
    assert all(claim.note for claim in claims if not claim.agrees), "a disagreement is explained"
    assert {"|"}.isdisjoint("".join(claim.text + claim.note for claim in claims)), "it would break a table"


@pytest.mark.unit
def test_the_cases_are_laws_of_the_mechanisms() -> None:
    """Privacy losses by hand; sums of a few hundred terms are known to 1e-12."""
    for laws, epsilon in (
        (response(16, 1.5), 1.5),
        (geometric(16, 0.7), 0.7),
        (boundary_pair(2.0, 0.0), 2.0),
    ):
        assert [law.sum() for law in laws] == pytest.approx([1, 1])
        assert max_divergence(*laws) == pytest.approx(epsilon, abs=1e-12)
    assert gaussian(33, 0.7)[0].sum() == pytest.approx(1)
    pair = boundary_pair(0.5, 0.1)
    assert worst(spread(pair, 64), 0.5) == pytest.approx(worst(pair, 0.5), abs=1e-12)
    assert generator("a").random() == generator("a").random() != generator("b").random()


@pytest.mark.unit
def test_what_is_needed_is_found_by_bisection() -> None:
    found = queries.needed(lambda samples: float(samples < 700), 5000)
    assert math.log(found) == pytest.approx(math.log(700), abs=0.031)
    rows = queries.numbers([exact_point("f", "a", "n", x, 10 * x) for x in (2, 1)], "f")
    assert rows == [["n", "a"], ["1", "10"], ["2", "20"]]
