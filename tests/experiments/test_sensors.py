"""The sensor experiments run, write what they promise and find what expected.toml says; and they can fail."""

from __future__ import annotations

import csv
import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.sensors import delta, many, network, report
from experiments.sensors.claims import Claim, Kind, Verdict, decide, read_claims, verdicts
from experiments.sensors.intervals import slope
from experiments.sensors.papers_tables import rates, tables
from experiments.sensors.points import (
    Part,
    Point,
    exact_point,
    markdown,
    mean,
    points,
    share,
    table,
)
from experiments.sensors.protocol import (
    METHODS,
    OURS,
    PAPERS,
    Draw,
    Setting,
    generator,
    noise_of,
    place_sources,
    run_panel,
)
from scipy import stats

from sfumato.sensing import heat_line
from sfumato.spaces import Line

ROOT = Path(__file__).parents[2]


def draw(trial: int, status: str, emd: float, *, series: str = "a") -> Draw:
    return Draw("f", series, "m", 5.0, trial, 0.1, status, emd, 2 * emd, 0.25)


def row(x: float, value: float, *, series: str = "a", half: float = 0.0) -> Point:
    return Point("f", series, "emd", "m", x, value, value - half, value + half, 10)


@pytest.mark.unit
def test_a_quick_run_is_what_the_papers_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report.main(["--quick", "--out", str(tmp_path), "--page", str(tmp_path / "page.md")])
    draws = list(csv.DictReader((tmp_path / "draws.csv").read_text(encoding="utf-8").splitlines()))
    assert {one["status"] for one in draws} <= {"optimal", "infeasible", "zero"}, (
        "a draw was not solved"
    )
    findings = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert len(findings) == len(read_claims(quick=True)) > 30
    decided = [one for one in findings if one["verdict"] != "undecided"]
    assert all(one["verdict"] == one["expected"] for one in decided)
    assert len(decided) > 20, "few draws decide few claims"
    assert {"holds", "not attained", "does not hold"} == {one["verdict"] for one in decided}
    for picture in ("3a", "4a", "5a", "6a", "g-epsilon", "network", "figure1-papers"):
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "data:image/png" in html
    assert "does not hold" in html
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith("# The sensor experiments again")
    assert "**does not hold**" in page
    assert "\n## Bounds that are kept and not attained\n\n- private: O(" in page
    said = capsys.readouterr().out
    for panel_ in (
        "600 of coverage",
        "40 of 2a",
        "120 of 3a",
        "360 of 6c",
        "180 of 5a",
        "12 of g-epsilon",
    ):
        assert f"0 of {panel_}" in said


