"""What the paper says, as inequalities over measured rows; tables and files of results."""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from experiments.heatmaps.protocol import Options

from sfumato.heatmap.analysis import GROWS, METRICS
from sfumato.heatmap.benchmark import Score

Axis = Literal["epsilon", "users", "side"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of the paper (or ours against it), and the inequality that decides it.

    kind "better": the mean of `method` is better than that of each of `than`, for all metrics and
    values; "improves" and "worsens": last value against first; "steady": each metric's range is at
    most `within` of its largest value.
    """

    name: str
    figure: str
    where: str
    text: str
    kind: Literal["better", "improves", "worsens", "steady"]
    method: str
    holds: bool
    note: str = ""
    than: tuple[str, ...] = ()
    metrics: tuple[str, ...] = METRICS
    values: tuple[float, ...] = ()
    within: float = 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim after the run: whether it held, and the cases that decided against it."""

    claim: Claim
    held: bool
    against: tuple[str, ...]

    @property
    def expected(self) -> bool:
        """Whether the run found what expected.toml says."""
        return self.held == self.claim.holds


def read_claims(figure: str, source: str, *, quick: bool) -> list[Claim]:
    """The claims of a figure for a source; a quick run decides only those marked `quick`."""
    tables = tomllib.loads((Path(__file__).parent / "expected.toml").read_text("utf-8"))["claim"]
    return [
        Claim(**_fields(table, source))
        for table in tables
        if table["figure"] == figure and (table.get("quick", False) or not quick)
    ]


def _fields(table: dict[str, Any], source: str) -> dict[str, Any]:
    fields = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in table.items()
        if key != "quick"
    }
    if isinstance(fields["holds"], dict):
        fields["holds"] = fields["holds"][source]
    return fields


def mean(rows: Iterable[Score], metric: str) -> tuple[float, float]:
    """The mean of a metric and the half-width of its 95 % interval, 1.96 sd / sqrt(count)."""
    values = np.array([getattr(row, metric) for row in rows])
    half = 1.96 * values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else math.nan
    return float(values.mean()), float(half)


def decide(claim: Claim, rows: Sequence[Score], axis: Axis) -> Finding:
    """Whether a claim held in these rows; values that were not run are left out."""

    def at(method: str, value: float, metric: str) -> float:
        return mean([r for r in rows if r.method == method and getattr(r, axis) == value], metric)[
            0
        ]

    run = sorted({float(getattr(row, axis)) for row in rows})
    values = [value for value in run if not claim.values or value in claim.values]
    if not values:
        raise SystemExit(f"none of the values of claim {claim.name} was run; it was not decided")
    against: list[str] = []
    for metric in claim.metrics:
        sign = GROWS[metric]
        if claim.kind == "better":
            for value in values:
                mine = at(claim.method, value, metric)
                worse = [
                    other for other in claim.than if sign * mine <= sign * at(other, value, metric)
                ]
                if worse:
                    against.append(f"{metric} at {axis} {value:g}: {', '.join(worse)}")
            continue
        first, last = (at(claim.method, value, metric) for value in (values[0], values[-1]))
        if claim.kind == "steady":
            seen = [at(claim.method, value, metric) for value in values]
            if max(seen) - min(seen) > claim.within * max(map(abs, seen)):
                against.append(f"{metric}: {min(seen):.3f} to {max(seen):.3f}")
        elif sign * (last - first) * (1 if claim.kind == "improves" else -1) <= 0:
            against.append(f"{metric}: {first:.3f} to {last:.3f}")
    return Finding(claim, not against, tuple(against))


def table(rows: Sequence[Score], axis: Axis) -> str:
    """A Markdown table of means and intervals for each value of an axis and each method."""
    heads = [axis, "method", "Similarity ↑", "Pearson ↑", "KL ↓", "EMD ↓"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    methods = list(dict.fromkeys(row.method for row in rows))
    for value in sorted({getattr(row, axis) for row in rows}):
        for method in methods:
            some = [row for row in rows if row.method == method and getattr(row, axis) == value]
            cells = [mean(some, metric) for metric in METRICS]
            shown = [f"{middle:.3f} ± {half:.3f}" for middle, half in cells]
            lines.append("| " + " | ".join([f"{value:g}", method, *shown]) + " |")
    return "\n".join(lines)


def verdicts(findings: Sequence[Finding]) -> str:
    """A Markdown table of the claims, whether they held, and what spoke against them."""
    lines = ["| claim | place | here | against it, and our note |", "|---|---|---|---|"]
    for finding in findings:
        claim = finding.claim
        said = "; ".join(finding.against[:4]) + (" ..." if len(finding.against) > 4 else "")
        remark = ". ".join(part for part in (said, claim.note) if part)
        answer = "holds" if finding.held else "**does not hold**"
        lines.append(f"| {claim.text} | {claim.where} | {answer} | {remark} |")
    return "\n".join(lines)


def write_rows(path: Path, rows: Sequence[Score]) -> None:
    """Save rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(asdict(rows[0])))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def conclude(chosen: Options, name: str, parts: Sequence[str], findings: Sequence[Finding]) -> None:
    """Write the summary, print it, and fail when a claim did not come out as expected.toml says."""
    text = "\n\n".join([*parts, verdicts(findings)] if findings else parts) + "\n"
    (chosen.out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    surprises = [finding for finding in findings if not finding.expected]
    for finding in surprises:
        print(
            f"SURPRISE: {finding.claim.name} was expected to {'hold' if finding.claim.holds else 'fail'}"
        )
    if surprises:
        raise SystemExit(1)


def plot(
    chosen: Options, name: str, rows: Sequence[Score], axis: Axis, *, log: Callable[[str], bool]
) -> None:
    """The four metrics against an axis, with 95 % bands, as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 4)
    titles = ("Similarity (up)", "Pearson (up)", "KL (down)", "EMD (down)")
    values = sorted({getattr(row, axis) for row in rows})
    for panel, metric, title in zip(panels, METRICS, titles, strict=True):
        for method in dict.fromkeys(row.method for row in rows):
            cells = [
                mean([r for r in rows if r.method == method and getattr(r, axis) == value], metric)
                for value in values
            ]
            middle, half = np.array(cells).T
            wide = 2.6 if method == "pyramid" else 1.2
            (line,) = panel.plot(
                values, middle, marker="o", markersize=3, linewidth=wide, label=method
            )
            panel.fill_between(
                values, middle - half, middle + half, color=line.get_color(), alpha=0.15
            )
        panel.set_title(title)
        panel.set_xlabel(axis)
        panel.set_xscale("log")
        panel.set_xticks(values, [f"{value:g}" for value in values])
        panel.minorticks_off()
        if log(metric):
            panel.set_yscale("log")
    panels[0].legend(fontsize=8)
    figure.savefig(chosen.out / f"{name}.png", dpi=110, metadata={"Software": None})
