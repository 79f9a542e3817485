"""A plan of sensors in words, and as JSON has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sfumato.cli.sense_cost import delta_of
from sfumato.cli.sense_words import aligned, many, short, up
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.privacy import ZCDP, ApproxDP
    from sfumato.sensing import Conditioning, NoisePlan, RecoveryBound
    from sfumato.sensing.planning import Axis, Design, ErrorForecast, RecoveryForecast

Told = tuple[dict[str, Any], list[str]]

NAMES = {"least mass": "least mass (R)", "bayes median": "Bayes median"}


def noise(
    design: Design,
    planned: NoisePlan,
    physics: Conditioning,
    *,
    total: ZCDP | ApproxDP,
    readings: int | None,
    details: bool,
) -> Told:
    """The noise, and what physics and noise hide: in one reading, or in all that share a cost."""
    from sfumato.privacy.accounting import encode
    from sfumato.sensing.model.operators import time_of

    found = design.site
    delta, count = delta_of(total), readings or 1
    alone, guess, peak = _one_sensor(planned, delta, count), _guess(planned, count), _peak(design)
    result = {
        "site": found.name,
        "sensors": len(found.sensors),
        "cells": found.operator.space.size,
        "diffusion_time": time_of(found.operator),
        "set": found.sensors.digest,
        "neighbors": encode(found.neighbors),
        "sensitivity": planned.sensitivity.l2,
        "sensitivity_exact": planned.sensitivity.exact,
        "cost": encode(planned.cost),
        "sigma": planned.sigma,
        "lattice": 2.0**planned.exponent,
        "epsilon_of_one_sensor": {"largest": alone, "delta": float(delta), "readings": count},
        "best_guess": guess,
        "largest_reading_of_one_source": peak,
        "physics": list(physics.sentences),
    }
    kind = "" if planned.sensitivity.exact else " at most"
    of = "one reading" if count == 1 else f"all {count:,} readings"
    lines = [
        f"{found.name}: {many(len(found.sensors), 'sensor')}, {found.operator.space.size} cells"
        f"{_time(design)}; {found.neighbors}",
        f"readings move by{kind} {planned.sensitivity.l2:.4g} together, so each sensor adds noise of "
        f"sigma {planned.sigma:.4g} for {planned.cost}",
        f"who must guess between two equally likely places the radius apart, from {of}, is right at most "
        f"{math.ceil(100 * guess)}% of the time",
        f"one source is read as up to {peak:.4g} by a sensor",
        f"one sensor alone would tell no more than epsilon {up(alone)} at delta {float(delta):g} in {of}",
        "where mass is, is hidden up to the radius; how much there is in all is not",
        *(physics.sentences if details else ["--details says what physics hides already"]),
    ]
    return result, lines


def _time(design: Design) -> str:
    """The diffusion time, or the rate of a graph, where there is one."""
    from sfumato.sensing import GraphDiffusion
    from sfumato.sensing.model.operators import time_of

    time = time_of(design.site.operator)
    name = "rate" if isinstance(design.site.operator, GraphDiffusion) else "T"
    return "" if time is None else f", {name} {time:.4g}"


def _guess(planned: NoisePlan, count: int) -> float:
    """How often the best guess between two neighbors is right: 1/2 + half their distance in variation."""
    from statistics import NormalDist

    from sfumato.privacy import ZCDP

    if not isinstance(planned.cost, ZCDP):
        # Two Gaussians a distance d apart are told apart with probability Phi(d / (2 sigma)), and
        # no better.
        return NormalDist().cdf(float(planned.moved / planned.mechanism.sigma) / 2)
    # Of rho only a divergence is proved, Kullback and Leibler's, at most rho [tsybakov09, lem. 2.5
    # and 2.6].
    rho = float(planned.cost.rho) * count
    return 0.5 + 0.5 * min(math.sqrt(rho / 2), 1 - 0.5 * math.exp(-rho))


def _one_sensor(planned: NoisePlan, delta: Any, count: int) -> float:
    """The most that one sensor's readings alone would cost, as an epsilon."""
    from fractions import Fraction

    from sfumato.privacy import ZCDP, as_approx
    from sfumato.privacy.accounting import double_above

    if not isinstance(planned.cost, ZCDP):
        return float(planned.per_sensor_loss(delta).max())
    moved = Fraction(float(planned.per_sensor_moved.max())) / Fraction(2) ** planned.exponent
    rho = (moved / planned.mechanism.sigma) ** 2 / 2 * count
    return float(double_above(as_approx(ZCDP(rho), delta).epsilon))


