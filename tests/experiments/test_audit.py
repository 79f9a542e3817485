"""The audit experiments run, write what they promise and find what expected.toml says; and they can fail."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from experiments.audit import level, queries, report
from experiments.audit.protocol import gaussian, generator, geometric, response, spread, worst
from experiments.sensors.points import exact_point

from sfumato.audit.catalogue.self_test import Catch
from sfumato.audit.property_testing.limits import boundary_pair
from sfumato.privacy.accounting import max_divergence

ROOT = Path(__file__).parents[2]


@pytest.mark.unit
def test_a_quick_run_is_what_is_expected(tmp_path: Path) -> None:
    report.CAMPAIGN.main(["--quick", "--out", str(tmp_path)])
    findings = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert len(findings) == len(report.CAMPAIGN.claims(quick=True)) > 25
    decided = [one for one in findings if one["verdict"] != "undecided"]
    assert all(one["verdict"] == one["expected"] for one in decided)
    assert len(decided) > 20, "few tests decide few claims"
    assert {"holds", "does not hold"} <= {one["verdict"] for one in decided}
    for picture in queries.TITLES:
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "points.csv").read_text(encoding="utf-8").startswith("figure,series,metric")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "data:image/png" in html
    assert "does not hold" in html


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


@pytest.mark.unit
def test_levels_are_measured_in_parts_that_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """120 audits are parts of 50, 50 and 20; the work itself is left out here and has no errors."""
    did: list[level.Part] = []

    def work(missing: list[level.Part], record: Path, **_: object) -> None:
        did.extend(missing)
        some = missing[:30]
        with record.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({"key": part.key, "errors": 0}) + "\n" for part in some)

    monkeypatch.setattr(level, "work", work)
    monkeypatch.setattr(level, "catch_all", lambda rng: [Catch("HalfNoise", True, 200)])
    given = ["--out", str(tmp_path), "--audits", "120", "--page", str(tmp_path / "page.md")]
    for left in (42, 12):
        level.main(given)
        assert f"{left} of 72 parts are left; run it again" in capsys.readouterr().out
    assert not (tmp_path / "page.md").exists()
    level.main(given)
    assert [len(did), len({part.key for part in did})] == [72 + 42 + 12, 72]
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| Laplace | fixed | 120 | 0 | 2.47% | 5% | yes |" in page  # 1 - 0.05**(1/120)
    assert "In all 0 of 2,880 audits were wrong." in page
    level.main(given)
    assert "72 of 72 parts are there" in capsys.readouterr().out


@pytest.mark.unit
def test_too_many_errors_fail_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"key": part.key, "errors": 25 * (part.mechanism == "RNM1")} for part in level.parts(50)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "level.jsonl").write_text(text, encoding="utf-8")
    monkeypatch.setattr(level, "work", lambda *_, **__: None)
    monkeypatch.setattr(level, "catch_all", lambda rng: [])
    with pytest.raises(SystemExit):
        level.main(["--out", str(tmp_path), "--audits", "50"])


@pytest.mark.unit
def test_a_part_is_run_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level, "errors", lambda known, test, audits, rng: audits - len(known.name))
    (part, *_) = level.parts(40)
    assert level.run(part).errors == 40 - len("Laplace")
    assert part.key == "Laplace fixed 0: 40 audits of 600 runs"
