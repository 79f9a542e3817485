"""How far off a map is, from what was released alone: what to expect, and what is certain.

What to expect comes from the posterior: each of its draws is taken for the truth, and the blurred
map is compared with it. The draws know the noise and guess what maps look like, so their middles
and spreads are corrected by what they missed on places that were tuned on
(experiments/heatmaps/how_far.py). What is certain is in `certified`. None of it costs anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from sfumato.heatmap.analysis.blur import smooth, smooth_each
from sfumato.heatmap.analysis.metrics import emd_ground, emd_share, pearson, similarity
from sfumato.heatmap.analysis.theory import packing_lower_bound
from sfumato.heatmap.inference.bounded import window
from sfumato.heatmap.inference.certified import CONFIDENCE, certified_emd
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.inference.uncertainty import maps_inside
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import ZCDP, PureDP
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

SIGMA = 0.02  # what rehearsals and forecasts look through
COVERAGE = 0.9
# Sixty-four draws of 64 x 64 cells, and distances on 32 x 32: 0.3 s of a processor. Of blurred maps
# the distance there is within 2 % of that on 64 x 64, a twentieth of the width of any interval.
COMPARED = 64
DRAWN_LEVEL, EMD_LEVEL = 6, 5
# Words of the packing bound: sides of its square, of which the best is taken.
PACKED = (2, 4, 8, 16, 32, 64)

# How far the truth lay from the median of the draws on places that were tuned on, in halves of
# their 90 % range: low end, middle and high end, at these logarithms of users times epsilon.
# `python -m experiments.heatmaps.how_far --fit` prints them.
ErrorName = Literal["emd", "similarity", "pearson"]
Corrections = dict[ErrorName, tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]]
STRENGTHS = (0.7, 1.3, 2.0, 3.0, 4.0, 5.3)
ZOOM_CORRECTIONS: Corrections = {
    "emd": (
        (-0.5, -0.53, -0.56, -0.61, -0.8, -1.04),
        (0.49, 0.48, 0.48, 0.47, 0.36, 0.22),
        (1.59, 1.57, 1.55, 1.51, 1.54, 1.57),
    ),
    "similarity": (
        (-2.68, -2.65, -2.62, -2.58, -2.89, -3.29),
        (-0.87, -0.96, -1.06, -1.21, -1.36, -0.66),
        (0.56, 0.68, 0.74, 0.59, 0.45, 0.87),
    ),
    "pearson": (
        (-1.08, -1.34, -1.64, -2.07, -2.5, -3.06),
        (0.0, -0.31, -0.51, -0.8, -0.78, -0.3),
        (1.32, 1.15, 0.94, 0.65, 0.88, 1.16),
    ),
}
# On 42 places of 50 and 200 users, and some of 2,000: nothing above was tuned on, nor tested.
PYRAMID_CORRECTIONS: Corrections = {
    "emd": (
        (-0.76, -1.02, -1.33, -1.39, -1.46, -1.55),
        (0.41, 0.28, 0.13, -0.09, 0.41, 1.06),
        (1.8, 1.6, 1.35, 1.01, 1.74, 2.7),
    ),
    "similarity": (
        (-1.63, -1.71, -1.81, -1.94, -2.13, -2.38),
        (0.39, -0.15, -0.22, -0.27, -0.71, -1.29),
        (0.4, 0.69, 1.04, 1.54, 2.04, 2.69),
    ),
    "pearson": (
        (-0.18, -0.65, -1.2, -1.98, -2.76, -3.78),
        (0.18, 0.06, -0.08, -0.22, -0.36, -0.53),
        (2.55, 2.2, 1.8, 1.75, 1.92, 2.14),
    ),
}


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
            probability `confidence` over the noise; None for a method whose noise is not known.
        lower: What no map of this epsilon can promise to be within for every truth of so many
            users; None where the packing bound does not say.
        coverage: How often intervals are meant to hold the truth.
        confidence: How often the certified bound holds at least.
        blur: The blur, in sides of the map.

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
            *(float(data[name]) for name in ("coverage", "confidence", "blur")),
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


def map_error(release: HeatmapRelease) -> MapError:
    """How far off a map is; worked out once for each map.

    Args:
        release: The map.

    Returns:
        What its method can say: intervals from its posterior, bounds from its noisy counts.

    """
    known = {} if release.posterior is None else _KNOWN.setdefault(release.posterior, {})
    at = id(release.tiles)
    if at not in known:
        known[at] = release.tiles, _worked_out(release)
    return known[at][1]


def _worked_out(release: HeatmapRelease) -> MapError:
    area, tiles, known = release.area, release.shares, release.posterior
    unit, longest, shortest = _sides(area)
    loss = release.receipt.guarantee.loss
    certified = lower = None
    total = release.tiles.total
    if known is not None and known.counts is not None:
        certified = longest * certified_emd(known.counts, release.tiles, area)
    if isinstance(loss, PureDP):
        lower = shortest * best_packing(float(loss.epsilon), max(1, round(total)))
    if known is None:
        return MapError(unit, None, None, None, certified, lower)
    price = math.sqrt(2 * float(loss.rho)) if isinstance(loss, ZCDP) else float(loss.epsilon)
    found = calibrated(drawn_errors(known, tiles, area), total * price, _corrections_of(known))
    most = math.inf if certified is None else certified
    emd = ErrorInterval(*(min(most, number) for number in astuple(found["emd"])))
    return MapError(unit, emd, found["similarity"], found["pearson"], certified, lower)


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
    found: dict[ErrorName, list[float]] = {
        "emd": [distance(one, seen, area, level=EMD_LEVEL) for one in blurred],
        "similarity": [similarity(one, seen) for one in blurred],
        "pearson": [pearson(one, seen) for one in blurred],
    }
    tail = (1 - COVERAGE) / 2
    return {
        name: ErrorInterval(*map(float, np.quantile(values, (0.5, tail, 1 - tail))))
        for name, values in found.items()
    }


def calibrated(
    drawn: Mapping[ErrorName, ErrorInterval], strength: float, table: Corrections | None
) -> dict[ErrorName, ErrorInterval]:
    """The same numbers with what draws missed on tuning places; without a table they are believed.

    Args:
        drawn: What `drawn_errors` gave.
        strength: Users times epsilon.
        table: Where the truth lies, on each number's scale, in halves of the draws' own 90 % range
            from their median: low end, middle, high end.

    Returns:
        Intervals that are meant to hold the truth with 90 %.

    """
    if table is None:
        return dict(drawn)
    at = math.log10(min(max(strength, 1e-300), 1e300))
    found: dict[ErrorName, ErrorInterval] = {}
    for name, one in drawn.items():
        ends = [on_scale(name, end) for end in (one.low, one.high)]
        moved = [float(np.interp(at, STRENGTHS, line)) for line in table[name]]
        half = (ends[1] - ends[0]) / 2
        low, value, high = (
            _off_scale(name, on_scale(name, one.value) + half * step) for step in moved
        )
        found[name] = ErrorInterval(value, low, high)
    return found


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
