"""How good a map by zoom will be, before anything is read: a forecast of its four metrics.

Zoom was simulated on places of many kinds; what came out is the table in forecast.json, made by
`python -m experiments.heatmaps.forecast`. Nothing here reads data or spends budget.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from importlib.resources import files
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.analysis.monotone import between, monotone_cubics
from sfumato.heatmap.analysis.quality import GROWS, METRICS, Metric

Line = Literal["low", "middle", "high", "lowest", "highest"]
Kind = Literal["places", "gaze"]

# What all numbers hold for: maps of 256 x 256 cells seen through this filter, in sides of the map.
BLUR = 0.02
# Finer or coarser maps, once blurred, come out the same within the forecast: simulated too.
LEVELS = (6, 10)
MAX_WIDTH = 0.2  # of an interval of similarity
USUAL_USERS = 200
# From here on the table of many users; down from here that of few; between them one runs into the
# other.
MANY, FEW = 20, 10
TABLE = "forecast.json"
FORMAT = "sfumato-forecast/1"


@dataclass(frozen=True, slots=True)
class Expected:
    """What to expect of one metric: `middle` in a usual place; a share `holds` of places lies low to high.

    Nine places of ten lie from lowest to highest. That is the same, but where places differ so much
    that low to high was kept to a width of 0.2 in Similarity, and holds fewer.
    """

    low: float
    middle: float
    high: float
    lowest: float
    highest: float
    holds: float

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Expected:
        """What `dataclasses.asdict` made of it."""
        return cls(**{one.name: float(data[one.name]) for one in fields(cls)})


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the map of so many users at this epsilon will be like.

    The numbers are means over noise and over samples of users, of maps blurred by 0.02 sides: a
    single map differs from them. `emd` is in sides of the map. `beyond` says that there are more
    users than were simulated, so that the map should be at least this good.
    """

    kind: Kind
    users: float
    epsilon: float
    similarity: Expected
    pearson: Expected
    kl: Expected
    emd: Expected
    beyond: bool = False

    def of(self, metric: Metric) -> Expected:
        """The forecast of one metric."""
        expected: Expected = getattr(self, metric)
        return expected

    def to_json(self) -> dict[str, Any]:
        """All numbers by name, those of a metric in an object of their own."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Forecast:
        """The forecast that `to_json` wrote."""
        return cls(
            data["kind"],
            data["users"],
            data["epsilon"],
            **{metric: Expected.from_json(data[metric]) for metric in METRICS},
            beyond=bool(data["beyond"]),
        )


@dataclass(frozen=True, slots=True)
class Requirement:
    """The epsilon, or the number of users, that a target takes; None where nothing simulated reaches it.

    `usual` reaches it in the middle of all places, `safe` in 19 of 20, `lucky` in 1 of 20.
    """

    lucky: float | None
    usual: float | None
    safe: float | None

    def to_json(self) -> dict[str, Any]:
        """The three numbers by name, null where the target is not reached."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Requirement:
        """The requirement that `to_json` wrote."""
        return cls(data["lucky"], data["usual"], data["safe"])


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Lines of each metric over knots of log10(users times epsilon), and what they were simulated for.

    Below 200 users the place on the knots moves by `lean` times log10(users / 200): so few are in
    fewer places, whatever the noise. `holds` is the share of places between the lines low and high;
    `min_product` the smallest product that is forecast. So few users that they make no crowd have
    lines of their own, `few`, simulated apart.
    """

    kind: Kind
    knots: FloatArray
    lines: dict[Metric, dict[Line, FloatArray]]
    holds: dict[Metric, FloatArray]
    lean: dict[Metric, float]
    min_product: float
    users: tuple[float, float]
    epsilons: tuple[float, float]
    places: int
    maps: int
    few: Table | None = None

    def line(self, metric: Metric, line: Line, where: npt.ArrayLike) -> FloatArray:
        """A smooth line through the knots that never turns back; level beyond its ends."""
        inside = np.clip(where, self.knots[0], self.knots[-1])
        return between(self.knots, _cubics(self, metric, line), inside)

    def at(
        self, metric: Metric, line: Line, users: npt.ArrayLike, epsilon: npt.ArrayLike
    ) -> FloatArray:
        """What a line says of so many users at this epsilon."""
        users = np.asarray(users, dtype=np.float64)
        fewer = np.minimum(np.log10(users / USUAL_USERS), 0.0)
        where = np.log10(users * np.asarray(epsilon)) + self.lean[metric] * fewer
        here = self.line(metric, line, where)
        if self.few is None:
            return here
        many = np.clip(np.log(users / FEW) / math.log(MANY / FEW), 0, 1)
        return np.asarray((1 - many) * self.few.at(metric, line, users, epsilon) + many * here)

    def share_held(self, metric: Metric, users: float, epsilon: float) -> float:
        """The share of places between the lines low and high."""
        fewer = min(math.log10(users / USUAL_USERS), 0.0)
        where = math.log10(users * epsilon) + self.lean[metric] * fewer
        here = float(np.interp(where, self.knots, self.holds[metric]))
        if self.few is None or users >= MANY:
            return here
        # The smaller one where one table runs into the other.
        few = self.few.share_held(metric, users, epsilon)
        return few if users <= FEW else min(few, here)

    def expected(self, metric: Metric, users: float, epsilon: float) -> Expected:
        """What the lines say there."""
        values = {line: float(self.at(metric, line, users, epsilon)) for line in get_args(Line)}
        # Lines are drawn one by one, so between knots they may cross by a hair.
        low, high = min(values["low"], values["middle"]), max(values["high"], values["middle"])
        if metric == "similarity":
            # As wide as asked at the knots, and not by a hair wider between them.
            low = min(max(low, high - MAX_WIDTH), values["middle"])
        ends = min(values["lowest"], low), max(values["highest"], high)
        holds = self.share_held(metric, users, epsilon)
        return Expected(low, values["middle"], high, *ends, holds=holds)


@lru_cache(maxsize=128)
def _cubics(table: Table, metric: Metric, line: Line) -> FloatArray:
    return monotone_cubics(np.asarray(table.knots), np.asarray(table.lines[metric][line]))


@lru_cache(maxsize=2)
def forecast_table(kind: Kind = "places") -> Table:
    """The package's table for a kind of data.

    Args:
        kind: "places" or "gaze".

    Returns:
        Lines over users times epsilon.

    Raises:
        InvalidParameter: For another kind.
    """
    text = files("sfumato.heatmap.analysis").joinpath(TABLE).read_text(encoding="utf-8")
    return table_from_json(json.loads(text), kind)


def table_from_json(data: Any, kind: Kind) -> Table:
    """One kind's table as the experiment writes it; InvalidInput for anything else."""
    whole = _table_from_json(data, kind)
    if "few" not in data:
        return whole
    few = _table_from_json({"format": FORMAT, **data["few"]}, kind)
    return replace(whole, few=few, users=(few.users[0], whole.users[1]))


