"""Who is better where, from the scores of local maps and their rivals: signs, goals, tables and the page."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from experiments.heatmaps import local_rivals
from scipy.special import stdtr

from sfumato._types import FloatArray
from sfumato.heatmap.benchmark import Place

OURS, EVEN, CENTRAL = "local", "even map", "central"
MetricName = Literal["emd", "similarity"]
METRICS: tuple[MetricName, ...] = ("emd", "similarity")
Cell = tuple[int, float]
Scores = dict[tuple[str, str], list[tuple[float, float]]]
"""Of one cell: for a method and a way to run it, EMD and Similarity in each place."""

PAGE = """\
# Local maps and their rivals

`{command}` made this page: {cells} of 24 cells of users and epsilon, in
{places} places, one sample each. {decided}

Places and goals were fixed in `experiments/heatmaps/expected.toml` before anything was run, but for a quick
look at one cell of two of the places. The design was changed once after a part of the cells had been run
here and 1,000 users at epsilon 0.5 had done badly: 4 x 4 cells are asked there, as was decided on
[other places](../proofs/local-channels.md#what-was-tried-and-is-not-proved). All cells below are of the design
as it is now.

Places: {names}.

People are drawn with replacement; the truth is the map of all their places, each person with mass 1, on 64
x 64 cells, and a device reports one place, drawn by mass. EMD is in sides and smaller is better, Similarity
is 1 for a perfect map; both maps are blurred by 2 % of the side. All but `central` and `Laplace, weaker`
promise epsilon for each replaced user, on the device. Each rival is our own code
(`experiments/heatmaps/local_rivals.py`) with its best size *in hindsight*, for each cell and metric; ours
has no such help. Signs: the rival is significantly worse (+) or better (-) than `local`, paired by place, t
test, Holm over the {tests} comparisons with that rival at {level:g}. No sign: open, and with {places}
places much is open.

- **local**: ours, two rounds. **grid**: optimised local hashing on an even grid, norm-sub. **k-ary**: k-ary
  response, norm-sub.
- **hierarchy**: hierarchical intervals, users split over the levels of a quadtree. **AHEAD**: the adaptive
  hierarchy. **quadtree**: a local quadtree, split above two deviations.
- **disk**: the disk area mechanism with expectation-maximisation. **Laplace**: planar Laplace, epsilon at
  the diagonal, so that it is local epsilon.
- **Laplace, weaker**: geo-indistinguishable, epsilon at a tenth of the side. Corner to corner it allows 14
  epsilon: *not the same promise*.
- **even map**: no data at all. **central**: `zoom`, whoever gathers is trusted.

## Earth mover's distance

{emd}

## Similarity

{similarity}

## What was asked for

{asked}

Signs against each rival, both metrics together:

{tally}

## Channel or decoder?

Reports of rivals under our decoder, as own / decoded, means over {ablated} of the places, best size in
hindsight for either. `local` beside them on the same places.

### EMD

{ablation_emd}

### Similarity

{ablation_similarity}
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Ours against a rival in one cell and metric: `gain` is above 0 where ours is better."""

    cell: Cell
    rival: str
    metric: MetricName
    gain: float
    chance: float
    sign: str = ""


def settings() -> dict[str, Any]:
    """What is fixed."""
    text = (Path(__file__).parent / "expected.toml").read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)["local"]
    return found


def best(scores: Scores, name: str, metric: MetricName, *, of: slice = slice(None)) -> FloatArray:
    """Scores of a method in each place, by its best way in the mean: hindsight."""
    at = METRICS.index(metric)
    sign = 1 if metric == "similarity" else -1
    ways = [np.array(found)[:, at][of] for (method, _), found in scores.items() if method == name]
    return max(ways, key=lambda one: sign * one.mean())


def verdicts(found: Mapping[Cell, Scores], level: float) -> list[Verdict]:
    """Ours against every rival and the even map, signs by Holm over all comparisons with one rival."""
    judged = []
    for rival in (*(one.name for one in local_rivals.RIVALS), EVEN):
        family = []
        for (cell, scores), metric in product(found.items(), METRICS):
            gains = best(scores, OURS, metric) - best(scores, rival, metric)
            gains = gains if metric == "similarity" else -gains
            family.append(Verdict(cell, rival, metric, float(gains.mean()), paired(gains)))
        judged += holm(family, level)
    return judged


def paired(gains: FloatArray) -> float:
    """The two-sided chance of such a mean difference, by Student's t; 1 of fewer than two."""
    if gains.size < 2:
        return 1.0
    spread = float(gains.std(ddof=1)) / math.sqrt(gains.size)
    if spread == 0:
        return 1.0 if gains.mean() == 0 else 0.0
    return float(2 * stdtr(gains.size - 1, -abs(float(gains.mean())) / spread))


def holm(family: Sequence[Verdict], level: float) -> list[Verdict]:
    """Signs of those that hold together at the level."""
    ordered = sorted(family, key=lambda one: one.chance)
    found, holding = [], True
    for number, one in enumerate(ordered):
        holding = holding and one.chance <= level / (len(ordered) - number)
        sign = ("+" if one.gain > 0 else "-") if holding else ""
        found.append(Verdict(one.cell, one.rival, one.metric, one.gain, one.chance, sign))
    return found


def asked(
    found: Mapping[Cell, Scores], judged: Sequence[Verdict], *, whole: bool
) -> list[list[str]]:
    """The goals, how many of the cells that were run meet them, and whether they are met."""
    rows = [["asked for", f"of {len(found)} cells", "which", "met"]]
    for goal in settings()["requirement"]:
        rivals = [one for one in judged if one.rival != EVEN and one.metric == goal.get("metric")]
        match goal["kind"]:
            case "better":
                cells = [
                    cell for cell in found if all(v.sign == "+" for v in rivals if v.cell == cell)
                ]
            case "worse":
                cells = [
                    cell for cell in found if any(v.sign == "-" for v in rivals if v.cell == cell)
                ]
            case _:
                cells = [
                    cell
                    for cell in found
                    if any(v.gain < 0 for v in judged if v.cell == cell and v.rival == EVEN)
                ]
        met = goal.get("least", 0) <= len(cells) <= goal.get("most", len(found))
        rows.append(
            [
                goal["text"],
                str(len(cells)),
                "; ".join(map(cell_text, cells)) or "-",
                ("met" if met else "MISSED") if whole else "not decided",
            ]
        )
    for metric in METRICS:
        lead = [
            cell
            for cell in found
            if all(
                v.gain > 0
                for v in judged
                if v.cell == cell and v.metric == metric and v.rival != EVEN
            )
        ]
        rows.append([f"(not asked: best mean {metric} of all)", str(len(lead)), "-", "-"])
    return rows


def cell_text(cell: Cell) -> str:
    """Users and epsilon."""
    return f"{cell[0]:,} at {cell[1]:g}"


def table(
    found: Mapping[Cell, Scores], judged: Sequence[Verdict], metric: MetricName
) -> list[list[str]]:
    """Means of all methods in all cells, with signs."""
    names = [
        OURS,
        *(one.name for one in local_rivals.RIVALS),
        EVEN,
        CENTRAL,
        local_rivals.WEAKER.name,
    ]
    signs = {(one.cell, one.rival): one.sign for one in judged if one.metric == metric}
    rows = [["users, epsilon", *names]]
    for cell, scores in found.items():
        rows.append(
            [f"{cell[0]:,}, {cell[1]:g}"]
            + [
                f"{best(scores, name, metric).mean():.4f}{signs.get((cell, name), '')}"
                for name in names
            ]
        )
    return rows


def ablation(found: Mapping[Cell, Scores], metric: MetricName, *, of: slice) -> list[list[str]]:
    """Own estimates of rivals beside ours of the same reports."""
    names = [one.name for one in local_rivals.RIVALS if one.name != "Laplace"]
    rows = [["users, epsilon", OURS, *names]]
    for cell, scores in found.items():
        line = [f"{cell[0]:,}, {cell[1]:g}", f"{best(scores, OURS, metric, of=of).mean():.3f}"]
        for name in names:
            own = best(scores, name, metric, of=of).mean()
            line.append(f"{own:.3f} / {best(scores, f'{name}, decoded', metric).mean():.3f}")
        rows.append(line)
    return rows


def tally(judged: Sequence[Verdict]) -> list[list[str]]:
    """Signs against each rival."""
    rows = [["rival", "better", "open", "worse"]]
    for rival in dict.fromkeys(one.rival for one in judged):
        signs = [one.sign for one in judged if one.rival == rival]
        rows.append([rival, *(str(signs.count(sign)) for sign in ("+", "", "-"))])
    return rows


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def page(
    found: Mapping[Cell, Scores], where: Sequence[Place], *, command: str, ablated: int, whole: bool
) -> str:
    """All of it."""
    level = settings()["level"]
    judged = verdicts(found, level)
    few = slice(0, ablated)
    goals = asked(found, judged, whole=whole)
    return PAGE.format(
        command=command,
        cells=len(found),
        places=len(where),
        names=", ".join(place.name for place in where),
        decided="All that is fixed was run, so the goals are *decided*: "
        f"{[row[-1] for row in goals[1:]].count('met')} of {len(settings()['requirement'])} are met."
        if whole
        else "That is a part of what is fixed, so the goals are *not decided*.",
        tests=2 * len(found),
        level=level,
        emd=markdown(table(found, judged, "emd")),
        similarity=markdown(table(found, judged, "similarity")),
        asked=markdown(goals),
        tally=markdown(tally(judged)),
        ablated=ablated,
        ablation_emd=markdown(ablation(found, "emd", of=few)),
        ablation_similarity=markdown(ablation(found, "similarity", of=few)),
    )