@pytest.mark.unit
@pytest.mark.parametrize(
    ("kind", "values", "limits", "verdict"),
    [
        ("within", [0.5, 0.6, 0.7], (0.39, 0.81), "holds"),
        ("within", [0.5, 0.6, 0.7], (0.39, 0.75), "undecided"),
        ("within", [0.5, 0.6, 0.7], (0.39, 0.59), "does not hold"),
        ("rises", [1.0, 0.5, 1.3], (0, 0), "holds"),
        ("rises", [1.0, 5.0, 1.15], (0, 0), "undecided"),
        ("rises", [1.0, 5.0, 0.7], (0, 0), "does not hold"),
        ("falls", [1.0, 5.0, 0.7], (0, 0), "holds"),
        ("falls", [1.0, 0.1, 0.85], (0, 0), "undecided"),
        ("falls", [1.0, 0.1, 1.3], (0, 0), "does not hold"),
        ("peak", [1.0, 2.0, 1.5], (0, 0), "holds"),
        ("peak", [1.0, 2.0, 1.85], (0, 0), "undecided"),
        ("peak", [1.0, 2.0, 3.0], (0, 0), "does not hold"),
        ("valley", [2.0, 1.0, 1.5], (0, 0), "holds"),
        ("valley", [2.0, 1.0, 1.15], (0, 0), "undecided"),
        ("valley", [2.0, 1.0, 0.5], (0, 0), "does not hold"),
    ],
)
def test_claims_are_decided_by_intervals(
    kind: Kind, values: list[float], limits: tuple[float, float], verdict: Verdict
) -> None:
    """Half-widths are 0.1, and without draws to pair two points differ if their intervals are apart."""
    some = [row(2.0**at, value, half=0.1) for at, value in enumerate(values)]
    found = decide(
        Claim("c", "f", "here", "text", kind, "a", verdict, low=limits[0], high=limits[1]), some
    )
    assert found.verdict == verdict
    assert found.expected(quick=False)
    assert found.measured
    for other in ("holds", "undecided", "does not hold"):
        mine = replace(found, claim=replace(found.claim, verdict=other))
        assert mine.expected(quick=False) == (other == verdict)
        assert mine.expected(quick=True) == (verdict in (other, "undecided"))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("limits", "slack", "verdict"),
    [
        ((-1.01, -0.99), "", "holds"),
        ((-0.9, 0), "", "does not hold"),
        ((-0.9, 0), "below", "not attained"),
        ((-2, -1.1), "", "does not hold"),
        ((-2, -1.1), "above", "not attained"),
        ((-2, -1.1), "below", "does not hold"),
    ],
)
def test_slopes_of_what_was_computed(
    limits: tuple[float, float], slack: str, verdict: Verdict
) -> None:
    """A bound is kept by what grows less: that is not the same as a rate that is refuted."""
    some = [exact_point("f", "a", "m", x, 8 / x) for x in (1, 2, 4)]
    claim = Claim("c", "f", "here", "text", "slope", "a", verdict, metric="value", low=limits[0],
                  high=limits[1], slack=slack)  # type: ignore[arg-type]  # fmt: skip
    assert decide(claim, some).verdict == verdict
    with pytest.raises(SystemExit, match="no draws"):
        decide(replace(claim, metric="emd"), [row(1, 8, half=1), row(2, 4, half=1)])


def panel(means: dict[float, float], *, spread: float, own: float, series: str = "a") -> list[Draw]:
    """40 draws of each point that share noise of one size and have some of their own, without any chance."""
    quantiles = stats.norm.ppf((np.arange(40) + 0.5) / 40)
    return [
        Draw("f", series, "m", x, trial, 0.1, "optimal", value + spread * quantiles[trial]
             + own * quantiles[(7 * trial + 11 * at) % 40], 0.0, 0.25)
        for at, (x, value) in enumerate(means.items())
        for trial in range(40)
    ]  # fmt: skip


@pytest.mark.unit
def test_points_that_share_their_noise_are_compared_draw_by_draw() -> None:
    """Means 1 and 1.1, each known to 0.16 only: their intervals overlap, and yet every draw rises."""
    draws = panel({1: 1.0, 2: 1.1}, spread=0.5, own=0.05)
    found = points(draws)
    ends = {p.x: p for p in found if p.metric == "emd"}
    assert ends[1].high > ends[2].low
    claim = Claim("c", "f", "here", "text", "rises", "a", "holds")
    assert decide(claim, found, draws).verdict == "holds"
    assert decide(replace(claim, kind="falls"), found, draws).verdict == "does not hold"
    assert decide(claim, found).verdict == "undecided", "without the draws it cannot be told"
    assert "on 40 draws" in decide(claim, found, draws).measured
    loose = panel({1: 1.0, 2: 1.1}, spread=0.0, own=0.5)
    assert decide(claim, points(loose), loose).verdict == "undecided"


@pytest.mark.unit
def test_a_turn_must_be_told_from_both_ends() -> None:
    claim = Claim("c", "f", "here", "text", "valley", "a", "holds")
    draws = panel({1: 1.1, 2: 1.0, 3: 1.1}, spread=0.5, own=0.05)
    assert decide(claim, points(draws), draws).verdict == "holds"
    assert decide(replace(claim, kind="peak"), points(draws), draws).verdict == "does not hold"
    with pytest.raises(SystemExit, match="no points between"):
        decide(replace(claim, values=(1.0, 3.0)), points(draws), draws)


