"""The noise of a plan in words: one sigma or each sensor its own, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

import numpy as np

from sfumato.sensing.model.sensitivity import per_sensor_loss
from sfumato.sensing.planning.noise_choice import GAIN, LOSES, NOISIER
from sfumato.sensing.render.words import many, up

if TYPE_CHECKING:
    from sfumato.sensing.model.reading_unit import ReadingUnit
    from sfumato.sensing.planning.noise_choice import NoiseChoice
    from sfumato.sensing.planning.noise_weights import NoiseEach
    from sfumato.sensing.release.noise_plan import NoisePlan
    from sfumato.sensing.results.plan import SensorPlan


def sigmas_text(noise: NoisePlan, unit: ReadingUnit) -> str:
    """The deviation of the noise, or those of the sensors with the least and the most."""
    if not noise.gains:
        return unit.text(noise.sigma, ".4g")
    on = noise.sigmas[np.isfinite(noise.sigmas)]
    return f"{unit.number(float(on.min()), '.4g')} to {unit.text(float(on.max()), '.4g')}"


def _if_moved(plan: SensorPlan, times: float) -> float:
    """The epsilon of one reading if neighbors move readings so many times as far as the noise is for."""
    noise = plan.noise
    moved = float(noise.moved) * 2.0**noise.exponent * times
    return float(
        per_sensor_loss(
            replace(noise.sensitivity, per_sensor=np.array([moved])), noise.sigma, plan.delta
        )[0]
    )


def noise_lines_of(plan: SensorPlan) -> list[str]:
    """Which noise it is, why, how to ask for the other, and what noise for each sensor gains and costs."""
    choice = plan.choice
    if choice is None:
        return []
    head = (
        f"noise: {'each sensor its own' if choice.kind == 'each' else 'one sigma for all sensors'}"
    )
    lines = [f"{head}{_why(choice)}"]
    found = choice.each
    if choice.kind == "one" or found is None:
        return lines
    return [*lines, *_gains(plan, found), *_release_with(plan, found)]


def _why(choice: NoiseChoice) -> str:
    """Why it is this noise, and how to ask for the other: the end of a sentence."""
    found, other = choice.each, "`noise='each'` asks for one of its own for each"
    match choice.reason:
        case "asked" if found is not None and choice.kind == "one":
            most = f"{found.max_gain:.3g}"
            at_most = "" if most == "1" else f", at most {most} times the information"
            return f": one of its own for each would tell no more{at_most}"
        case "asked" if choice.kind == "each":
            return ", as asked"
        case "asked":
            return f", as asked; {other}"
        case "has":
            return ", as the site says; make the site without gains for one sigma"
        case "gains":
            noisiest = 0.0 if found is None or found.noisiest is None else found.noisiest
            return (
                f": taken unasked where it tells {GAIN:g} times as much or more, no sensor adds over "
                f"{NOISIER:g} times one sigma (here {noisiest:.4g}), and wrong physics costs at most {LOSES:g} "
                "times as much; `noise='one'` plans one sigma"
            )
        case "little" if found is not None:
            gain = f"{found.gain:.3g}"
            more = "no more" if gain == "1" else f"{gain} times as much"
            return (
                f": one of its own for each would tell {more} of {_about(found)}, and "
                f"is taken unasked from {GAIN:g} times as much on; {other}"
            )
        case "noisier" | "little":
            return f": with one of its own for each some would add over {NOISIER:g} times as much; {other}"
        case "physics":
            times = 0.0 if found is None else found.wrong / found.wrong_of_one
            return (
                ": one of its own for each would tell more, but if the physics is wrong by 10 % neighbors "
                f"would move readings {times:.3g} times as far as with one sigma, which is over {LOSES:g}; "
                f"{other}"
            )
        case "no graph":
            return f": only on a graph of two communities is one for each taken unasked; {other}"
        case "laplace":
            return ": epsilon without a delta takes Laplace noise, which has one scale"
        case "papers":
            return f", as the papers have it; {other}"
        case "compares":
            return (
                f": `curves` and `target` compare sensors that have no noise of their own; {other}"
            )
        case "large":
            return f": what one for each would gain is not looked at unasked on so large a site; {other}"
        case "cannot":
            return f": one for each is not to be had, because {choice.why_not}"
        case _:
            assert_never(choice.reason)


def _about(found: NoiseEach) -> str:
    about = "which community mass is in" if found.target == "communities" else "neighboring places"
    return f"{about}, whatever offset all readings share," if found.offset else about


def _release_with(plan: SensorPlan, found: NoiseEach) -> list[str]:
    """That the gains are in the plan's site, and what the site as it was would do."""
    if plan.choice is None or plan.choice.reason == "has" or found.noisiest is None:
        return []
    sigmas = plan.noise.sigmas[np.isfinite(plan.noise.sigmas)]
    one = plan.design.site.reading_unit.text(float(sigmas.max()) / found.noisiest, ".4g")
    return [
        "release, recover and send with the site that has this noise (`site_out` writes it): with the site as "
        f"it was, all sensors add one sigma of about {one}"
    ]


def _gains(plan: SensorPlan, found: NoiseEach) -> list[str]:
    """What noise for each sensor gains, and what it costs if the physics is not as it is thought to be."""
    off = found.site.off
    listed_off = ", ".join(off[:5]) + (", ..." if len(off) > 5 else "")
    return [
        f"noise for each sensor tells {found.gain:.3g} times as much of {_about(found)} as one sigma does at "
        f"the same cost; no weights tell more than {found.max_gain:.3g} times",
        f"if the physics is wrong by 10 %, neighbors move readings up to {found.wrong:.3g} times as far as the "
        f"noise is for, which is epsilon {up(_if_moved(plan, found.wrong))} at delta {float(plan.delta):g}; "
        f"with one sigma {found.wrong_of_one:.3g} times, epsilon {up(_if_moved(plan, found.wrong_of_one))}",
        *(
            [
                f"{many(len(off), 'sensor')} of {len(found.gains)} switched off, which is a hint that this "
                f"question needs no reading of them: {listed_off}"
            ]
            if off
            else []
        ),
    ]
