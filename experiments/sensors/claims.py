"""What the papers say, as inequalities over measured points, and whether a run agrees."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, assert_never

import numpy as np
from experiments.sensors.intervals import (
    LEVEL,
    Interval,
    Trials,
    difference,
    fitted,
    floor,
    slope,
    trials_of,
    unpaired,
)
from experiments.sensors.points import Metric, Point, Table
from experiments.sensors.protocol import Draw

Kind = Literal["slope", "floor", "within", "rises", "falls", "peak", "valley", "below"]
Verdict = Literal["holds", "undecided", "not attained", "does not hold"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a paper (or ours against it), and the inequality that decides it.

    Of the points of `series` in `figure`, at `values` of the axis if some are named:
    "slope": the least-squares slope of log value against log x lies in [low, high];
    "floor": a + b / sqrt(x) has a above 0; undecided where it does not fit;
    "within": every value lies in [low, high];
    "rises", "falls": the last differs from the first;
    "peak", "valley": some point between lies above (below) both ends;
    "below": every value is at most `high` times that of the series `than`.

    It holds if 95 % intervals lie where it says, does not if one lies elsewhere, and else is
    undecided. Two points are compared on draws that both answered, draw by draw. Where one point of
    several is enough to decide (one above both ends, one where `than` is less), 5 % are shared
    among them.

    A bound O(.) is not contradicted by less: `slack` is the side of [low, high] on which a slope
    keeps it; where all of its interval lies there the bound is "not attained".
    """

    name: str
    figure: str
    where: str
    text: str
    kind: Kind
    series: str
    verdict: Verdict
    note: str = ""
    metric: Metric = "emd"
    than: str = ""
    values: tuple[float, ...] = ()
    low: float = 0.0
    high: float = math.inf
    slack: Literal["", "above", "below"] = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim after the run: the verdict, and the numbers that decided."""

    claim: Claim
    verdict: Verdict
    measured: str

    def expected(self, *, quick: bool) -> bool:
        """Whether the run found what expected.toml says; few draws may leave it undecided."""
        return self.verdict == self.claim.verdict or (quick and self.verdict == "undecided")


def read_claims(*, quick: bool) -> list[Claim]:
    """All claims of expected.toml; a quick run decides only those marked `quick`."""
    tables = tomllib.loads((Path(__file__).parent / "expected.toml").read_text("utf-8"))["claim"]
    return [Claim(**_fields(table)) for table in tables if table.get("quick", False) or not quick]


def _fields(table: dict[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in table.items()
        if key != "quick"
    }


def decide(claim: Claim, points: Sequence[Point], draws: Sequence[Draw] = ()) -> Finding:
    """Whether a claim held in these points; values that were not run are left out."""
    mine = _points(claim, points, claim.series)
    trials = _trials(claim, draws, claim.series)
    first, last = mine[0], mine[-1]
    span = (
        f"{first.axis} {first.x:g} to {last.x:g}" if len(mine) > 1 else f"{first.axis} {first.x:g}"
    )
    match claim.kind:
        case "slope":
            if not trials and any(point.low < point.high for point in mine):
                raise SystemExit(
                    f"the slope of claim {claim.name} has no draws; it was not decided"
                )
            logs, values = (
                np.log([point.x for point in mine]),
                np.array([point.middle for point in mine]),
            )
            exact = float(fitted(logs, values))
            found = (
                slope(trials, f"{claim.figure} {claim.series}")
                if trials
                else Interval(exact, exact, exact)
            )
            said = f"slope {found}" if trials else f"slope {exact:.3f}"
            return Finding(claim, _judge(claim, found), f"{said} for {span}")
        case "floor":
            found, fits = floor(trials)
            verdict = _sign(found, 1) if fits >= 1 - LEVEL else "undecided"
            said = f"a + b/√{first.axis} has a = {found}, and fits with p = {fits:.2g}"
            return Finding(claim, verdict, f"{said}, for {span}")
        case "within":
            answers = {
                _judge(claim, Interval(point.middle, point.low, point.high)) for point in mine
            }
            return Finding(claim, _all(answers), f"{_range(mine)} for {span}")
        case "rises" | "falls":
            apart, told = _apart(last, first, trials)
            verdict = _sign(apart, 1 if claim.kind == "rises" else -1)
            return Finding(claim, verdict, f"{_said(first)} to {_said(last)}{told} for {span}")
        case "peak" | "valley":
            return _turn(claim, mine, trials, span)
        case "below":
            others = _trials(claim, draws, claim.than)
            if trials or others:
                return _below(claim, mine, trials, others, span)
            return _below_unpaired(claim, mine, _points(claim, points, claim.than), span)
        case _:
            assert_never(claim.kind)


def _judge(claim: Claim, found: Interval) -> Verdict:
    """Where an interval lies: in [low, high], outside, or across an end."""
    if found.high < claim.low:
        return "not attained" if claim.slack == "below" else "does not hold"
    if found.low > claim.high:
        return "not attained" if claim.slack == "above" else "does not hold"
    inside = (claim.low <= found.low or claim.slack == "below") and (
        found.high <= claim.high or claim.slack == "above"
    )
    return "holds" if inside else "undecided"


def _all(answers: set[Verdict]) -> Verdict:
    """What holds of all if these hold of each."""
    if "does not hold" in answers:
        return "does not hold"
    return "holds" if answers == {"holds"} else "undecided"


def _sign(apart: Interval, sign: int) -> Verdict:
    """Whether a difference has this sign."""
    low, high = sorted((sign * apart.low, sign * apart.high))
    return "holds" if low > 0 else "does not hold" if high < 0 else "undecided"


def _apart(
    one: Point, other: Point, trials: Mapping[float, Trials], level: float = LEVEL
) -> tuple[Interval, str]:
    """The difference of two points, draw by draw where there are draws, and how it was found."""
    if not trials:
        return unpaired(one, other), ""
    apart, count = difference(trials[one.x], trials[other.x], level=level)
    return (
        apart,
        f", paired {apart.middle:+.3g} [{apart.low:+.3g}, {apart.high:+.3g}] on {count} draws,",
    )


def _turn(
    claim: Claim, mine: Sequence[Point], trials: Mapping[float, Trials], span: str
) -> Finding:
    """Whether some point between is above (below) both ends, by the one that is farthest from the nearer."""
    first, last = mine[0], mine[-1]
    sign = 1 if claim.kind == "peak" else -1
    between = mine[1:-1]
    if not between:
        raise SystemExit(f"claim {claim.name} has no points between its ends; it was not decided")
    level = 1 - (1 - LEVEL) / len(between)
    answers: dict[Point, set[Verdict]] = {
        point: {_sign(_apart(point, end, trials, level)[0], sign) for end in (first, last)}
        for point in between
    }
    top = max(between, key=lambda point: (answers[point] == {"holds"}, sign * point.middle))
    verdict: Verdict = "undecided"
    if answers[top] == {"holds"}:
        verdict = "holds"
    elif all("does not hold" in found for found in answers.values()):
        verdict = "does not hold"
    said = f"{_said(first)}, then {_said(top)} at {top.x:g}, then {_said(last)}; {span}"
    return Finding(claim, verdict, said)


def _below(
    claim: Claim,
    mine: Sequence[Point],
    trials: Mapping[float, Trials],
    others: Mapping[float, Trials],
    span: str,
) -> Finding:
    """Whether one series is at most `high` times another, on the draws that both answered."""
    shared = [point.x for point in mine if trials.get(point.x) and others.get(point.x)]
    shared = [x for x in shared if trials[x].keys() & others[x].keys()]
    if not shared:
        raise SystemExit(f"claim {claim.name} compares nothing that was run; it was not decided")
    level = 1 - (1 - LEVEL) / len(shared)
    ratios: list[float] = []
    answers: set[Verdict] = set()
    more: list[str] = []
    for x in shared:
        both = trials[x].keys() & others[x].keys()
        ratios.append(sum(trials[x][t] for t in both) / sum(others[x][t] for t in both))
        apart, _ = difference(trials[x], others[x], share=claim.high)
        sure, _ = difference(trials[x], others[x], share=claim.high, level=level)
        answers.add("holds" if apart.high < 0 else "does not hold" if sure.low > 0 else "undecided")
        if sure.low > 0:
            more.append(f"{x:g}")
    said = f"paired ratio {min(ratios):.3g} to {max(ratios):.3g} for {span}"
    if more:
        said += f", above {claim.high:g} by more than chance at {mine[0].axis} {', '.join(more)}"
    return Finding(claim, _all(answers), said)


def _below_unpaired(
    claim: Claim, mine: Sequence[Point], others: Sequence[Point], span: str
) -> Finding:
    """Whether one series is at most `high` times another, by their intervals: nothing was drawn of either."""
    at = {point.x: point for point in others}
    both = [(point, at[point.x]) for point in mine if point.x in at]
    if not both:
        raise SystemExit(f"claim {claim.name} compares nothing that was run; it was not decided")
    answers: set[Verdict] = {
        "holds"
        if one.high <= claim.high * other.low
        else "does not hold"
        if one.low > claim.high * other.high
        else "undecided"
        for one, other in both
    }
    ratios = [one.middle / other.middle for one, other in both]
    return Finding(claim, _all(answers), f"ratio {min(ratios):.3g} to {max(ratios):.3g} for {span}")


def _points(claim: Claim, points: Sequence[Point], series: str) -> list[Point]:
    some = [
        point
        for point in points
        if (point.figure, point.series, point.metric) == (claim.figure, series, claim.metric)
        and (not claim.values or point.x in claim.values)
    ]
    if not some:
        raise SystemExit(f"nothing of what claim {claim.name} is about was run; it was not decided")
    return sorted(some, key=lambda point: point.x)


def _trials(claim: Claim, draws: Sequence[Draw], series: str) -> dict[float, dict[int, float]]:
    found = trials_of(draws, claim.figure, series, claim.metric) if series else {}
    return {
        x: some for x, some in found.items() if some and (not claim.values or x in claim.values)
    }


def _range(mine: Sequence[Point]) -> str:
    """The values, and how far their intervals reach together."""
    low, high = (min(p.middle for p in mine), max(p.middle for p in mine))
    said = f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"
    if all(point.low == point.high for point in mine):
        return said
    return f"{said} [{min(p.low for p in mine):.3g}, {max(p.high for p in mine):.3g}]"


def _said(point: Point) -> str:
    return f"{point.middle:.3g} [{point.low:.3g}, {point.high:.3g}]"


def verdicts(findings: Sequence[Finding]) -> Table:
    """The claims, whether they held, what was measured, and our note."""
    rows = [["claim", "place", "here", "measured, and our note"]]
    for finding in findings:
        claim = finding.claim
        answer = "**does not hold**" if finding.verdict == "does not hold" else finding.verdict
        remark = ". ".join(part for part in (finding.measured, claim.note) if part)
        rows.append([claim.text, claim.where, answer, remark])
    return rows


def as_json(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """Findings as plain values, for a file."""
    return [
        {
            "name": finding.claim.name,
            "figure": finding.claim.figure,
            "where": finding.claim.where,
            "text": finding.claim.text,
            "verdict": finding.verdict,
            "expected": finding.claim.verdict,
            "measured": finding.measured,
            "claim": {
                key: value
                for key, value in asdict(finding.claim).items()
                if value not in (math.inf, -math.inf)
            },
        }
        for finding in findings
    ]