@pytest.mark.unit
def test_slopes_have_intervals() -> None:
    """Means fall as 1/x; with noise on each a slope of -1 is found, and its neighborhood cannot be told."""
    draws = panel({1: 8.0, 2: 4.0, 4: 2.0}, spread=0.0, own=0.8)
    claim = Claim("c", "f", "here", "text", "slope", "a", "holds", low=-1.5, high=-0.5)
    assert decide(claim, points(draws), draws).verdict == "holds"
    assert decide(replace(claim, high=-1.0), points(draws), draws).verdict == "undecided"
    assert (
        decide(replace(claim, low=-0.5, high=0.0), points(draws), draws).verdict == "does not hold"
    )
    bound = replace(claim, low=-0.5, high=0.0, slack="below")
    assert decide(bound, points(draws), draws).verdict == "not attained"
    assert decide(replace(bound, low=-1.0), points(draws), draws).verdict == "holds"
    assert decide(replace(bound, low=-3.0, high=-1.0), points(draws), draws).verdict == "undecided"
    assert (
        decide(replace(bound, low=-3.0, high=-2.0), points(draws), draws).verdict == "does not hold"
    )


@pytest.mark.unit
def test_the_interval_of_a_slope_holds_it_as_often_as_it_says() -> None:
    """Of 100 panels with half of their noise shared, 95 hold the slope; 85 or fewer have a chance of 2e-4."""
    hits = 0
    for number in range(100):
        rng = generator("slope test", number)
        shared = rng.standard_normal(60)
        values = {
            x: dict(enumerate(mean_ + 0.3 * mean_ * (shared + rng.standard_normal(60))))
            for x, mean_ in ((1.0, 4.0), (2.0, 2.0), (4.0, 1.0))
        }
        found = slope(values, str(number))
        hits += found.low <= -1 <= found.high
    assert 85 < hits < 100


@pytest.mark.unit
def test_a_floor_is_fitted() -> None:
    claim = Claim("c", "f", "here", "text", "floor", "a", "holds")
    for floor_, curve, verdict in ((0.5, 0.5, "holds"), (0.0, 0.5, "undecided"), (-0.5, 0.5, "does not hold"),
                                   (0.5, 2.0, "undecided")):  # fmt: skip
        means = {x: floor_ + 4 * x**-curve for x in (1.0, 4.0, 16.0, 64.0)}
        draws = panel(means, spread=0.0, own=0.1)
        assert decide(claim, points(draws), draws).verdict == verdict, (floor_, curve)
    two = panel({1: 4.5, 4: 2.5}, spread=0.0, own=0.1)
    assert decide(claim, points(two), two).verdict == "undecided"


@pytest.mark.unit
def test_two_series_are_compared_on_what_both_answer() -> None:
    """The second answers only draws with little noise: compared with all of the first it looks better."""
    ours = panel({1: 1.0, 2: 1.0}, spread=0.5, own=0.01)
    theirs = [
        replace(
            one, series="b", emd=1.2 * one.emd, status="optimal" if one.emd < 1 else "infeasible"
        )
        for one in ours
    ]
    draws = ours + theirs
    found = points(draws)
    middle = {(p.series, p.x): p.middle for p in found if p.metric == "emd"}
    assert middle["a", 1] > middle["b", 1]
    claim = Claim("c", "f", "here", "text", "below", "a", "holds", than="b", high=1)
    answer = decide(claim, found, draws)
    assert (answer.verdict, answer.measured) == (
        "holds",
        "paired ratio 0.833 to 0.833 for m 1 to 2",
    )
    worse = decide(replace(claim, high=0.8), found, draws)
    assert worse.verdict == "does not hold"
    assert worse.measured.endswith("above 0.8 by more than chance at m 1, 2")
    assert decide(replace(claim, high=0.833), found, draws).verdict == "does not hold"
    noisy = ours + panel({1: 1.0, 2: 1.0}, spread=0.0, own=0.5, series="b")
    assert decide(claim, points(noisy), noisy).verdict == "undecided"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("high", "half", "verdict"),
    [(0.5, 0.0, "holds"), (0.49, 0.0, "does not hold"), (0.6, 0.02, "holds"), (0.5, 0.02, "undecided"),
     (0.4, 0.02, "does not hold")],
)  # fmt: skip
def test_two_series_without_draws_are_compared_by_their_intervals(
    high: float, half: float, verdict: Verdict
) -> None:
    """One is half of the other everywhere, also where only one of them was run."""
    some = [row(x, 2.0, series="b", half=half) for x in (1, 2, 4)] + [
        row(x, 1.0, half=half) for x in (1, 2)
    ]
    claim = Claim("c", "f", "here", "text", "below", "a", verdict, than="b", high=high)
    found = decide(claim, some)
    assert (found.verdict, found.measured) == (verdict, "ratio 0.5 to 0.5 for m 1 to 2")