def _table_from_json(data: Any, kind: Kind) -> Table:
    if kind not in get_args(Kind):
        raise InvalidParameter(
            f"kinds are {', '.join(get_args(Kind))}, got {kind!r}; nothing was forecast"
        )
    try:
        if data["format"] != FORMAT:
            raise InvalidInput(
                f"a forecast has the format {FORMAT}, got {data['format']}; nothing was read"
            )
        part = data[kind]
        knots = np.array(part["knots"], dtype=np.float64)
        table = Table(
            kind,
            knots,
            {
                metric: {
                    line: np.array(part[metric][line], dtype=np.float64) for line in get_args(Line)
                }
                for metric in METRICS
            },
            {metric: np.array(part[metric]["holds"], dtype=np.float64) for metric in METRICS},
            {metric: float(part[metric]["lean"]) for metric in METRICS},
            float(part["least"]),
            (float(part["users"][0]), float(part["users"][1])),
            (float(part["epsilons"][0]), float(part["epsilons"][1])),
            int(part["places"]),
            int(part["maps"]),
        )
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise InvalidInput(
            f"this is no table of forecasts ({problem!r}); nothing was read"
        ) from None
    rows = [
        *table.holds.values(),
        *(row for lines in table.lines.values() for row in lines.values()),
    ]
    if any(row.shape != knots.shape for row in rows):
        raise InvalidInput("a table of forecasts has a value at each knot; nothing was read")
    return table


def forecast(users: float, epsilon: float, *, kind: Kind = "places") -> Forecast:
    """What to expect of the map of so many users at this epsilon; it reads nothing and costs nothing.

    Args:
        users: How many, at least 2.
        epsilon: What the map costs, within what was simulated.
        kind: "places" or "gaze".

    Returns:
        The four metrics with their intervals over places.

    Raises:
        InvalidParameter: For what was not simulated.

    >>> expected = forecast(200, 1)
    >>> expected.similarity.low < expected.similarity.middle < expected.similarity.high
    True
    """
    table = forecast_table(kind)
    _check(users, epsilon, table)
    found = {metric: table.expected(metric, users, epsilon) for metric in METRICS}
    beyond = math.log10(users * epsilon) > float(table.knots[-1])
    return Forecast(kind, users, epsilon, **found, beyond=beyond)


