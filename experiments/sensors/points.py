"""Means with 95 % intervals of what was drawn; tables and pictures of them."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from experiments.sensors.protocol import Draw, FloatArray
from scipy import stats

from sfumato.figures import Series, draw_intervals

Metric = Literal["emd", "l1", "filled", "answered", "value"]
Table = list[list[str]]


@dataclass(frozen=True, slots=True)
class Point:
    """One measured value with the ends of its 95 % interval, at one place of an axis."""

    figure: str
    series: str
    metric: Metric
    axis: str
    x: float
    middle: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A PNG, the file it goes to, and what it shows in words."""

    name: str
    png: bytes
    description: str


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one script found: a heading, some words, points, tables, pictures, and all its draws.

    `unsolved` has, for each panel without draws here, how many recoveries failed and how many were
    tried.
    """

    name: str
    heading: str
    text: str
    points: tuple[Point, ...]
    tables: tuple[tuple[str, Table], ...] = ()
    pictures: tuple[Picture, ...] = ()
    draws: tuple[Draw, ...] = ()
    unsolved: tuple[tuple[str, int, int], ...] = ()

    def failures(self) -> tuple[tuple[str, int, int], ...]:
        """For each panel: how many recoveries ended without a proven answer, and how many were tried."""
        tried = Counter(draw.figure for draw in self.draws)
        failed = Counter(draw.figure for draw in self.draws if draw.status == "failed")
        return (
            tuple((figure, failed[figure], count) for figure, count in tried.items())
            + self.unsolved
        )


def mean(values: FloatArray, level: float = 0.95) -> tuple[float, float, float]:
    """The mean and its interval by Student's t; the interval of one value is that value."""
    middle = float(values.mean())
    if values.size < 2:
        return middle, middle, middle
    half = float(
        stats.t.ppf((1 + level) / 2, values.size - 1) * values.std(ddof=1) / math.sqrt(values.size)
    )
    return middle, middle - half, middle + half


def share(hits: int, trials: int) -> tuple[float, float, float]:
    """A share and its 95 % interval, by Clopper and Pearson."""
    ends = stats.binomtest(hits, trials).proportion_ci(0.95, "exact")
    return hits / trials, float(ends.low), float(ends.high)


def points(draws: Iterable[Draw]) -> tuple[Point, ...]:
    """The points of draws, in the order in which they first appear.

    `emd` and `l1` are means over draws with an estimate, as the papers' must have been; `answered`
    is their share; `filled` is the mean EMD over all draws, those without an estimate counted as
    mass spread evenly.
    """
    groups: dict[tuple[str, str, str, float], list[Draw]] = {}
    for draw in draws:
        groups.setdefault((draw.figure, draw.series, draw.axis, draw.x), []).append(draw)
    out: list[Point] = []
    for (figure, series, axis, x), some in groups.items():
        good = [draw for draw in some if draw.answered]
        filled = np.array([draw.emd if draw.answered else draw.even for draw in some])
        found: list[tuple[Metric, tuple[float, float, float], int]] = [
            ("answered", share(len(good), len(some)), len(some)),
            ("filled", mean(filled), len(some)),
        ]
        if good:
            found.append(("emd", mean(np.array([draw.emd for draw in good])), len(good)))
            found.append(("l1", mean(np.array([draw.l1 for draw in good])), len(good)))
        out += [Point(figure, series, name, axis, x, *ends, count) for name, ends, count in found]
    return tuple(out)


def exact_point(figure: str, series: str, axis: str, x: float, value: float) -> Point:
    """A computed number, without chance."""
    return Point(figure, series, "value", axis, x, value, value, value, 1)


def table(found: Sequence[Point], figure: str, metric: Metric = "emd") -> Table:
    """One row for each x, one column for each series: the mean, its half-width, the share answered."""
    here = [point for point in found if point.figure == figure]
    names = list(dict.fromkeys(point.series for point in here))
    at = {(point.series, point.x, point.metric): point for point in here}
    rows = [[here[0].axis, *(f"{name} (answered)" for name in names)]]
    for x in sorted({point.x for point in here}):
        row = [f"{x:g}"]
        for name in names:
            point, answered = at.get((name, x, metric)), at.get((name, x, "answered"))
            said = (
                "none" if point is None else f"{point.middle:.4f} ± {point.high - point.middle:.4f}"
            )
            row.append(said if answered is None else f"{said} ({answered.middle:.0%})")
        rows.append(row)
    return rows


def markdown(rows: Table) -> str:
    """A table as Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def curve(
    found: Sequence[Point], figure: str, name: str, metric: Metric, label: str = ""
) -> Series | None:
    """One line of a picture; None where nothing was measured."""
    some = [p for p in found if (p.figure, p.series, p.metric) == (figure, name, metric)]
    if not some:
        return None
    x, middle, low, high = (np.array([getattr(p, field) for p in some]) for field in
                            ("x", "middle", "low", "high"))  # fmt: skip
    return Series(label or name, x, middle, low, high)


def picture(
    found: Sequence[Point],
    figure: str,
    *,
    title: str,
    caption: str,
    metric: Metric = "emd",
    **more: Any,
) -> Picture:
    """All series of a panel in one picture, on log axes unless told otherwise."""
    names = dict.fromkeys(point.series for point in found if point.figure == figure)
    drawn = [one for name in names if (one := curve(found, figure, name, metric)) is not None]
    axis = next(point.axis for point in found if point.figure == figure)
    style = {"x_label": axis, "x_scale": "log", "y_scale": "log", **more}
    caption = " ".join([caption, answered(found, figure)]).strip()
    return Picture(figure, draw_intervals(drawn, title=title, caption=caption, **style), title)


def answered(found: Sequence[Point], figure: str) -> str:
    """The shares of draws with an answer, for the caption of a picture; nothing where all is computed."""
    shares: dict[str, list[float]] = {}
    for point in found:
        if (point.figure, point.metric) == (figure, "answered"):
            shares.setdefault(point.series, []).append(point.middle)
    ends = {
        name: dict.fromkeys(f"{end:.0%}" for end in (min(some), max(some)))
        for name, some in shares.items()
    }
    told = [f"{name} {' to '.join(end)}" for name, end in ends.items()]
    return f"Answered: {', '.join(told)}." if told else ""


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """Save dataclasses as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(asdict(rows[0])))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
