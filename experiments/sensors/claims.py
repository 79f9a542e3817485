"""What the papers say, as inequalities over measured points, and whether a run agrees."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, assert_never

import numpy as np
from experiments.sensors.points import Metric, Point, Table

Kind = Literal["slope", "within", "spread", "rises", "falls", "peak", "valley", "below"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a paper (or ours against it), and the inequality that decides it.

    Of the points of `series` in `figure`, at `values` of the axis if some are named:
    "slope": the least-squares slope of log value against log x lies in [low, high];
    "within": every value lies in [low, high];
    "spread": the largest is at most `high` times the smallest;
    "rises", "falls": the last differs from the first, and their intervals do not meet;
    "peak", "valley": some point between lies above (below) both ends, and its interval meets neither;
    "below": every value is at most `high` times that of the series `than`.
    """

    name: str
    figure: str
    where: str
    text: str
    kind: Kind
    series: str
    agrees: bool
    note: str = ""
    metric: Metric = "emd"
    than: str = ""
    values: tuple[float, ...] = ()
    low: float = 0.0
    high: float = float("inf")


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim after the run: whether it held, and the numbers that decided."""

    claim: Claim
    held: bool
    measured: str

    @property
    def expected(self) -> bool:
        """Whether the run found what expected.toml says."""
        return self.held == self.claim.agrees


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


def decide(claim: Claim, points: Sequence[Point]) -> Finding:
    """Whether a claim held in these points; values that were not run are left out."""
    mine = _points(claim, points, claim.series)
    values = np.array([point.middle for point in mine])
    first, last = mine[0], mine[-1]
    span = f"{first.axis} {first.x:g} to {last.x:g}" if len(mine) > 1 else f"{first.axis} {first.x:g}"
    match claim.kind:
        case "slope":
            slope = float(np.polyfit(np.log([point.x for point in mine]), np.log(values), 1)[0])
            return Finding(claim, claim.low <= slope <= claim.high, f"slope {slope:.3f} for {span}")
        case "within":
            held = bool(((claim.low <= values) & (values <= claim.high)).all())
            return Finding(claim, held, f"{_range(values)} for {span}")
        case "spread":
            ratio = float(values.max() / values.min())
            return Finding(claim, ratio <= claim.high, f"{_range(values)}, a factor {ratio:.3g}, for {span}")
        case "rises":
            return Finding(claim, first.high < last.low, f"{_said(first)} to {_said(last)} for {span}")
        case "falls":
            return Finding(claim, last.high < first.low, f"{_said(first)} to {_said(last)} for {span}")
        case "peak" | "valley":
            top = max(mine, key=lambda point: point.middle if claim.kind == "peak" else -point.middle)
            held = all(
                end.high < top.low if claim.kind == "peak" else top.high < end.low for end in (first, last)
            )
            said = f"{_said(first)}, then {_said(top)} at {top.x:g}, then {_said(last)}; {span}"
            return Finding(claim, held, said)
        case "below":
            other = {point.x: point.middle for point in _points(claim, points, claim.than)}
            ratios = np.array([point.middle / other[point.x] for point in mine if point.x in other])
            if not ratios.size:
                raise SystemExit(f"claim {claim.name} compares nothing that was run; it was not decided")
            return Finding(claim, bool((ratios <= claim.high).all()), f"ratio {_range(ratios)} for {span}")
        case _:
            assert_never(claim.kind)


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


def _range(values: np.typing.NDArray[np.float64]) -> str:
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"


def _said(point: Point) -> str:
    return f"{point.middle:.3g} [{point.low:.3g}, {point.high:.3g}]"


def verdicts(findings: Sequence[Finding]) -> Table:
    """The claims, whether they held, what was measured, and our note."""
    rows = [["claim", "place", "here", "measured, and our note"]]
    for finding in findings:
        claim = finding.claim
        answer = "holds" if finding.held else "**does not hold**"
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
            "held": finding.held,
            "agrees": finding.claim.agrees,
            "measured": finding.measured,
            "claim": {key: value for key, value in asdict(finding.claim).items() if value != float("inf")},
        }
        for finding in findings
    ]
