"""Plan a map before anything is read: how good it will be, or what a good one takes."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from numbers import Real
from typing import Any, get_args

import numpy as np

from sfumato.errors import InvalidParameter, Mistakes
from sfumato.heatmap.analysis.forecasts import (
    BLUR,
    LEVELS,
    USUAL_USERS,
    Forecast,
    Kind,
    Requirement,
    check_target,
    forecast,
    forecast_table,
    required_epsilon,
    required_users,
)
from sfumato.heatmap.analysis.many_maps import CountedRows, ManyMaps, Shares, forecast_maps
from sfumato.heatmap.analysis.quality import METRICS, Metric
from sfumato.heatmap.areas import BoundsLike, public_area
from sfumato.heatmap.pipeline.options import PoolingKind, check_pooling_kind
from sfumato.heatmap.planning_results import (
    HeatmapPlan,
    PlanCurves,
    PlanPoint,
    Target,
    UsersRequirement,
)
from sfumato.privacy.accounting import Number, exact
from sfumato.records import Groups, Pairs, Periods, Values, count_of
from sfumato.spaces import Area

# Reached by every map that was simulated: what it takes is the least that was.
EASIEST: dict[Metric, float] = {"similarity": 1e-9, "pearson": 1e-9, "kl": 1e9, "emd": 1 - 1e-9}
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
    frames: int = 1,
    maps: int = 1,
    mass_per_period: bool = False,
    mass_per_value: bool = False,
    rows: int | None = None,
    rows_per_user: int | None = None,
    pooling: PoolingKind = "none",
) -> HeatmapPlan:
    """Forecast how good a map will be, or the epsilon or users that a good one takes.

    It reads no data and costs nothing. What is left out is what is asked for: with both `epsilon`
    and `users` the plan has a forecast, with one of them a forecast at each usual value of the
    other, with neither a table over both; a `target` adds what reaches it.

    Args:
        epsilon: What the map may cost, above 0; left out, it is asked for.
        users: About how many users there are, a public guess; or left out.
        target: A metric and the value it should reach: `Target("similarity", 0.7)` or
            "similarity=0.7". Metrics are similarity, pearson, kl and emd (in sides of the map, or
            in metres where the area is given in them: "emd=200m").
        kind: "places" for people in places, "gaze" for eyes on an image.
        levels: The map has 2**levels cells to a side; forecasts hold for 6 to 10.
        blur: The filter the map is seen through, in sides of it; only 0.02 was simulated.
        method: The name of the method; only zoom was simulated.
        area: The public area, or its bounds in degrees (west, south, east, north), to state
            distances in metres (or its units) too.
        frames: How many periods there are maps of, of the same users.
        maps: How many maps (images, groups) there are in each period.
        mass_per_period: Whether everybody has mass 1 in each period, which costs epsilon for each;
            else one mass is shared by all.
        mass_per_value: Whether everybody has mass 1 in each map of a period, which costs epsilon for
            each unless the ledger protects a user in one map.
        rows: About how many rows there are, a public guess, where rows are counted.
        rows_per_user: The most rows that count of one user, where rows are counted.
        pooling: "partial" if several maps are to share strength: forecasts stay those of each by
            itself, and the plan says what to expect beside them.

    Returns:
        A plan with `forecast`, `points`, or requirements, by what was given; with several maps they
        are of each, and `many` says what would make all of them usable.

    Raises:
        InvalidParameter: For what was not simulated, and for a target that is none.

    >>> plan_heatmap(epsilon=1, users=200).forecast.similarity.middle > 0.6
    True
    """
    mistakes, shares, where, cost, counted, aim = Mistakes(), Shares(), None, None, None, None
    with mistakes.noted():
        _check(levels, blur, method, kind)
    with mistakes.noted():
        _check_users(users)
    with mistakes.noted():
        shares = Shares(frames, maps, mass_per_period, mass_per_value)
    with mistakes.noted():
        _check_pooling(pooling, shares)
    with mistakes.noted():
        counted = _counted(rows, rows_per_user, users)
    with mistakes.noted():
        cost = None if epsilon is None else float(exact(epsilon, name="epsilon"))
    with mistakes.noted():
        where = area if area is None or isinstance(area, Area) else public_area(area, levels=levels)
    side = None if where is None else where.cell_size[0] * where.grid.side
    metres = side if where is not None and where.unit == "m" else None
    with mistakes.noted():
        aim = parse_target(target, metres=metres) if isinstance(target, str) else target
        if aim is not None:
            check_target(aim.metric, aim.value)
    mistakes.tell()
    plan = HeatmapPlan(
        kind=kind,
        users=users,
        epsilon=cost,
        target=aim,
        side=side,
        side_unit="m" if where is None else where.unit or "units",
        shares=shares,
        counted=counted,
        pooled=pooling == "partial",
    )
    one = plan.users_a_map
    if cost is not None and shares.count > 1:
        mass = None if one is None else one / shares.of_a_user
        many = forecast_maps(shares, cost, users=mass, kind=kind)
        plan = replace(plan, many=many, forecast=many.forecast)
    elif one is not None and cost is not None:
        plan = replace(plan, forecast=forecast(one, cost, kind=kind))
    if (one is None or cost is None) and aim is None:
        return replace(plan, points=_points(plan))
    if aim is None:
        return plan
    if one is None and cost is None:
        by_users = tuple(UsersRequirement(n, _epsilon(plan, aim, n)) for n in USERS)
        return replace(plan, epsilon_by_users=by_users)
    return replace(
        plan,
        epsilon_required=None if one is None else _epsilon(plan, aim, one / plan.shares.of_a_user),
        users_required=None if cost is None else _users(plan, aim, cost),
    )


def _check_users(users: float | None) -> None:
    if users is not None and not (isinstance(users, Real) and math.isfinite(users) and users > 0):
        raise InvalidParameter(
            f"users must be a number above 0, got {users!r}; nothing was forecast"
        )


def _check_pooling(kind: PoolingKind, shares: Shares) -> None:
    check_pooling_kind(kind, "nothing was forecast")
    if kind != "none" and shares.count == 1:
        raise InvalidParameter(
            "`pooling` shares strength between several maps: say how many by `frames` or `maps`; "
            "nothing was forecast"
        )


def _counted(rows: int | None, cap: int | None, users: float | None) -> CountedRows | None:
    if (rows is None) != (cap is None):
        raise InvalidParameter(
            "a plan of counted rows takes `rows` (about how many there are) and `rows_per_user`, got "
            "only one of them; nothing was forecast"
        )
    return None if rows is None or cap is None else CountedRows(rows, cap, users)


def _epsilon(plan: HeatmapPlan, aim: Target, users: float) -> Requirement:
    """The epsilon that the target takes in each map, with so many users in all."""
    try:
        share = users * plan.shares.of_a_user
        return required_epsilon(aim.metric, aim.value, users=share, kind=plan.kind)
    except InvalidParameter:
        if plan.shares.count == 1:
            raise
        return Requirement(None, None, None)  # fewer in each map than were simulated


def _users(plan: HeatmapPlan, aim: Target, epsilon: float) -> Requirement:
    """The users in all that the target takes in each map."""
    found = required_users(aim.metric, aim.value, epsilon=epsilon, kind=plan.kind)
    lucky, usual, safe = (
        None if one is None else math.ceil(one / plan.shares.of_a_user)
        for one in (found.lucky, found.usual, found.safe)
    )
    return Requirement(lucky, usual, safe)


def least_epsilon(plan: HeatmapPlan, metric: Metric, users: float) -> float | None:
    """The least epsilon at which a map of so many users in all was simulated."""
    return _epsilon(plan, Target(metric, EASIEST[metric]), users).lucky


def least_users(plan: HeatmapPlan, metric: Metric, epsilon: float) -> float | None:
    """The least number of users in all of which a map at this epsilon was simulated."""
    return _users(plan, Target(metric, EASIEST[metric]), epsilon).lucky


def expected_maps(
    area: Area,
    epsilon: Number,
    *,
    method: str,
    users: float | None = None,
    groups: Groups = None,
) -> ManyMaps | None:
    """What each map of a release will be like; None for one of which nothing is known, or simulated."""
    shares = _shares(groups)
    if users is None and shares.count == 1:
        return None
    _check_users(users)
    kind: Kind = "gaze" if area.kind == "pixels" else "places"
    try:
        _check(area.grid.levels, BLUR, method, kind)
        return forecast_maps(shares, float(exact(epsilon, name="epsilon")), users=users, kind=kind)
    except InvalidParameter:  # another method, fineness or epsilon than was simulated
        return None


def _shares(groups: Groups) -> Shares:
    """How the maps share each user's mass."""
    parts: tuple[Any, ...] = groups.parts if isinstance(groups, Pairs) else (groups,)
    if any(isinstance(one, Periods) for one in parts):
        frames = math.prod(one.count for one in parts if isinstance(one, Periods))
        per_frame = any(isinstance(one, Periods) and one.mass_per_period for one in parts)
    else:
        frames, per_frame = 1, False
    per_map = any(isinstance(one, Values) and one.mass_per_value for one in parts)
    return Shares(frames, count_of(groups) // frames, per_frame, per_map)


def parse_target(text: str, *, metres: float | None = None) -> Target:
    """A metric and the value it should reach; a distance in metres on a map whose side is so long.

    >>> parse_target("similarity=0.7"), parse_target("emd=200m", metres=10_000)
    (Target(metric='similarity', value=0.7), Target(metric='emd', value=0.02))
    """
    name, _, number = text.partition("=")
    if name.strip().lower() == "emd" and number.strip().endswith("m"):
        if metres is None:
            raise InvalidParameter(
                f"a wanted emd is in sides of the map, and in metres only where bounds say how long one "
                f"is, got {text!r}; nothing was forecast"
            )
        with suppress(ValueError):
            return Target("emd", float(number.strip().removesuffix("m")) / metres)
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
    by_users = plan.users_a_map is None and plan.epsilon is not None
    one = plan.users_a_map or USUAL_USERS * plan.shares.of_a_user
    # Level beyond the ends of what was simulated.
    fixed = float(plan.epsilon or 0) if by_users else max(float(one), table.users[0])
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


def _points(plan: HeatmapPlan) -> tuple[PlanPoint, ...]:
    """Forecasts along what was not given; over both, points that cannot be forecast have none."""
    kind, share, epsilon, one = plan.kind, plan.shares.of_a_user, plan.epsilon, plan.users_a_map
    if one is None and epsilon is None:
        return tuple(
            PlanPoint(n, cost, _maybe(kind, n * share, cost)) for n in USERS for cost in EPSILONS
        )
    pairs = (
        [(one / share, cost) for cost in EPSILONS]
        if one is not None
        else [(n, epsilon or 0.0) for n in USERS]
    )
    points = tuple(PlanPoint(n, cost, _maybe(kind, n * share, cost)) for n, cost in pairs)
    known = tuple(point for point in points if point.forecast is not None)
    if not known:
        # None of them can be forecast: the last one says why.
        forecast(pairs[-1][0] * share, pairs[-1][1], kind=kind)
    return known


def _maybe(kind: Kind, users: float, epsilon: float) -> Forecast | None:
    try:
        return forecast(users, epsilon, kind=kind)
    except InvalidParameter:
        return None