@pytest.mark.unit
def test_a_claim_on_nothing_is_not_decided() -> None:
    with pytest.raises(SystemExit, match="was not decided"):
        decide(Claim("c", "elsewhere", "here", "text", "rises", "a", "holds"), [row(1, 1)])
    with pytest.raises(SystemExit, match="was not decided"):
        decide(
            Claim("c", "f", "here", "text", "below", "a", "holds", than="b"),
            [row(1, 1), row(2, 1, series="b")],
        )


@pytest.mark.unit
def test_a_surprise_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = Part(
        "p",
        "Heading",
        "words",
        (row(1, 1), row(2, 3)),
        draws=(draw(0, "optimal", 1.0, series="b"),),
    )
    claim = Claim("c", "f", "here", "it falls", "falls", "a", "holds")
    monkeypatch.setattr(report, "PARTS", (lambda *, quick: part,))
    monkeypatch.setattr(report, "read_claims", lambda *, quick: [claim])
    with pytest.raises(SystemExit) as stopped:
        report.main(["--quick", "--out", str(tmp_path)])
    assert stopped.value.code == 1
    said = capsys.readouterr().out
    assert "SURPRISE: c: does not hold, not holds: 1 [1, 1] to 3 [3, 3]" in said


@pytest.mark.unit
@pytest.mark.parametrize(("failed", "fails"), [(0, False), (1, False), (2, True)])
def test_a_solver_that_fails_too_often_fails_the_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failed: int,
    fails: bool,
) -> None:
    """One of 200 is as much as may be."""
    draws = tuple(draw(at, "failed" if at < failed else "optimal", 1.0) for at in range(200))
    part = Part("p", "Heading", "words", points(draws), draws=draws, unsolved=(("other", 0, 7),))
    monkeypatch.setattr(report, "PARTS", (lambda *, quick: part,))
    monkeypatch.setattr(report, "read_claims", lambda *, quick: [])
    page = tmp_path / "page.md"
    given = ["--quick", "--out", str(tmp_path), "--page", str(page)]
    if fails:
        with pytest.raises(SystemExit):
            report.main(given)
    else:
        report.main(given)
    said = capsys.readouterr().out
    assert f"p: not proven: {failed} of 200 of f, 0 of 7 of other" in said
    assert ("SOLVER: 2 of 200 recoveries of f" in said) == fails
    assert f"Of 207 recoveries {failed} ended without a proven answer" in page.read_text(
        encoding="utf-8"
    )


@pytest.mark.unit
def test_every_claim_says_where_it_stands() -> None:
    tables = tomllib.loads(
        (ROOT / "experiments/sensors/expected.toml").read_text(encoding="utf-8")
    )["claim"]
    assert len({one["name"] for one in tables}) == len(tables)
    claims = read_claims(quick=False)
    assert len(claims) == len(tables)
    assert all(claim.where and claim.text for claim in claims)
    assert all(claim.note for claim in claims if claim.verdict != "holds"), (
        "a disagreement is explained"
    )
    assert all(claim.slack for claim in claims if claim.verdict == "not attained")
    assert all(claim.than for claim in claims if claim.kind == "below")
    assert {"|"}.isdisjoint("".join(claim.text + claim.note for claim in claims)), (
        "it would break a table"
    )


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
    assert line.positions[np.flatnonzero(place_sources(line, 1, generator("t")))] == pytest.approx(
        [0.5]
    )
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
    assert papers / ours == pytest.approx(
        4.652, abs=0.001
    )  # epsilon 1, delta 0.1: docs/errata.md has others


