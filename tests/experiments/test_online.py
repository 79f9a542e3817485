"""The online experiments run, write what they promise and find what expected.toml says; and they can fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from experiments.online import regrets, report
from experiments.online.protocol import FloatArray, chosen, losses_of

from sfumato.online.chooser import Chooser
from sfumato.online.regrets import regret

ROOT = Path(__file__).parents[2]


@pytest.mark.unit
def test_a_quick_run_is_what_is_expected(tmp_path: Path) -> None:
    report.CAMPAIGN.main(["--quick", "--out", str(tmp_path)])
    findings = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert len(findings) == len(report.CAMPAIGN.claims(quick=True)) > 30
    # Nothing here is left to chance, so that a quick run decides as much as a full one.
    assert all(one["verdict"] == one["expected"] for one in findings)
    assert {"holds", "does not hold"} <= {one["verdict"] for one in findings}
    assert (tmp_path / "leader-killer.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "points.csv").read_text(encoding="utf-8").startswith("figure,series,metric")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "data:image/png" in html
    assert "does not hold" in html


@pytest.mark.unit
def test_sequences_are_the_same_in_every_run() -> None:
    once, again = losses_of("switching", 50), losses_of("switching", 50)
    assert (once == again).all()
    assert once.min() >= 0
    assert once.max() <= 1


@pytest.mark.unit
def test_the_mark_of_hedge_is_about_the_chooser_that_is_shipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    losses = losses_of("one good", 80)
    made, plays, bounds = chosen(losses)
    shipped = Chooser(range(losses.shape[1]))
    for row in losses:
        shipped.observe(row)
    assert made.to_dict() == shipped.to_dict()
    assert regret(losses, plays) == pytest.approx(shipped.regret, rel=1e-12)
    assert bounds[-1] == shipped.bound
    claim = next(one for one in report.CAMPAIGN.claims(quick=True) if one.name == "chooser-hedge")
    assert (claim.series, claim.than, claim.high) == ("chooser", "hedge", 1.1)

    def even(losses: FloatArray) -> tuple[Chooser[int], FloatArray, FloatArray]:
        """Who never learns loses more: the claim can fail."""
        return made, np.full_like(losses, 1 / losses.shape[1]), np.ones(len(losses))

    ours, mark = regrets.against_hedge("one good", 80)
    monkeypatch.setattr(regrets, "chosen", even)
    assert regrets.against_hedge("one good", 80)[0] > 1.1 * mark
    assert ours < regrets.against_hedge("one good", 80)[0]
