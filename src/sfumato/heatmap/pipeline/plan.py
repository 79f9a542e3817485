"""Plan a map before anything is read: how good it will be, or what a good one takes."""

from __future__ import annotations

from typing import get_args

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.heatmap.analysis.forecasts import (
    BLUR,
    LEVELS,
    USUAL_USERS,
    Forecast,
    Kind,
    forecast,
    forecast_table,
    required_epsilon,
    required_users,
)
from sfumato.heatmap.analysis.quality import METRICS
from sfumato.heatmap.areas import BoundsLike, public_area
from sfumato.heatmap.planning_results import (
    HeatmapPlan,
    PlanCurves,
    PlanPoint,
    Target,
    UsersRequirement,
)
from sfumato.privacy.accounting import Number, exact
from sfumato.spaces import Area

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
USERS = (20, 50, 100, 200, 500, 1000, 2000, 5000, 20_000)


def plan_heatmap(
    *,
    epsilon: Number | None = None,
    users: float | None = None,
    target: Target | str | None = None,
    kind: Kind = "places",
    levels: int = 8,
    blur: float = BLUR,
    method: str = "zoom",
    area: Area | BoundsLike | None = None,
) -> HeatmapPlan:
    """Forecast how good a map will be, or the epsilon or users that a good one takes.

    It reads no data and costs nothing. What is left out is what is asked for: with both `epsilon`
    and `users` the plan has a forecast, with one of them a forecast at each usual value of the
    other, with neither a table over both; a `target` adds what reaches it.

    Args:
        epsilon: What the map may cost, above 0; left out, it is asked for.
        users: About how many users there are, a public guess of at least 20; or left out.
        target: A metric and the value it should reach: `Target("similarity", 0.7)` or
            "similarity=0.7". Metrics are similarity, pearson, kl and emd (in sides of the map).
        kind: "places" for people in places, "gaze" for eyes on an image.
        levels: The map has 2**levels cells to a side; forecasts hold for 6 to 10.
        blur: The filter the map is seen through, in sides of it; only 0.02 was simulated.
        method: The name of the method; only zoom was simulated.
        area: The public area, or its bounds in degrees (west, south, east, north), to state
            distances in metres (or its units) too.

    Returns:
        A plan with `forecast`, `points`, or requirements, by what was given.

    Raises:
        InvalidParameter: For what was not simulated, and for a target that is none.

    >>> plan_heatmap(epsilon=1, users=200).forecast.similarity.middle > 0.6
    True
    """
    _check(levels, blur, method, kind)
    cost = None if epsilon is None else float(exact(epsilon, name="epsilon"))
    aim = parse_target(target) if isinstance(target, str) else target
    where = area if area is None or isinstance(area, Area) else public_area(area, levels=levels)
    expected: Forecast | None = None
    points: tuple[PlanPoint, ...] = ()
    by_users: tuple[UsersRequirement, ...] = ()
    if users is not None and cost is not None:
        expected = forecast(users, cost, kind=kind)
    elif aim is None:
        points = _points(kind, users, cost)
    elif users is None and cost is None:
        by_users = tuple(
            UsersRequirement(n, required_epsilon(aim.metric, aim.value, users=n, kind=kind))
            for n in USERS
        )
    return HeatmapPlan(
        kind=kind,
        users=users,
        epsilon=cost,
        target=aim,
        forecast=expected,
        points=points,
        epsilon_required=None
        if aim is None or users is None
        else required_epsilon(aim.metric, aim.value, users=users, kind=kind),
        users_required=None
        if aim is None or cost is None
        else required_users(aim.metric, aim.value, epsilon=cost, kind=kind),
        epsilon_by_users=by_users,
        side=None if where is None else where.cell_size[0] * where.grid.side,
        side_unit="m" if where is None or where.unit == "m" else "units",
    )


def parse_target(text: str) -> Target:
    """A metric and the value it should reach.

    >>> parse_target("similarity=0.7")
    Target(metric='similarity', value=0.7)
    """
    name, _, number = text.partition("=")
    for metric in METRICS:
        if metric == name.strip().lower():
            try:
                return Target(metric, float(number))
            except ValueError:
                break
    raise InvalidParameter(
        f"what is wanted is one of {', '.join(METRICS)} and a number, as in similarity=0.7, got {text!r}; "
        "nothing was forecast"
    )


def plan_curves(plan: HeatmapPlan) -> PlanCurves:
    """All metrics along epsilon, or along users where only epsilon is given, for a picture."""
    table = forecast_table(plan.kind)
    by_users = plan.users is None and plan.epsilon is not None
    fixed = float(plan.epsilon or 0) if by_users else float(plan.users or USUAL_USERS)
    limits = table.users if by_users else table.epsilons
    # From where anything is forecast.
    begin = min(max(limits[0], table.min_product / fixed), limits[1] / 2)
    along = np.geomspace(begin, limits[1], 120)
    points = [(float(one), fixed) if by_users else (fixed, float(one)) for one in along]
    return PlanCurves(
        "users" if by_users else "epsilon",
        fixed,
        along,
        {metric: tuple(table.expected(metric, *point) for point in points) for metric in METRICS},
    )


def _check(levels: int, blur: float, method: str, kind: Kind) -> None:
    if method != "zoom":
        raise InvalidParameter(
            f"only maps by zoom are forecast, got {method}; nothing was forecast"
        )
    if blur != BLUR:
        raise InvalidParameter(
            f"maps are forecast as they are seen through a blur of {BLUR:g} sides, got {blur:g}; rehearse on "
            "public data for another; nothing was forecast"
        )
    if not LEVELS[0] <= levels <= LEVELS[1]:
        raise InvalidParameter(
            f"maps are forecast for levels {LEVELS[0]} to {LEVELS[1]}, got {levels}; nothing was forecast"
        )
    if kind not in get_args(Kind):
        raise InvalidParameter(
            f"kinds are {', '.join(get_args(Kind))}, got {kind!r}; nothing was forecast"
        )


def _points(kind: Kind, users: float | None, epsilon: float | None) -> tuple[PlanPoint, ...]:
    """Forecasts along what was not given; over both, points that cannot be forecast have none."""
    if users is None and epsilon is None:
        return tuple(PlanPoint(n, one, _maybe(kind, n, one)) for n in USERS for one in EPSILONS)
    pairs = (
        [(users, one) for one in EPSILONS]
        if users is not None
        else [(n, epsilon or 0.0) for n in USERS]
    )
    points = tuple(PlanPoint(n, one, _maybe(kind, n, one)) for n, one in pairs)
    known = tuple(point for point in points if point.forecast is not None)
    if not known:
        forecast(*pairs[-1], kind=kind)  # none of them can be forecast: the last one says why
    return known


def _maybe(kind: Kind, users: float, epsilon: float) -> Forecast | None:
    try:
        return forecast(users, epsilon, kind=kind)
    except InvalidParameter:
        return None