def resolution_of(design: Design, planned: NoisePlan, readings: int | None) -> Told:
    """How far apart two sources must be to be seen as two, in one reading; and in the mean of all."""
    from sfumato.sensing import resolution

    told: dict[str, Any] = {}
    lines = []
    counts = {"resolution": 1}
    if readings is not None and readings > 1:
        counts["resolution_of_all"] = readings
    for name, count in counts.items():
        try:
            found = resolution(design.site.operator, sigma=planned.sigma / math.sqrt(count))
        except InvalidParameter as problem:  # more cells than can be looked at
            return {"resolution": None}, [
                f"what cannot be told apart was not looked for: {problem}"
            ]
        told[name] = {
            "separation": found.separation,
            "best": found.best,
            "worst": found.worst,
            "confidence": found.confidence,
            "said": found.said,
        }
        lines.append(
            found.said if count == 1 else f"in the mean of {count:,} readings {found.said}"
        )
    return told, lines


def bounds(design: Design) -> Told:
    """What the papers prove of this setting, and what that is worth."""
    from sfumato.sensing import papers_bounds

    found = papers_bounds(design.scene, design.loss)
    if found.noisy is None:
        return {"papers": None}, []
    result = {
        "papers": {
            "noisy": _bound(found.noisy),
            "private": None if found.private is None else _bound(found.private),
            "lower": found.lower,
            "length": found.length,
        }
    }
    fails = [name for name, holds in found.noisy.hypotheses if not holds]
    if fails:
        lines = [f"the papers' bound says nothing here: it needs {fails[0]}"]
    elif math.isinf(found.noisy.bracket):
        lines = ["the papers' bound says nothing here: there is too much noise for it"]
    else:
        own = found.private
        theirs = (
            f", K times {short(own.bracket)} at their own noise"
            if own is not None and own.applies and math.isfinite(own.bracket)
            else ""
        )
        lines = [
            f"the papers bound the error of the least mass by K times {short(found.noisy.bracket)} of the "
            f"line at this noise{theirs}, for sources spread evenly and with a constant K that nobody has "
            "computed"
        ]
    if found.lower is not None:
        lines.append(
            f"whoever estimates, however: the worst sources are missed by {found.lower:.2g} or more"
        )
    return result, lines


def _bound(found: RecoveryBound) -> dict[str, Any]:
    return {
        "bracket": found.bracket,
        "printed": found.printed,
        "hypotheses": dict(found.hypotheses),
        "applies": found.applies,
    }


def forecast(design: Design, foreseen: RecoveryForecast, *, readings: int | None = None) -> Told:
    """What to expect, with its interval, beside what can be said without any reading."""
    some = [one for one in (foreseen.least_mass, foreseen.bayes) if one is not None]
    how = "all of mass 1" if design.masses == "known" else "of masses from 0.3 to 1"
    rows = [
        ["mean error", "", "95 % of later means", "trials"],
        *(
            [
                NAMES[one.estimator],
                short(one.mean),
                interval(one),
                str(one.answers),
            ]
            for one in some
        ),
        ["no reading at all", short(foreseen.even), "", ""],
    ]
    lines = [
        f"simulated: {many(design.sources, 'source')} in random cells, {how}; errors are earth mover's "
        f"distances in {unit(design)}{extent(design)}",
        *aligned(rows),
        *left_out(some),
        _better(foreseen),
    ]
    if foreseen.best.low > foreseen.even:
        lines.append("that is worse than to say, without any reading, that mass is spread evenly")
    elif foreseen.useless:
        lines.append("that is close to guessing: a reading tells hardly more than none")
    if (readings or 1) > 1:
        lines.append(
            f"errors are those of one of {readings:,} readings; averaged over all, sources that stay are "
            "found about as well as by one reading that costs all of it"
        )
    result = {
        "forecast": {
            "sources": design.sources,
            "masses": design.masses,
            "estimators": {one.estimator: {**asdict(one), "width": one.width} for one in some},
            "best": foreseen.best.estimator,
            "even": foreseen.even,
            "close_to_guessing": foreseen.useless,
            "why_no_bayes_median": foreseen.why_not,
            "ratio": None
            if foreseen.ratio is None
            else asdict(foreseen.ratio) | {"sure": foreseen.ratio.sure},
        }
    }
    return result, lines


