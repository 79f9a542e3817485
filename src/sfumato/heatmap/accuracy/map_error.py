"""How far off a map is, from what was released alone: what to expect, and what is certain.

What to expect comes from the posterior: each of its draws is taken for the truth, and the blurred
map is compared with it. The draws know the noise and guess what maps look like, so their middles
and spreads are corrected by what they missed on places that were tuned on
(experiments/heatmaps/how_far.py). What is certain is in `certified`. None of it costs anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from sfumato._types import FloatArray
from sfumato.heatmap.accuracy.certified import (
    CONFIDENCE,
    WORTH_STATING,
    certified_emd,
    known_of_nothing,
)
from sfumato.heatmap.accuracy.error_corrections import (
    EPSILONS,
    PYRAMID_CORRECTIONS,
    USERS,
    ZOOM_CORRECTIONS,
    Corrections,
    ErrorName,
)
from sfumato.heatmap.accuracy.uncertainty import maps_inside
from sfumato.heatmap.analysis.blur import smooth, smooth_each
from sfumato.heatmap.analysis.metrics import emd_ground, emd_share, pearson, similarity
from sfumato.heatmap.analysis.theory import packing_lower_bound
from sfumato.heatmap.inference.bounded import window
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import PureDP
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

SIGMA = 0.02  # what rehearsals and forecasts look through
COVERAGE = 0.9
# Thirty-two draws of 64 x 64 cells, and distances on 32 x 32. Of blurred maps the distance there is
# within 2 % of that on 64 x 64, a twentieth of the width of any interval.
COMPARED = 32
DRAWN_LEVEL, EMD_LEVEL = 6, 5
# Draws are ranked by their distances on 16 x 16 cells, a fifth of the work. Those ranks correlate with
# the finer ones by 0.99 and more: a quantile taken by them was off by at most 1.4 %, mostly by nothing.
RANKED_LEVEL = 4
# Each of up to so many maps of a release is looked at; of more, such as frames of a film, fewer.
MOST_STATED, LOOKED_AT = 12, 4
# Corrections were tuned on maps by themselves: of nine pooled ones their intervals held seven.
POOLED = "it is pooled with others, and what such maps miss was not measured"
# Words of the packing bound: sides of its square, of which the best is taken.
PACKED = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class ErrorInterval:
    """A number that a map has, as far as is known: its middle, and an interval that holds it with 90 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MapError:
    """How far off a map is: expected, with intervals, and certified.

    Attributes:
        unit: What distances are in: "m", "px", or "sides" of the map; east-west and north-south
            added.
        emd: The earth mover's distance of the blurred map from the blurred truth; None for a method
            that has no posterior.
        similarity: The mass that the blurred maps share, 1 for a perfect map.
        pearson: Their correlation, 1 for a perfect map.
        certified: What the distance, blurred or not, does not exceed whatever the truth is, with
            probability `confidence` over the noise; None where it would say little.
        lower: What no map of this epsilon can promise to be within for every truth of so many
            users; None where the packing bound does not say.
        coverage: How often intervals are meant to hold the truth.
        confidence: How often the certified bound holds at least.
        blur: The blur, in sides of the map.
        uncertified: Why there is no certified bound, in words; empty where there is one.
        unstated: Why nothing is expected of a map whose method could say it, in words; else empty.

    """

    unit: str
    emd: ErrorInterval | None
    similarity: ErrorInterval | None
    pearson: ErrorInterval | None
    certified: float | None
    lower: float | None
    coverage: float = COVERAGE
    confidence: float = CONFIDENCE
    blur: float = SIGMA
    uncertified: str = ""
    unstated: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MapError:
        """What `to_json` gave; KeyError, TypeError or ValueError for anything else."""
        if data["unit"] not in ("m", "px", "sides"):
            raise ValueError("the unit of its error is none of m, px and sides")
        return cls(
            data["unit"],
            _interval(data["emd"]),
            _interval(data["similarity"]),
            _interval(data["pearson"]),
            _finite(data["certified"]),
            _finite(data["lower"]),
            float(data["coverage"]),
            float(data["confidence"]),
            float(data["blur"]),
            str(data.get("uncertified", "")),
            str(data.get("unstated", "")),
        )


def _interval(data: Any) -> ErrorInterval | None:
    if data is None:
        return None
    value, low, high = (float(data[name]) for name in ("value", "low", "high"))
    if not -1 <= low <= value <= high < math.inf:
        raise ValueError("an interval of its error does not hold its value")
    return ErrorInterval(value, low, high)


def _finite(data: Any) -> float | None:
    if data is not None and not 0 <= float(data) < math.inf:
        raise ValueError("a bound of its error is no number of at least 0")
    return None if data is None else float(data)


