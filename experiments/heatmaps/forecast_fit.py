"""From simulated scores to the table of forecasts: smooth lines over users times epsilon, and their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from sfumato.heatmap.analysis import GROWS, METRICS, USUAL_USERS, Kind, Line, Metric
from sfumato.heatmap.benchmark import Score

FloatArray = npt.NDArray[np.float64]

# Which places a kind of data is forecast from, by the beginnings of their names.
KINDS: dict[Kind, tuple[str, ...]] = {
    "places": ("out", "hist", "town", "street"),
    "gaze": ("scene", "gaze"),
}
# Made-up pictures are less like real ones (Similarity 0.32 for 0.45 at 20 users and epsilon 1) than
# made-up towns are like real towns: they count where there are no real ones, above 46 users, and
# hardly elsewhere.
COUNTS = {"gaze": 0.05}
INSIDE = 0.9
# The issue's: an interval of similarity is no wider, even where it then holds fewer places.
WIDEST = 0.2
KNOT, BANDWIDTH = 0.25, 0.2  # in log10 of users times epsilon
ENOUGH = 10  # places that an interval is made of, at least
LEANS = np.linspace(-0.2, 1.0, 61)


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """Mean scores of places at (users, epsilon), on a scale without ends, and what chance left in them."""

    place: list[str]
    users: FloatArray
    epsilon: FloatArray
    values: FloatArray
    noise: FloatArray
    weights: FloatArray

    def where(self, lean: float) -> FloatArray:
        """Their places on the knots."""
        fewer = np.minimum(np.log10(self.users / USUAL_USERS), 0.0)
        return np.asarray(np.log10(self.users * self.epsilon) + lean * fewer, dtype=np.float64)


def stretched(metric: Metric, values: FloatArray) -> FloatArray:
    """Scores on a scale without ends: logits of those that end at 1, logarithms of the others."""
    if metric == "similarity":
        return np.asarray(np.log(values / (1 - values)))
    return np.asarray(np.arctanh(values) if metric == "pearson" else np.log(values))


def unstretched(metric: Metric, values: FloatArray) -> FloatArray:
    """Back again."""
    if metric == "similarity":
        return np.asarray(1 / (1 + np.exp(-values)))
    return np.asarray(np.tanh(values) if metric == "pearson" else np.exp(values))


def nodes(scores: Sequence[Score], metric: Metric) -> Nodes:
    """The means of places; chance is what samples of one place differ by, over their number."""
    found: dict[tuple[str, int, float], list[float]] = {}
    for score in scores:
        found.setdefault((score.place, score.users, score.epsilon), []).append(
            getattr(score, metric)
        )
    means = np.array([float(np.mean(runs)) for runs in found.values()])
    spread = {
        where: [np.var(stretched(metric, np.array(runs)), ddof=1) for key, runs in found.items()
                if key[1:] == where and len(runs) > 1]
        for where in {key[1:] for key in found}
    }  # fmt: skip
    noise = [
        float(np.mean(spread[key[1:]])) / len(runs) if spread[key[1:]] else 0.0
        for key, runs in found.items()
    ]
    return Nodes(
        [key[0] for key in found], np.array([float(key[1]) for key in found]),
        np.array([key[2] for key in found]), stretched(metric, means), np.array(noise), _weights(list(found)),
    )  # fmt: skip


def _weights(keys: Sequence[tuple[str, int, float]]) -> FloatArray:
    """Each family of places counts the same: whoever asks comes with data of a family of its own."""
    families = [(name.split()[0], users, epsilon) for name, users, epsilon in keys]
    return np.array([COUNTS.get(one[0], 1.0) / families.count(one) for one in families])


def lean_of(some: Nodes) -> float:
    """How much having fewer than 200 users moves the knots: least squares within places."""
    names = sorted(set(some.place))
    dummies = np.array([[float(name == one) for one in names] for name in some.place])

    def error(lean: float) -> float:
        where = some.where(lean)
        design = np.column_stack([dummies, where, where**2, where**3])
        root = np.sqrt(some.weights)
        solved = np.linalg.lstsq(design * root[:, None], some.values * root, rcond=None)[0]
        return float(some.weights @ (some.values - design @ solved) ** 2)

    return float(min(LEANS, key=error))


def fit(scores: Sequence[Score], kind: Kind) -> dict[str, Any]:
    """One kind's table: at each knot the middle of all places, and the ends between which nine of ten lie."""
    mine = [score for score in scores if score.place.startswith(KINDS[kind])]
    found: dict[str, Any] = {}
    means = {metric: nodes(mine, metric) for metric in METRICS}
    leans = {metric: lean_of(some) for metric, some in means.items()}
    where = np.concatenate([some.where(leans[metric]) for metric, some in means.items()])
    knots = np.append(np.arange(where.min(), where.max() - KNOT / 2, KNOT), where.max())
    for metric, some in means.items():
        found[metric] = _lines(some, metric, knots, leans[metric])
    return {
        "places": len({score.place for score in mine}),
        "maps": len(mine),
        "users": [min(s.users for s in mine), max(s.users for s in mine)],
        "epsilons": [min(s.epsilon for s in mine), max(s.epsilon for s in mine)],
        "least": min(s.users * s.epsilon for s in mine),
        "knots": _short(knots),
        **found,
    }


