"""The graphon experiments run, write what they promise and find what expected.toml says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from experiments.graphon import report
from experiments.graphon.protocol import contrasted, definite, generator, mean_point, packed

from sfumato.graphon.cut_distance import definiteness

ROOT = Path(__file__).parents[2]


@pytest.mark.unit
def test_a_quick_run_is_what_is_expected(tmp_path: Path) -> None:
    report.CAMPAIGN.main(["--quick", "--out", str(tmp_path)])
    findings = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert len(findings) == len(report.CAMPAIGN.claims(quick=True)) > 12
    decided = [one for one in findings if one["verdict"] != "undecided"]
    assert all(one["verdict"] == one["expected"] for one in decided)
    assert len(decided) > 10, "few networks decide few claims"
    assert {"holds", "does not hold"} <= {one["verdict"] for one in decided}
    for picture in ("errors", "phase"):
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "points.csv").read_text(encoding="utf-8").startswith("figure,series,metric")
    assert "data:image/png" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.unit
def test_the_models_are_what_they_say() -> None:
    rng = generator("models")
    assert np.unique(contrasted(5, 0.4, rng).matrix) == pytest.approx([0.08, 0.4])
    # n = 100, k = 5, rho = 0.25: eta = 0.1, so chances are 0.25 (1/2 +- 0.025).
    assert np.unique(packed(100, 5, 0.25, rng).matrix) == pytest.approx([0.11875, 0.13125])
    assert definiteness(definite(4, rng)) == 1
    assert mean_point("f", "s", "x", 1.0, [1.0, 3.0]).middle == 2
    assert generator("a").random() == generator("a").random() != generator("b").random()
