"""The noise of a plan in words, where each sensor has its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sfumato.sensing.model.sensitivity import per_sensor_loss
from sfumato.sensing.render.words import many, up

if TYPE_CHECKING:
    from sfumato.sensing.model.reading_unit import ReadingUnit
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


def noise_each_lines(plan: SensorPlan) -> list[str]:
    """What noise for each sensor gains, and what it costs if the physics is not as it is thought to be."""
    found = plan.each
    if found is None:
        return []
    if not found.used:
        return [
            f"noise for each sensor would tell no more: at most {found.most:.3g} times the information; one "
            "sigma is kept"
        ]
    about = "which community mass is in" if found.wanted == "communities" else "neighboring places"
    off = found.site.off
    listed_off = ", ".join(off[:5]) + (", ..." if len(off) > 5 else "")
    return [
        f"noise for each sensor tells {found.gain:.3g} times as much of {about} as one sigma does at the same "
        f"cost; no weights tell more than {found.most:.3g} times",
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