def _lines(some: Nodes, metric: Metric, knots: FloatArray, lean: float) -> dict[str, Any]:
    where = some.where(lean)
    middles = np.array([_local(some, where, at) for at in where])
    left = some.values - middles
    lines: list[tuple[float, ...]] = []
    holds = []
    # Knots that only another metric's lean reaches are level: nothing is known there, and nothing
    # asked.
    for knot in np.clip(knots, where.min(), where.max()).tolist():
        near = _near(some, where, knot)
        # Chance makes places look more different than they are: draw them together by what it adds.
        real = 1 - float(near @ some.noise) / float(near @ left**2)
        places = unstretched(metric, _local(some, where, knot) + left * math.sqrt(max(real, 0.25)))
        middle = float(near @ places)
        low, high = (
            _quantile(places, near, share, some.place)
            for share in ((1 - INSIDE) / 2, (1 + INSIDE) / 2)
        )
        low, high = min(low, middle), max(high, middle)
        ends = low, high
        if metric == "similarity" and high - low > WIDEST:
            # Drawn in towards the middle alike on both sides: the best window of these places is a
            # fluke.
            kept = WIDEST / (high - low)
            low, high = middle - kept * (middle - low), middle + kept * (high - middle)
        many = _effective(near, some.place)
        inside = float(near[(places >= low - 1e-9) & (places <= high + 1e-9)].sum())
        holds.append(min(inside * many / (many + 1), INSIDE))
        lines.append((low, middle, high, *ends))
    growing = np.maximum.accumulate(GROWS[metric] * np.array(lines), axis=0) * GROWS[metric]
    named = zip(get_args(Line), (_short(row) for row in growing.T), strict=True)
    return {"lean": round(lean, 3), **dict(named), "holds": _short(holds)}


def _near(some: Nodes, where: FloatArray, knot: float) -> FloatArray:
    """Weights of what is near a knot, adding up to 1; further away where that would be few places."""
    wide = BANDWIDTH
    while True:
        # In logarithms, from the nearest on: nothing vanishes.
        logs = -(((where - knot) / wide) ** 2) / 2
        near = some.weights * np.exp(logs - logs.max())
        near /= near.sum()
        if _effective(near, some.place) >= min(ENOUGH, len(set(some.place)) / 2):
            return np.asarray(near)
        wide *= 1.25


def _effective(near: FloatArray, place: Sequence[str]) -> float:
    """How many places of equal weight would be worth as much."""
    shares = np.bincount(np.unique(np.array(place), return_inverse=True)[1], near)
    return 1 / float(shares @ shares)


def _local(some: Nodes, where: FloatArray, at: float) -> float:
    """A line through what is near, at a place."""
    near = np.sqrt(some.weights) * np.exp(-(((where - at) / BANDWIDTH) ** 2) / 4)
    design = np.column_stack([np.ones(where.size), where - at]) * near[:, None]
    return float(np.linalg.lstsq(design, some.values * near, rcond=None)[0][0])


def _quantile(values: FloatArray, weights: FloatArray, share: float, place: Sequence[str]) -> float:
    """A quantile for one place more, not of those seen: of m places the least is exceeded by m of m + 1."""
    order = np.argsort(values)
    many = _effective(weights, place)
    below = (many * (np.cumsum(weights[order]) - weights[order] / 2) + 0.5) / (many + 1)
    return float(np.interp(share, below, values[order]))


def _short(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