@pytest.mark.unit
def test_sensors_needed_are_the_fewest_with_a_small_error() -> None:
    here = tuple(
        row(x, value, half=0.02) for x, value in ((2, 0.2), (4, 0.11), (8, 0.09), (16, 0.05))
    )
    found = many.needed(here, 3, "a")
    assert (found.x, found.middle, found.low, found.high) == (3, 8, 4, 16)
    never = many.needed((row(2, 0.5), row(4, 0.4)), 3, "a")
    assert never.middle == 4, "not within what was tried"


@pytest.mark.unit
def test_closed_forms_of_table_2() -> None:
    """Star graph, n = 8, rate 0.5: printed 0.2804, true 0.3157."""
    printed, corrected = delta.forms("star", 8, 0.5)
    assert (printed, corrected) == pytest.approx((0.2804, 0.3157), abs=5e-5)
    found, shown = delta.closed_forms((5,))
    ratios = {(p.figure, p.series): p.middle for p in found}
    for name in ("complete", "star"):
        # 1e-9: what a rounded-up sensitivity and a Chebyshev series of 1e-17 lose, with room
        assert ratios[f"table2 {name}", "corrected over computed"] == pytest.approx(1, abs=1e-9)
    complete, star = ({name: row[shown[0].index(name)] for name in shown[0]} for row in shown[1:])
    # One eigenvalue is all there is on a complete graph, so that the lemma's sum is the truth.
    assert complete[delta.SUM] == complete["computed"]
    assert float(star[delta.SUM]) > float(star["computed"])


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
    claim = Claim("c", "f", "sec. 1", "it rises", "rises", "a", "does not hold", note="It does not")
    found = decide(claim, [exact_point("f", "a", "m", 1, 2), row(1, 2), row(2, 1)])
    shown = markdown(verdicts([found]))
    assert shown.splitlines()[1] == "|---|---|---|---|"
    assert (
        "| it rises | sec. 1 | **does not hold** | 2 [2, 2] to 1 [1, 1] for m 1 to 2. It does not |"
        in shown
    )


@pytest.mark.unit
def test_the_papers_tables_say_what_follows_from_the_proof() -> None:
    rows = {(row.table, row.variable): row for row in tables()}
    assert len(rows) == len(tables()) == 7
    assert "sqrt(sigma)" in rows["noisy", "sigma"].follows
    assert "T^-3/4" in rows["private", "T"].follows


@pytest.mark.unit
def test_the_abstracts_second_table_stands_beside_what_was_measured() -> None:
    """[gilbertheat17, table II], whose row of m is another than that of the papers' table 1."""
    panels = {"n": ("6a", -0.5), "m": ("6b", 0.0), "T": ("6c", -0.75)}
    found = tuple(
        Point(figure, series, "emd", variable, x, x**slope, x**slope, x**slope, 1)
        for variable, (figure, slope) in panels.items()
        for series in (PAPERS, OURS)
        for x in (1.0, 10.0, 100.0)
    )
    shown = rates(found, "private", {name: figure for name, (figure, _) in panels.items()})
    assert [row[:3] for row in shown[1:3]] == [
        ["n", "O(1 + 1/sqrt(n))", "O(1 + 1/sqrt(n))"],
        ["m", "O(1)", "O(sqrt(m))"],
    ]
    assert shown[3][2].startswith("O(1/t + sqrt(t)")
    assert [row[-1] for row in shown[1:]] == ["-0.50", "0.00", "-0.75 below T = 100, - above"]