# What was worked out lives as long as the posterior; the map it is of is kept with it.
_KNOWN: WeakKeyDictionary[MapPosterior, dict[int, tuple[Tiles, MapError]]] = WeakKeyDictionary()


def some_of(maps: Sequence[HeatmapRelease]) -> list[HeatmapRelease]:
    """The maps whose errors stand for those of all: each, or of many the first, the last and evenly between.

    >>> some_of(range(100))
    [0, 33, 66, 99]
    """
    if len(maps) <= MOST_STATED:
        return list(maps)
    return [maps[at * (len(maps) - 1) // (LOOKED_AT - 1)] for at in range(LOOKED_AT)]


def map_error(release: HeatmapRelease) -> MapError:
    """How far off a map is; from a posterior worked out once for each map.

    Args:
        release: The map.

    Returns:
        What its method can say: intervals from its posterior, bounds from its noisy counts.

    """
    if release.posterior is None:
        return _worked_out(release)  # bounds alone, which take no time
    known = _KNOWN.setdefault(release.posterior, {})
    at = id(release.tiles)
    if at not in known:
        known[at] = release.tiles, _worked_out(release)
    return known[at][1]


def _worked_out(release: HeatmapRelease) -> MapError:
    area, tiles, known = release.area, release.shares, release.posterior
    unit, longest, shortest = _sides(area)
    loss = release.receipt.guarantee.loss
    bound, lower = math.inf, None
    total = release.tiles.total
    if known is not None and known.counts is not None:
        bound = longest * certified_emd(known.counts, release.tiles, area)
    if isinstance(loss, PureDP):
        lower = shortest * best_packing(release.map_epsilon, max(1, round(total)))
    certified, uncertified = _worth_stating(bound, longest * known_of_nothing(area), unit)
    if known is None or known.pooled_maps > 1:
        why = "" if known is None else POOLED
        return MapError(
            unit, None, None, None, certified, lower, uncertified=uncertified, unstated=why
        )
    drawn = drawn_errors(known, tiles, area)
    # Corrections were tuned with Laplace noise: wider noise is that of a smaller epsilon.
    wider = 1.0 if known.counts is None else known.counts.widening
    found = calibrated(drawn, total, release.map_epsilon / wider, _corrections_of(known))
    emd = ErrorInterval(*(min(bound, number) for number in astuple(found["emd"])))
    return MapError(
        unit,
        emd,
        found["similarity"],
        found["pearson"],
        certified,
        lower,
        uncertified=uncertified,
    )


def _worth_stating(bound: float, nothing: float, unit: str) -> tuple[float | None, str]:
    """A certified bound, or why it is not stated: it is hardly below what holds without any data."""
    if math.isinf(bound):
        return None, "the noise of this method is not known"
    if bound < WORTH_STATING * nothing:
        return bound, ""
    return None, (
        f"no bound below {WORTH_STATING * nothing:.6g} {unit}, half of what is certain without any data: "
        "that of one point in the middle of the area"
    )


def _corrections_of(posterior: MapPosterior) -> Corrections | None:
    """What was found out of a posterior on tuning places; nothing of one not made of noisy counts."""
    if posterior.counts is None:
        return None
    return ZOOM_CORRECTIONS if posterior.mean_is_map else PYRAMID_CORRECTIONS


def _sides(area: Area) -> tuple[str, float, float]:
    """The unit of distances, and the longer and the shorter side of the grid in it."""
    if not area.unit:  # a plane of any units
        return "sides", 1.0, 1.0
    sides = [length * area.grid.side for length in area.cell_size]
    return area.unit, max(sides), min(sides)


def best_packing(epsilon: float, users: int) -> float:
    """The best packing bound over the sparsity of its inputs, in sides of the map.

    >>> best_packing(1.0, 200) > best_packing(1.0, 2000) > best_packing(10.0, 2000) > 0
    True
    """
    sizes = (side**2 // 2 + 1 for side in PACKED)
    return max(packing_lower_bound(k, epsilon, users=users) for k in sizes)


def drawn_errors(
    posterior: MapPosterior, shares: Tiles, area: Area
) -> dict[ErrorName, ErrorInterval]:
    """The errors that a map would have if each of its posterior's draws in turn were the truth.

    Args:
        posterior: What draws the truths.
        shares: The map, of mass 1.
        area: Its area.

    Returns:
        The median and the 5 and 95 % quantiles of each number; distances in the area's unit.

    """
    level = min(area.grid.levels, DRAWN_LEVEL)
    draws = maps_inside(posterior, area, level, COMPARED)
    totals = draws.sum(axis=(1, 2))[:, None, None]
    here = window(area, level)
    images = np.where(totals > 0, draws / np.where(totals > 0, totals, 1.0), here / here.sum())
    seen = smooth(shares.image(level), SIGMA)
    blurred = smooth_each(images.astype(np.float32), SIGMA).astype(np.float64)
    distance = emd_ground if area.unit else emd_share

    def distances(images: FloatArray, level: int) -> FloatArray:
        return np.array([distance(one, seen, area, level=level) for one in images])

    tail = (1 - COVERAGE) / 2
    parts = np.array([0.5, tail, 1 - tail])
    found: dict[ErrorName, FloatArray] = {
        "emd": _ranked_quantiles(blurred, parts, distances),
        "similarity": np.quantile([similarity(one, seen) for one in blurred], parts),
        "pearson": np.quantile([pearson(one, seen) for one in blurred], parts),
    }
    return {name: ErrorInterval(*map(float, ends)) for name, ends in found.items()}


def _ranked_quantiles(
    draws: FloatArray, parts: FloatArray, distances: Callable[[FloatArray, int], FloatArray]
) -> FloatArray:
    """Quantiles of distances of draws: those next to each are found on wide cells, and solved on narrow."""
    order = np.argsort(distances(draws, RANKED_LEVEL), kind="stable")
    place = parts * (len(draws) - 1)
    low, high = np.floor(place).astype(np.int64), np.ceil(place).astype(np.int64)
    needed, at = np.unique(np.concatenate([low, high]), return_inverse=True)
    fine = np.sort(distances(draws[order[needed]], EMD_LEVEL))[at]
    first, second = fine[: parts.size], fine[parts.size :]
    return np.asarray(first + (place - low) * (second - first))


def calibrated(
    drawn: Mapping[ErrorName, ErrorInterval],
    users: float,
    epsilon: float,
    table: Corrections | None,
) -> dict[ErrorName, ErrorInterval]:
    """The same numbers with what draws missed on tuning places; without a table they are believed.

    Args:
        drawn: What `drawn_errors` gave.
        users: How many there are, as released.
        epsilon: What the map cost.
        table: Where the truth lies, on each number's scale, in halves of the draws' own 90 % range
            from their median: low end, middle, high end.

    Returns:
        Intervals that are meant to hold the truth with 90 %.

    """
    if table is None:
        return dict(drawn)
    weights = between(users, epsilon)
    found: dict[ErrorName, ErrorInterval] = {}
    for name, one in drawn.items():
        if name == "emd":
            if one.high <= 0:  # one cell: there is nowhere to be off to
                found[name] = one
                continue
            # A logarithm would make much of a draw that hit the map.
            least = one.high / 1000
            one = ErrorInterval(*(max(least, number) for number in astuple(one)))
        ends = [on_scale(name, end) for end in (one.low, one.high)]
        half = (ends[1] - ends[0]) / 2
        low, value, high = (
            _off_scale(name, on_scale(name, one.value) + half * float(weights @ np.ravel(steps)))
            for steps in table[name]
        )
        found[name] = ErrorInterval(value, low, high)
    return found


def between(users: float, epsilon: float) -> FloatArray:
    """How much each entry of a table counts: bilinear in logarithms, and outside as at its edge.

    Args:
        users: How many there are, as released.
        epsilon: What the map cost.

    Returns:
        Weights that add up to 1, of the entries row by row.

    Example:
        >>> between(200, 1.0).reshape(4, 3)[1].tolist()
        [0.0, 1.0, 0.0]

    """
    sides = []
    for at, knots in ((users, USERS), (epsilon, EPSILONS)):
        logs = np.log(knots)
        here = math.log(min(max(at, knots[0]), knots[-1]))
        sides.append(np.array([np.interp(here, logs, one) for one in np.eye(len(knots))]))
    return np.asarray(np.outer(*sides).ravel())


def on_scale(name: ErrorName, number: float) -> float:
    """The scale on which a number is corrected: logarithm, log odds, and Fisher's z.

    Args:
        name: Which number.
        number: The distance, above 0; the similarity, in (0, 1); the correlation, in (-1, 1).

    Returns:
        The number on its scale; ends that have no place there are moved in by 1e-12.

    """
    match name:
        case "emd":
            return math.log(max(number, 1e-300))
        case "similarity":
            inner = min(max(number, 1e-12), 1 - 1e-12)
            return math.log(inner / (1 - inner))
        case "pearson":
            return math.atanh(min(max(number, 1e-12 - 1), 1 - 1e-12))


def _off_scale(name: ErrorName, number: float) -> float:
    match name:
        case "emd":
            return math.exp(min(number, 700.0))
        case "similarity":
            return 1 / (1 + math.exp(-number))
        case "pearson":
            return math.tanh(number)