def left_out(some: Sequence[ErrorForecast]) -> list[str]:
    """What means are not of: a sentence for each estimator of which trials failed."""
    lines = []
    for name, called in NAMES.items():
        own = [one for one in some if one.estimator == name]
        failed, trials = sum(one.failed for one in own), sum(one.trials for one in own)
        if failed:
            lines.append(
                f"{failed:,} of {many(trials, 'trial')} of the {called} had no proven answer and "
                f"{'is' if failed == 1 else 'are'} left out"
            )
    return lines


def _better(foreseen: RecoveryForecast) -> str:
    ratio = foreseen.ratio
    if foreseen.bayes is None:
        return f"the Bayes median was not simulated: {foreseen.why_not}"
    if ratio is None:
        return "neither is better here: no trial was wrong"
    if not math.isfinite(ratio.high):
        return (
            "neither is better here by more than chance: too few trials were wrong to compare them"
        )
    name = "Bayes median" if ratio.better == "bayes median" else "least mass"
    said = f"{_percent(ratio.value)} of the other's error ({_percent(ratio.low)} to {_percent(ratio.high)})"
    if ratio.sure:
        return f"the {name} is better here: {said}"
    return f"neither is better here by more than chance: the {name} has {said}"


def _percent(share: float) -> str:
    """In full percent; a share that is small but not nothing does not look like nothing."""
    return f"{share:.0%}" if share == 0 or share >= 0.01 else "under 1%"


def unit(design: Design) -> str:
    """What distances are measured in, as far as a site knows it."""
    from sfumato.spaces import Graph

    match design.site.operator.space:
        case Graph(lengths=lengths):
            return "edges" if (lengths == 1).all() else "the unit of edges' lengths"
        case _:
            return "the unit of positions"


def extent(design: Design) -> str:
    """How far the site reaches, in that unit: so that nobody takes an error of 0.4 m for 0.4 of the line."""
    from sfumato.sensing.model.operators import begin_of
    from sfumato.spaces import Grid, Line

    match design.site.operator.space:
        case Line() as line:
            begin = begin_of(line)
            return f"; the line goes {f'from {begin:g} ' if begin else ''}to {float(line.positions[-1]):g}"
        case Grid(bounds=(west, south, east, north)):
            return f"; the plane is {east - west:g} by {north - south:g}"
        case _:
            return ""


def axis_name(design: Design, axis: Axis) -> str:
    """What an axis is called on this site."""
    from sfumato.privacy import ApproxDP
    from sfumato.sensing.model.operators import GraphDiffusion

    if axis == "cost":
        return "epsilon" if isinstance(design.loss, ApproxDP) else "rho"
    if axis == "diffusion time" and isinstance(design.site.operator, GraphDiffusion):
        return "rate"
    return axis


def _peak(design: Design) -> float:
    """The most that a sensor reads of one unit, of some cells all over the site."""
    import numpy as np

    operator = design.site.operator
    cells = np.unique(np.linspace(0, operator.space.size - 1, 64).astype(np.int64))
    return float(operator.columns(cells).max())


def interval(one: ErrorForecast) -> str:
    """The ends of an interval; where no trial was wrong there is none."""
    return (
        "no trial was wrong" if math.isinf(one.high) else f"{short(one.low)} to {short(one.high)}"
    )
