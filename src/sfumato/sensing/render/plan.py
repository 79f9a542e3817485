"""A plan of sensors in words: the noise, what to expect, when to read, and what many readings cost.

Long because every part of a plan has its sentences here, in the order in which they are said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.sensing.model.operators.places import begin_of
from sfumato.sensing.planning.outlook import MAX_COST
from sfumato.sensing.render.plan_noise import noise_lines_of, sigmas_text
from sfumato.sensing.render.words import aligned, listed, many, short, up

if TYPE_CHECKING:
    from sfumato.sensing.model.reading_unit import ReadingUnit
    from sfumato.sensing.planning.design import Axis, Curve, Design
    from sfumato.sensing.planning.forecast import ErrorForecast, RecoveryForecast
    from sfumato.sensing.planning.papers_bounds import PapersBounds
    from sfumato.sensing.release.noise_plan import NoisePlan
    from sfumato.sensing.release.rounds import RoundsCost
    from sfumato.sensing.results.plan import SensorPlan

NAMES = {"least mass": "least mass (R)", "bayes median": "Bayes median"}


def called(estimator: str) -> str:
    """What an estimator is called in words: one that somebody registered, by its name."""
    return NAMES.get(estimator, estimator)


def plan_text(plan: SensorPlan, *, details: bool = False, tables: bool = False) -> str:
    """The plan as a command prints it.

    Args:
        plan: The plan.
        details: Whether to say what physics hides.
        tables: Whether to print curves as tables.

    Returns:
        Lines of text.
    """
    from sfumato.sensing.render.plan_curves import curve_tables, not_shown

    design, papers = plan.design, paper_lines(plan.papers)
    lines = plan_lines(plan, details=details)
    if plan.forecast is None:
        hint = ["`sources=1` forecasts how far off answers will be"] if plan.simulates else []
        return "\n".join([*lines, *papers, *hint])
    if not plan.curves:
        return "\n".join([*lines, *papers, not_shown(design, plan.forecast, plan.seconds)])
    lines += curve_tables(design, plan.curves) if tables else []
    times = [curve for curve in plan.curves if curve.axis == "diffusion time"]
    lines += [best_time(design, curve) for curve in times]
    return "\n".join([*lines, *papers])


def plan_lines(plan: SensorPlan, *, details: bool = False) -> list[str]:
    """All but curves and what the papers prove: the noise, what to expect, what readings cost."""
    from sfumato.sensing.render.plan_required import required_lines

    first, second, *more = noise_lines(plan, details=details)
    lines = [outlook_line(plan), first, *assumed_lines(plan), second]
    if plan.forecast is not None:
        lines += forecast_lines(plan.design, plan.forecast, readings=plan.readings)
        lines += certificate_lines(plan)
        if plan.required:
            lines += required_lines(
                plan.design,
                plan.required,
                even=plan.forecast.even,
                total=plan.total,
                readings=plan.readings,
            )
    return [*lines, *more, *resolution_lines(plan), *_cost_lines(plan)]


def outlook_line(plan: SensorPlan) -> str:
    """Will it work? Yes, hardly, or no, why, and what would: one sentence."""
    found, design = plan.outlook, plan.design
    missed = [one for one in plan.required if one.value is None]
    if plan.required and len(missed) == len(plan.required):
        tried = listed([axis_name(design, one.axis) for one in missed], "or")
        best = min(one.best_error.mean for one in missed)
        return (
            f"will it work? no: a mean error of {missed[0].target:g} is not reached by any {tried} tried; the "
            f"least is {short(best)}"
        )
    count = len(design.site.sensors)
    of = "its noise" if count == 1 else "their noise"
    unit = design.site.reading_unit
    where = " by the sensor that tells it best" if plan.noise.gains else ""
    why = (
        f"one source is read as up to {unit.text(found.signal, '.2g')}{where} through noise of sigma "
        f"{unit.text(found.sigma, '.2g')}; "
        f"{many(count, 'sensor')} together see{'s' * (count == 1)} it with {found.seen:.2g} deviations of "
        f"{of} in one reading, and {found.needed:.2g} would do"
    )
    if found.kind == "yes":
        return f"will it work? yes: {why}"
    if found.seen >= found.needed:
        apart = (
            "where it is, is not found well"
            if design.sources == 1
            else f"{many(design.sources, 'source')} are not told apart"
        )
        return f"will it work? {found.kind}: {why}: one source is seen, but {apart}"
    would = []
    name = "rho" if isinstance(plan.total, ZCDP) else "epsilon"
    if found.cost is not None:
        all_of_it = " for all readings together" if (plan.readings or 1) > 1 else ""
        would.append(f"{name} {up(found.cost)}{all_of_it}")
    if found.readings is not None:
        would.append(
            f"{many(found.readings, 'reading')} instead of {plan.readings:,} for the same cost"
        )
    if found.radius is not None:
        would.append(f"a radius of {found.radius:.2g}")
    if found.averaged:
        would.append(f"the mean of all {plan.readings:,} readings, of a source that stays")
    more = f"; it would with about {listed(would, 'or')}" if would else ""
    if found.cost is None:
        more += f"; no budget would, not even {name} {MAX_COST:,.0f}"
    return f"will it work? {found.kind}: {why}{more}"


def noise_lines(plan: SensorPlan, *, details: bool = False) -> list[str]:
    """The noise, and what physics and noise hide: in one reading, or in all that share a cost."""
    site, noise, count = plan.design.site, plan.noise, plan.readings or 1
    kind = "" if noise.sensitivity.exact else " at most"
    # Noise for each sensor is told beside its sigmas; that all have the same is the lesser news.
    choice, same = noise_lines_of(plan), not noise.gains
    of, unit = "one reading" if count == 1 else f"all {count:,} readings", site.reading_unit
    return [
        f"{site.name}: {many(len(site.sensors), 'sensor')}, {site.operator.space.size} cells"
        f"{_time(plan.design)}; {site.neighbors}",
        f"readings move by{kind} {unit.text(noise.sensitivity.l2, '.4g')} together"
        f"{_in_l1(noise, unit)}, so each sensor adds noise of sigma {sigmas_text(noise, unit)} for "
        f"{noise.cost}{_law(noise)}",
        *([] if same else choice),
        *(
            [
                "errors, and what cannot be told apart, are those of Gaussian noise of this deviation: "
                "estimators take it for such"
            ]
            if noise.pure
            else []
        ),
        f"who must guess between two equally likely places the radius apart, from {of}, is right at most "
        f"{math.ceil(100 * plan.guess)}% of the time",
        f"one source is read as up to {unit.text(plan.peak, '.4g')} by a sensor",
        f"one sensor alone would tell no more than epsilon {up(plan.one_sensor)} at delta "
        f"{float(plan.delta):g} in {of}",
        "where mass is, is hidden up to the radius; how much there is in all is not",
        *(plan.physics.sentences if details else ["`details` says what physics hides already"]),
        *(choice if same else []),
    ]


def _in_l1(noise: NoisePlan, unit: ReadingUnit) -> str:
    """How far readings move as Laplace noise counts it."""
    most = noise.sensitivity.l1
    return "" if most is None else f" and by at most {unit.text(most, '.4g')} added up"


def _law(noise: NoisePlan) -> str:
    """What is said of noise that is not Gaussian."""
    return ": Laplace noise of one scale, which needs no delta" if noise.pure else ""


def assumed_lines(plan: SensorPlan) -> list[str]:
    """What was not given and is not known of any real place, though answers hang on it: a sentence."""
    from sfumato.privacy import MovedMass

    if plan.options is None:
        return []
    site, missing = plan.design.site, []
    if plan.options.diffusion_time is None:
        missing.append(
            (f"{time_symbol(plan.design)} {site.operator.time or 0.0:.4g}", "`diffusion_time`")
        )
    if plan.options.radius is None and isinstance(site.neighbors, MovedMass):
        # Every made-up site has a radius.
        missing.append((f"a radius of {float(site.neighbors.radius):.4g}", "`radius`"))
    if not missing:
        return []
    values, options = (" and ".join(part) for part in zip(*missing, strict=True))
    return [f"assumed: {values}; what follows hangs on it, so give your own {options}"]


def time_symbol(design: Design) -> str:
    """What a diffusion time is called in a sentence: T, or the rate of a graph."""
    return "rate" if design.site.operator.time_name == "rate" else "T"


def _time(design: Design) -> str:
    time = design.site.operator.time
    return "" if time is None else f", {time_symbol(design)} {time:.4g}"


def resolution_lines(plan: SensorPlan) -> list[str]:
    """How far apart two sources must be to be seen as two, in one reading and in the mean of all."""
    if plan.resolution is None:
        return [f"what cannot be told apart was not looked for: {plan.no_resolution}"]
    unit = plan.design.site.reading_unit
    lines = [plan.resolution.sentence(unit)]
    if plan.resolution_of_all is not None:
        lines.append(
            f"in the mean of {plan.readings or 1:,} readings "
            f"{plan.resolution_of_all.sentence(unit)}"
        )
    return lines


def paper_lines(found: PapersBounds) -> list[str]:
    """What the papers prove of this setting, and what that is worth."""
    if found.noisy is None:
        return []
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
    return lines


def forecast_lines(
    design: Design, foreseen: RecoveryForecast, *, readings: int | None = None
) -> list[str]:
    """What to expect, with its interval, beside what can be said without any reading."""
    some = foreseen.every
    how = "all of mass 1" if design.masses == "known" else "of masses from 0.3 to 1"
    rows = [
        ["mean error", "", "95 % of later means", "trials"],
        *(
            [
                called(one.estimator),
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
        *(f"{name} was not simulated: {why}" for name, why in foreseen.left_out),
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
    return lines


def certificate_lines(plan: SensorPlan) -> list[str]:
    """What answers will be certified to be off at most, about: a sentence."""
    found = plan.certificate
    if found is None:
        return []
    if found.why_not:
        more = "" if plan.noise.pure else "; a recovery certifies its own"
        return [f"how far off answers are at worst was not tried: {found.why_not}{more}"]
    if found.bound is None or found.low is None or found.high is None:
        return [
            f"no answer would be certified: in {found.draws} of {many(found.draws, 'simulated reading')} "
            "nothing could be"
        ]
    tried = (
        f"{short(found.low)} to {short(found.high)} in {found.draws - found.none} simulated readings"
        if found.draws - found.none > 1
        else "one simulated reading"
    )
    more = "" if found.least is None else f"; of any answer {short(found.least)} or more"
    return [
        f"the certificate will be about {short(found.bound)} ({tried}): with {found.level:.0%} chance R is no "
        f"farther from the sources than it states, whatever they are{more}",
        *(
            [
                f"in {found.none} of {many(found.draws, 'simulated reading')} nothing could be certified"
            ]
            if found.none
            else []
        ),
    ]


def left_out(some: Sequence[ErrorForecast]) -> list[str]:
    """What means are not of: a sentence for each estimator of which trials failed."""
    lines = []
    for name in dict.fromkeys([*NAMES, *(one.estimator for one in some)]):
        own = [one for one in some if one.estimator == name]
        failed, trials = sum(one.failed for one in own), sum(one.trials for one in own)
        if failed:
            lines.append(
                f"{failed:,} of {many(trials, 'trial')} of the {called(name)} had no proven answer and "
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
    if axis == "cost":
        return "rho" if isinstance(design.loss, ZCDP) else "epsilon"
    return design.site.operator.time_name if axis == "diffusion time" else axis


def interval(one: ErrorForecast) -> str:
    """The ends of an interval; where no trial was wrong there is none."""
    return (
        "no trial was wrong" if math.isinf(one.high) else f"{short(one.low)} to {short(one.high)}"
    )


def best_time(design: Design, curve: Curve) -> str:
    """The best time to read, by the better estimator, as far as chance lets anybody say it."""
    name, whose = time_symbol(design), f"for the {called(curve.best_by)}, "
    tried = f"{name} {curve.values[0]:.3g} to {curve.values[-1]:.3g}"
    if not curve.helps:
        return f"{whose}at none of the times tried, {tried}, is a reading better than none by more than chance"
    if len(curve.as_good) == len(curve.values):
        return f"{whose}no time of those tried, {tried}, is better to read at than another by more than chance"
    if len(curve.as_good) > 1:
        best = f"{name} {listed([f'{value:.3g}' for value in curve.as_good])} are equally good to read at"
        best += f", within chance, with the least mean error at {curve.best:.3g}"
    else:
        end = {curve.values[0]: ", the first,", curve.values[-1]: ", the last,"}.get(curve.best, "")
        best = f"{name} {curve.best:.3g}{end} is best to read at"
    return f"{whose}of the times tried, {best}; planned is {design.time:.3g}"


def _cost_lines(plan: SensorPlan) -> list[str]:
    """What many readings cost; and if so many share the cost, what each of them may."""
    rows, shared = plan.costs, plan.shared
    numbers = listed([f"{row.readings:,}" for row in rows])
    what = "reading" if len(rows) == 1 and rows[0].readings == 1 else "readings"
    # One reading costs what was asked; computed from its noise, it is that up to rounding.
    loss = plan.design.loss
    asked = math.inf if isinstance(loss, ZCDP) else float(loss.epsilon)
    costs = listed(
        [up(min(row.epsilon, asked) if row.readings == 1 else row.epsilon) for row in rows]
    )
    lines = [
        f"after {numbers} {what} of the same sources epsilon is {costs}, at delta {float(plan.delta):g}"
    ]
    if plan.readings is None:
        lines += _charged(rows)
    if shared is not None:
        count, stated = shared.readings, shared.stated
        said = (
            ""
            if stated is None
            else f"; it states all of them as {shared.together} (epsilon {up(float(stated.epsilon))} at delta "
            f"{float(stated.delta):g}), the same promise"
        )
        lines.insert(
            0,
            f"{many(count, 'reading')} together may cost {shared.total}, so each has {shared.each}, as "
            f"`sfumato sense release --share {count}` pays it{said}",
        )
    return lines


def _charged(rows: Sequence[RoundsCost]) -> list[str]:
    """What a ledger adds up if each reading is paid like this one: epsilon and delta add, and so does rho."""
    paid = "a ledger that pays each reading like this one adds up"
    shared = "`readings=24` plans 24 of them"
    rho = [up(float(row.charged.rho), 5) for row in rows if isinstance(row.charged, ZCDP)]
    if rho:
        return [
            f"{paid} rho {listed(rho)}, which is that epsilon",
            f"readings can share a budget: {shared}",
        ]
    pure = [up(float(row.charged.epsilon), 5) for row in rows if isinstance(row.charged, PureDP)]
    if pure:
        return [f"{paid} epsilon {listed(pure)}, without a delta"]
    said = [
        f"after {row.readings:,} epsilon {up(float(row.charged.epsilon), 5)}, delta "
        f"{up(float(row.charged.delta), 5)}"
        for row in rows
        if row.readings > 1 and isinstance(row.charged, ApproxDP)
    ]
    beyond = [row.readings for row in rows if row.charged is None]
    if beyond:
        said.append(f"after {beyond[0]:,} a delta of 1 or more, which no budget has")
    return [
        f"{paid} epsilon and delta: {'; '.join(said)}",
        f"readings that share a budget take less of it: {shared}",
    ]
