"""What is said of several maps of the same people before they are paid for, and of counted rows."""

from __future__ import annotations

import math

from sfumato.heatmap.analysis.many_maps import USABLE, CountedRows, ManyMaps, Shares
from sfumato.heatmap.measure import Measure, amount_of


def many_words(many: ManyMaps, measure: Measure | None = None) -> str:
    """What to expect of each map, and what would make it usable, in a sentence."""
    unit = measure or Measure()
    if many.users is None:
        return _needed(many, unit)
    about = f"about {amount_of(_rounded(many.users_a_map or 0), unit.name)} a {_one(many.shares)}"
    if many.forecast is None:
        return f"{about}: nothing but noise{_advice(many, unit)}"
    right = many.forecast.similarity
    if many.usable:
        return f"{about}: similarity {right.middle:.2f} is to be expected, 1 is a perfect map"
    if right.middle < USABLE:
        return f"{about}: expect noise, similarity {right.middle:.2f}{_advice(many, unit)}"
    return (
        f"{about}: expect rough maps, similarity {right.middle:.2f}, in difficult places "
        f"{right.lowest:.2f}{_advice(many, unit)}"
    )


def rows_words(counted: CountedRows) -> list[str]:
    """How many users the rows are worth, and whether the cap costs more than it shows."""
    cap, mean = counted.rows_per_user, counted.rows_of_a_user
    like = f"like a map of at most about {amount_of(_rounded(counted.like_users), 'users')}: "
    lines = [
        f"{like}the noise is {cap:,} times a row's, with {amount_of(counted.rows, 'rows')} in all",
    ]
    if counted.better_cap is not None and mean is not None:
        better = CountedRows(counted.rows, counted.better_cap, counted.users)
        lines.append(
            f"the cap costs more than it shows: the average user has {_rounded(mean)} rows; with a cap "
            f"of {counted.better_cap:,} the map would be like one of at most about "
            f"{amount_of(_rounded(better.like_users), 'users')}, and rows above it not counted"
        )
    elif mean is not None and mean > cap:
        lines.append(
            f"the average user has {_rounded(mean)} rows: of those above the cap no row more counts"
        )
    return lines


def pooled_words() -> str:
    """What partial pooling adds to forecasts of maps by themselves, in a sentence."""
    return (
        "forecasts are of each map by itself: pooled, maps that are alike show more at no cost (similarity "
        "about 0.1 higher in simulated towns and check-ins by hour), others do not, and one unlike the "
        "rest may be drawn towards them"
    )


def for_each(shares: Shares) -> str:
    """What a price is of where a user has several masses, each paid for; nothing where it is of all."""
    if shares.masses == 1:
        return ""
    one = "frame" if not shares.mass_per_map else "map"
    return f" for each {one}"


def masses_words(shares: Shares, epsilon: float | None = None) -> str:
    """What maps cost in which everybody has a mass of their own, in a sentence."""
    times = (
        ""
        if epsilon is None
        else f"epsilon {shares.masses * epsilon:g}, {epsilon:g}{for_each(shares)}"
    )
    told = times or f"{shares.masses:,} times the epsilon{for_each(shares)}"
    return f"it costs {told}, unless the ledger protects what lies in one of them"


def _one(shares: Shares) -> str:
    return "frame" if shares.maps == 1 and shares.frames > 1 else "map"


def _needed(many: ManyMaps, measure: Measure) -> str:
    one = _one(many.shares)
    shares = many.shares
    alone = shares.mass_per_frame or (shares.mass_per_map and shares.frames == 1)
    each = "" if alone else " share everybody's mass"
    if many.users_needed is None:
        return f"{counted_maps(many.shares)}{each}: nothing that was simulated makes a {one} usable"
    number = many.users_needed * measure.scale
    # Two digits, rounded up: what is stated is enough.
    digits = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return (
        f"{counted_maps(many.shares)}{each}: a usable {one} (similarity {USABLE:g} in nearly all places) takes "
        f"{amount_of(math.ceil(number / digits) * digits, measure.name)}{_where(shares)}"
    )


def _where(shares: Shares) -> str:
    """Of which maps those are that one usable map takes: a unit such as observer-image is of one image."""
    if shares.masses == 1:
        return " in all"
    if shares.masses == shares.count:
        return " in it"
    return " in each frame" if shares.mass_per_frame else " in its frames"


def _advice(many: ManyMaps, measure: Measure) -> str:
    shares = many.shares
    ways = []
    if many.maps_needed is not None:
        number = f"{many.maps_needed:,}"
        if shares.maps == 1 or shares.mass_per_map:
            ways.append(f"merge to {number} frame{'s' * (many.maps_needed > 1)}")
        else:
            where = " in each frame" if shares.mass_per_frame else " in all"
            ways.append(f"make {number} map{'s' * (many.maps_needed > 1)}{where}")
    if many.epsilon_needed is not None:
        digits = 10.0 ** (math.floor(math.log10(many.epsilon_needed)) - 1)
        least = math.ceil(many.epsilon_needed / digits - 1e-9) * digits
        ways.append(f"take epsilon {least:.10g}{for_each(shares)}")
    if not ways:
        return f"; {_needed(many, measure)}"
    return f"; {' or '.join(ways)} for similarity {USABLE:g} in nearly all places"


def counted_maps(shares: Shares) -> str:
    """How many maps there are, in words."""
    frames, maps = shares.frames, shares.maps
    if frames == 1:
        return "a map" if maps == 1 else f"{maps:,} maps"
    return f"{frames:,} frames" if maps == 1 else f"{frames:,} frames of {maps:,} maps"


def _rounded(users: float) -> str:
    """Two digits at least; tenths only of a few."""
    return f"{users:,.0f}" if users >= 10 else f"{users:.2g}"
