"""What all campaigns have in common: claims that say where they stand, and runs that can fail."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiments.audit.report import CAMPAIGN as AUDIT
from experiments.campaign import Campaign
from experiments.graphon.report import CAMPAIGN as GRAPHON
from experiments.online.report import CAMPAIGN as ONLINE
from experiments.sensors.claims import Claim
from experiments.sensors.points import Part, exact_point

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]


def test_a_surprise_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = Part(
        "p",
        "Heading",
        "words",
        (exact_point("f", "a", "n", 1, 1), exact_point("f", "a", "n", 2, 3)),
    )
    claims = [
        Claim("c", "f", "here", "it falls", "falls", "a", "holds", metric="value"),
        Claim("d", "f", "here", "at most 2", "within", "a", "holds", metric="value", high=2.0),
    ]

    def run(*, quick: bool) -> Part:
        return part

    def stub(self: Campaign, *, quick: bool) -> list[Any]:
        return claims

    monkeypatch.setattr(Campaign, "claims", stub)
    with pytest.raises(SystemExit) as stopped:
        Campaign("audit", "Title", "about", (run,)).main(["--quick", "--out", str(tmp_path)])
    assert stopped.value.code == 1
    said = capsys.readouterr().out
    assert "SURPRISE: c: does not hold, not holds: 1 [1, 1] to 3 [3, 3]" in said
    assert "SURPRISE: d: does not hold, not holds: 1 to 3 for n 1 to 2" in said
    claims[:] = [replace(claim, verdict="does not hold") for claim in claims]
    Campaign("audit", "Title", "about", (run,)).main(["--quick", "--out", str(tmp_path)])


@pytest.mark.parametrize("campaign", [AUDIT, GRAPHON, ONLINE], ids=lambda one: one.name)
def test_every_claim_says_where_it_stands(campaign: Campaign) -> None:
    path = ROOT / "experiments" / campaign.name / "expected.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["claim"]
    assert len({one["name"] for one in tables}) == len(tables)
    claims = campaign.claims(quick=False)
    assert len(claims) == len(tables) > len(campaign.claims(quick=True))
    assert all(claim.where and claim.text for claim in claims)
    assert {"|"}.isdisjoint("".join(claim.text + claim.note for claim in claims)), (
        "it would break a table"
    )
    assert all(claim.note for claim in claims if claim.verdict != "holds"), (
        "a disagreement is explained"
    )