def required_epsilon(
    metric: Metric, target: float, *, users: float, kind: Kind = "places"
) -> Requirement:
    """The epsilon at which a map of so many users is as good as wanted.

    Args:
        metric: One of similarity, pearson, kl and emd.
        target: The value to reach, above 0; below 1 unless it is kl, for emd in sides of the map.
        users: How many, at least 2.
        kind: "places" or "gaze".

    Returns:
        What reaches the target in few, half and nearly all places; None where nothing does.

    Raises:
        InvalidParameter: For a target that is none, or too few users.

    >>> required = required_epsilon("similarity", 0.7, users=200)
    >>> required.lucky < required.usual < required.safe
    True
    """
    table = forecast_table(kind)
    check_target(metric, target)
    _check(users, table.epsilons[1], table)
    return _required(table, metric, target, lambda epsilon: (users, epsilon), table.epsilons)


def required_users(
    metric: Metric, target: float, *, epsilon: float, kind: Kind = "places"
) -> Requirement:
    """How many users a map at this epsilon needs to be as good as wanted.

    Args:
        metric: One of similarity, pearson, kl and emd.
        target: The value to reach, above 0; below 1 unless it is kl, for emd in sides of the map.
        epsilon: What the map costs.
        kind: "places" or "gaze".

    Returns:
        Whole numbers that reach the target in few, half and nearly all places; None where nothing
        does.

    Raises:
        InvalidParameter: For a target that is none, or an epsilon that was not simulated.
    """
    table = forecast_table(kind)
    check_target(metric, target)
    _check(table.users[1], epsilon, table)
    found = _required(table, metric, target, lambda users: (users, epsilon), table.users)
    lucky, usual, safe = (
        None if one is None else math.ceil(one) for one in (found.lucky, found.usual, found.safe)
    )
    return Requirement(lucky, usual, safe)


def _required(
    table: Table,
    metric: Metric,
    target: float,
    at: Callable[[float], tuple[float, float]],
    limits: tuple[float, float],
) -> Requirement:
    """The least number within the limits at which each line reaches what is wanted, on a log grid."""
    # A thousandth of the range in each step: far finer than the forecast.
    numbers = np.geomspace(*limits, 1001)
    users, epsilons = np.array([at(float(number)) for number in numbers]).T
    known = users * epsilons >= table.min_product
    lines: tuple[Line, ...] = ("highest", "middle", "lowest")
    if GROWS[metric] < 0:
        lines = ("lowest", "middle", "highest")
    found: list[float | None] = []
    for line in lines:
        values = table.at(metric, line, users, epsilons)
        good = known & (values >= target if GROWS[metric] > 0 else values <= target)
        found.append(float(numbers[np.argmax(good)]) if good.any() else None)
    return Requirement(*found)


def _check(users: float, epsilon: float, table: Table) -> None:
    for name, number, limits in (
        ("users", users, table.users),
        ("epsilon", epsilon, table.epsilons),
    ):
        if not (isinstance(number, Real) and math.isfinite(number) and number > 0):
            raise InvalidParameter(
                f"{name} must be a number above 0, got {number!r}; nothing was forecast"
            )
        # More users than were simulated do no harm; fewer, or another epsilon, were not looked at.
        if number < limits[0] or (name == "epsilon" and number > limits[1]):
            most = "" if name == "users" else f" to {limits[1]:g}"
            raise InvalidParameter(
                f"forecasts are for {name} of {limits[0]:g}{most or ' or more'}, got {number:g}; nothing was "
                "forecast"
            )
    if users * epsilon < table.min_product * (1 - 1e-9):
        raise InvalidParameter(
            f"{users:g} users at epsilon {epsilon:g} are too few: users times epsilon must be at least "
            f"{table.min_product:g}, below it a map shows nothing but noise; nothing was forecast"
        )


def check_target(metric: Metric, target: float) -> None:
    """Refuse a value that a metric cannot have, or only a map on which all is in the wrong place."""
    if metric not in METRICS:
        raise InvalidParameter(
            f"what is wanted is one of {', '.join(METRICS)}, got {metric!r}; nothing was forecast"
        )
    if not (0 < target < (math.inf if metric == "kl" else 1)):
        least = "above 0" if metric == "kl" else "between 0 and 1"
        unit = " (of the map's side)" if metric == "emd" else ""
        raise InvalidParameter(
            f"a wanted {metric} lies {least}{unit}, got {target:g}; nothing was forecast"
        )
