"""The sensors, or the epsilon, that a target error takes: in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.privacy import ZCDP, ApproxDP, PureDP, as_approx
from sfumato.sensing.render.plan import axis_name, called, interval, left_out
from sfumato.sensing.render.words import many, short, up

if TYPE_CHECKING:
    from sfumato.sensing.planning.design import Axis, Design
    from sfumato.sensing.planning.forecast import ErrorForecast
    from sfumato.sensing.planning.requirement import Requirement
    from sfumato.sensing.release.noise_plan import SensorLoss


def required_lines(
    design: Design,
    found: Sequence[Requirement],
    *,
    even: float,
    total: SensorLoss,
    readings: int | None,
) -> list[str]:
    """The sensors and the epsilon that a wanted error takes, and how sure that is."""
    lines = []
    if even <= found[0].target:
        lines.append(
            f"without any reading the mean error is {short(even)}: what is wanted takes no sensor at all"
        )
    for one in found:
        name = axis_name(design, one.axis)
        rest = (
            f"at {axis_name(design, 'cost')} {design.cost:.3g}"
            if one.axis == "sensors"
            else f"with {many(len(design.site.sensors), 'sensor')}"
        )
        aim = f"a mean error of {one.target:g} {rest}"
        first, last = (_amount(one.axis, name, end) for end in one.tried)
        if one.value is None:
            chance = " (within chance it may be)" if one.best_error.low <= one.target else ""
            lines.append(
                f"{aim} was not reached from {first} to {last} ({called(one.estimator)}){chance}"
            )
        else:
            about = _amount(one.axis, name, one.value)
            about += ", the least tried" if one.value <= one.tried[0] else ""
            lines.append(f"{aim} {_takes(one, name, about)} ({called(one.estimator)})")
            if one.axis == "cost" and readings is not None:
                lines.append(_together(one.value, readings, total))
        if one.axis == "sensors":
            lines += [_little(one, name), *([_so(one, name)] if even > one.target else [])]
        tried = [
            f"{_amount(one.axis, name, x)} {short(y.mean)} ({_of(y)})" for x, y in one.means.items()
        ]
        lines.append(f"tried, with mean errors: {'; '.join(tried)}")
        lines += left_out(list(one.means.values()))
    return lines


def _of(one: ErrorForecast) -> str:
    return f"{interval(one)}, {one.answers} trials"


def _takes(one: Requirement, name: str, about: str) -> str:
    """What is needed, and which values are too little, and enough, each with 95 %."""
    after = min((x for x in one.means if x >= (one.value or 0)), default=one.best)
    if one.means[after].mean == 0:
        return f"takes about {about}: no trial was wrong with {_amount(one.axis, name, after)}"
    few = (
        None
        if one.too_little is None
        else f"{_amount(one.axis, name, one.too_little)} {_little_word(one)}"
    )
    if one.surely is None:
        sure = f"; {few}, with 95 %" if few else ""
        # Where errors hardly fall with more sensors, where they cross is chance: not a number to
        # buy by.
        may = "" if one.axis == "sensors" else f"{about} may reach it, "
        return f"is at the edge: {may}nothing tried around it surely does{sure}"
    lots = f"{_amount(one.axis, name, one.surely)} {_verb(one.axis, one.surely)} enough"
    return f"takes about {about}: {f'{few} and {lots}, each' if few else f'{lots},'} with 95 %"


def _little(one: Requirement, name: str) -> str:
    """From where on more sensors buy little."""
    least = f"{short(one.best_error.mean)} ({interval(one.best_error)})"
    best = f"the least mean error of those tried is {least}, with "
    if one.enough == one.best:
        return f"{best}{_amount(one.axis, name, one.best)}"
    return (
        f"{best}{_amount(one.axis, name, one.best)}; {_amount(one.axis, name, one.enough)} "
        f"come{'s' * (math.ceil(one.enough) == 1)} within a tenth of it, up to chance: more buy little"
    )


def _so(one: Requirement, name: str) -> str:
    """What to buy, and what that gives: enough sensors surely, or those from where on more buy little."""
    count = one.enough if one.surely is None else one.surely
    got = one.means[count]
    if got.low > one.target:
        return (
            f"so no: no number of sensors tried brings a mean error within {one.target:g}; buying more does "
            f"not help, since {_amount(one.axis, name, count)} give {short(got.mean)} ({interval(got)})"
        )
    verdict = "is" if got.high <= one.target else "may be"
    return (
        f"so buy {_amount(one.axis, name, count)}, for a mean error of {short(got.mean)} "
        f"({interval(got)}), which {verdict} within {one.target:g}"
    )


def _together(rho: float, readings: int, total: SensorLoss) -> str:
    """What so many readings of this rho, or epsilon alone, cost in the terms that were asked for."""
    if isinstance(total, PureDP):
        cost = f"epsilon {up(rho * readings)}"
        return f"that is of each reading; together, {many(readings, 'reading')} cost {cost}"
    all_of_it = ZCDP(Fraction(rho) * readings)
    cost = f"rho {up(float(all_of_it.rho))}"
    if isinstance(total, ApproxDP):
        cost = f"epsilon {up(float(as_approx(all_of_it, total.delta).epsilon))} at delta {float(total.delta):g}"
    return f"that is of each reading; together, {many(readings, 'reading')} cost {cost}"


def _little_word(one: Requirement) -> str:
    few = "too few" if one.axis == "sensors" else "too little"
    return f"{_verb(one.axis, one.too_little or 0.0)} {few}"


def _verb(axis: Axis, value: float) -> str:
    return "are" if axis == "sensors" and math.ceil(value) != 1 else "is"


def _amount(axis: Axis, name: str, value: float) -> str:
    return many(math.ceil(value), "sensor") if axis == "sensors" else f"{name} {value:.2g}"
