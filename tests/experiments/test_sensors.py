"""The sensor experiments run, write what they promise and find what expected.toml says; and they can fail."""

from __future__ import annotations

import csv
import json
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from experiments.sensors import delta, many, network, report
from experiments.sensors.claims import Claim, Kind, decide, read_claims, verdicts
from experiments.sensors.points import Part, Point, exact_point, markdown, mean, points, share, table
from experiments.sensors.protocol import METHODS, Draw, Setting, generator, noise_of, place_sources, run_panel

from sfumato.sensing import heat_line
from sfumato.spaces import Line

ROOT = Path(__file__).parents[2]


def draw(trial: int, status: str, emd: float, *, series: str = "a") -> Draw:
    return Draw("f", series, "m", 5.0, trial, 0.1, status, emd, 2 * emd, 0.25)


def row(x: float, value: float, *, series: str = "a", half: float = 0.0) -> Point:
    return Point("f", series, "emd", "m", x, value, value - half, value + half, 10)


@pytest.mark.unit
def test_a_quick_run_is_what_the_papers_say(tmp_path: Path) -> None:
    report.main(["--quick", "--out", str(tmp_path), "--page", str(tmp_path / "page.md")])
    draws = list(csv.DictReader((tmp_path / "draws.csv").read_text(encoding="utf-8").splitlines()))
    assert {one["status"] for one in draws} <= {"optimal", "infeasible", "zero"}, "a draw was not solved"
    findings = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert len(findings) == len(read_claims(quick=True)) > 10
    assert all(one["held"] == one["agrees"] for one in findings)
    for picture in ("3a", "4a", "5a", "6a", "g-epsilon", "network", "figure1-papers"):
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "data:image/png" in html
    assert "does not hold" in html
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith("# The sensor experiments again")
    assert "**does not hold**" in page


@pytest.mark.unit
@pytest.mark.parametrize(
    ("kind", "values", "held", "limits"),
    [
        ("slope", [8.0, 4.0, 2.0], True, (-1.01, -0.99)),
        ("slope", [8.0, 4.0, 2.0], False, (-0.9, 0)),
        ("within", [0.5, 0.6, 0.7], True, (0.5, 0.7)),
        ("within", [0.5, 0.6, 0.7], False, (0.5, 0.69)),
        ("spread", [1.0, 1.2, 0.8], True, (0, 1.51)),
        ("spread", [1.0, 1.2, 0.8], False, (0, 1.49)),
        ("rises", [1.0, 0.5, 1.3], True, (0, 0)),
        ("rises", [1.0, 5.0, 1.15], False, (0, 0)),
        ("falls", [1.0, 5.0, 0.7], True, (0, 0)),
        ("falls", [1.0, 0.1, 0.85], False, (0, 0)),
        ("peak", [1.0, 2.0, 1.5], True, (0, 0)),
        ("peak", [1.0, 2.0, 1.85], False, (0, 0)),
        ("peak", [1.0, 2.0, 3.0], False, (0, 0)),
        ("valley", [2.0, 1.0, 1.5], True, (0, 0)),
        ("valley", [2.0, 1.0, 1.15], False, (0, 0)),
        ("below", [1.0, 2.0, 4.0], True, (0, 0.5)),
        ("below", [1.0, 2.0, 4.2], False, (0, 0.5)),
    ],
)
def test_claims_are_decided_by_their_points(
    kind: Kind, values: list[float], held: bool, limits: tuple[float, float]
) -> None:
    """Half-widths are 0.1, and the other series is 2, 4, 8."""
    some = [row(2.0**at, value, half=0.1) for at, value in enumerate(values)]
    some += [row(2.0**at, 2.0 ** (at + 1), series="b") for at in range(3)]
    claim = Claim("c", "f", "here", "text", kind, "a", held, than="b", low=limits[0], high=limits[1])
    found = decide(claim, some)
    assert found.held is held
    assert found.expected
    assert found.measured
    assert decide(Claim("c", "f", "here", "text", kind, "a", not held, than="b", low=limits[0],
                        high=limits[1]), some).expected is False  # fmt: skip


@pytest.mark.unit
def test_a_claim_on_nothing_is_not_decided() -> None:
    with pytest.raises(SystemExit, match="was not decided"):
        decide(Claim("c", "elsewhere", "here", "text", "rises", "a", True), [row(1, 1)])
    with pytest.raises(SystemExit, match="was not decided"):
        decide(
            Claim("c", "f", "here", "text", "below", "a", True, than="b"), [row(1, 1), row(2, 1, series="b")]
        )


@pytest.mark.unit
def test_a_surprise_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = Part("p", "Heading", "words", (row(1, 1), row(2, 3)), draws=(draw(0, "optimal", 1.0),))
    claim = Claim("c", "f", "here", "it falls", "falls", "a", True)
    monkeypatch.setattr(report, "PARTS", (lambda *, quick: part,))
    monkeypatch.setattr(report, "read_claims", lambda *, quick: [claim])
    with pytest.raises(SystemExit) as stopped:
        report.main(["--quick", "--out", str(tmp_path)])
    assert stopped.value.code == 1
    assert "SURPRISE: c was expected to hold: 1 [1, 1] to 3 [3, 3]" in capsys.readouterr().out


@pytest.mark.unit
def test_every_claim_says_where_it_stands() -> None:
    tables = tomllib.loads((ROOT / "experiments/sensors/expected.toml").read_text(encoding="utf-8"))["claim"]
    assert len({one["name"] for one in tables}) == len(tables)
    claims = read_claims(quick=False)
    assert len(claims) == len(tables)
    assert all(claim.where and claim.text for claim in claims)
    assert all(claim.note for claim in claims if not claim.agrees), "a disagreement is explained"
    assert all(claim.than for claim in claims if claim.kind == "below")
    assert {"|"}.isdisjoint("".join(claim.text + claim.note for claim in claims)), "it would break a table"


@pytest.mark.unit
def test_draws_without_an_answer_are_counted() -> None:
    """Two of four answered, with EMD 0.1 and 0.3; the others count as 0.25 in `filled`."""
    draws = [draw(0, "optimal", 0.1), draw(1, "optimal", 0.3), draw(2, "zero", math.nan),
             draw(3, "infeasible", math.nan)]  # fmt: skip
    found = {point.metric: point for point in points(draws)}
    assert found["answered"].middle == 0.5
    assert found["emd"].middle == pytest.approx(0.2)
    assert found["emd"].count == 2
    assert found["l1"].middle == pytest.approx(0.4)
    assert found["filled"].middle == pytest.approx(0.225)
    assert found["filled"].count == 4
    assert table(points(draws), "f")[1][1].endswith("(50%)")
    assert table(points([draw(0, "zero", math.nan)]), "f")[1][1] == "none (0%)"


@pytest.mark.unit
def test_intervals_by_hand() -> None:
    """Student's 0.975 quantile with 1 degree of freedom is tan(0.475 pi); 0 of 4 has 1 - 0.025**(1/4)."""
    middle, low, high = mean(np.array([1.0, 3.0]))
    assert (middle, high - middle) == pytest.approx((2.0, math.tan(0.475 * math.pi)))
    assert middle - low == pytest.approx(high - middle)
    assert mean(np.array([4.0])) == (4.0, 4.0, 4.0)
    assert share(0, 4) == pytest.approx((0.0, 0.0, 1 - 0.025**0.25))


@pytest.mark.unit
def test_one_source_is_in_the_middle_and_more_are_anywhere() -> None:
    line = Line(100)
    assert line.positions[np.flatnonzero(place_sources(line, 1, generator("t")))] == pytest.approx([0.5])
    many_sources = place_sources(line, 7, generator("t"))
    assert many_sources.sum() == 7
    assert many_sources.max() == 1


@pytest.mark.unit
def test_a_panel_can_be_had_again_and_is_paired() -> None:
    base = Setting(sigma=0.1)
    one, other = (run_panel("f", base, "sigma", (0.1, 0.2), 3) for _ in range(2))
    assert [str(d) for d in one] == [str(d) for d in other]  # nan is not nan, but it is written so
    assert len(one) == 2 * 3 * 2, "with the noise given there are two methods"
    private = Setting()
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    papers, mixed, ours = (noise_of(private, line, method) for method in METHODS)
    assert mixed == ours
    assert papers / ours == pytest.approx(4.652, abs=0.001)  # epsilon 1, delta 0.1: docs/errata.md has others


@pytest.mark.unit
def test_sensors_needed_are_the_fewest_with_a_small_error() -> None:
    here = tuple(row(x, value, half=0.02) for x, value in ((2, 0.2), (4, 0.11), (8, 0.09), (16, 0.05)))
    found = many.needed(here, 3, "a")
    assert (found.x, found.middle, found.low, found.high) == (3, 8, 4, 16)
    never = many.needed((row(2, 0.5), row(4, 0.4)), 3, "a")
    assert never.middle == 4, "not within what was tried"


@pytest.mark.unit
def test_closed_forms_of_table_2() -> None:
    """Star graph, n = 8, rate 0.5: printed 0.2804, true 0.3157."""
    printed, corrected = delta.forms("star", 8, 0.5)
    assert (printed, corrected) == pytest.approx((0.2804, 0.3157), abs=5e-5)
    found, _ = delta.closed_forms((5,))
    ratios = {(p.figure, p.series): p.middle for p in found}
    for name in ("complete", "star"):
        # 1e-9: what a rounded-up sensitivity and a Chebyshev series of 1e-17 lose, with room
        assert ratios[f"table2 {name}", "corrected over computed"] == pytest.approx(1, abs=1e-9)


@pytest.mark.unit
def test_the_best_guess_is_by_likelihood() -> None:
    columns = np.eye(4)
    labels = np.array([0, 0, 1, 1])
    assert network.best_guess(columns, np.array([0.0, 0.9, 0.2, 0.1]), 0.1, labels) == 0
    assert network.best_guess(columns, np.array([0.4, 0.4, 0.0, 0.9]), 0.1, labels) == 1
    # Sums decide, not the best node: at large noise two fair fits beat one good one.
    assert network.best_guess(columns, np.array([0.45, 0.45, -0.9, 0.5]), 1.0, labels) == 0


@pytest.mark.unit
def test_tables_of_a_page() -> None:
    claim = Claim("c", "f", "sec. 1", "it rises", "rises", "a", False, note="It does not")
    found = decide(claim, [exact_point("f", "a", "m", 1, 2), row(1, 2), row(2, 1)])
    shown = markdown(verdicts([found]))
    assert shown.splitlines()[1] == "|---|---|---|---|"
    assert (
        "| it rises | sec. 1 | **does not hold** | 2 [2, 2] to 1 [1, 1] for m 1 to 2. It does not |" in shown
    )
