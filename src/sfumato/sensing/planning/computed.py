"""All of a plan of sensors that takes no simulation: it follows from the design alone."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.privacy import ApproxDP
from sfumato.sensing.diagnostics.conditioning import conditioning
from sfumato.sensing.diagnostics.resolution import resolution
from sfumato.sensing.model.operators.weighted import without_gains
from sfumato.sensing.model.site import Site
from sfumato.sensing.planning.design import Design
from sfumato.sensing.planning.papers_bounds import papers_bounds
from sfumato.sensing.release.noise_plan import SensorLoss
from sfumato.sensing.release.readings import plan as plan_noise_of
from sfumato.sensing.release.rounds import DAY, best_guess, cost_after, one_sensor_loss

STATED = "1e-6"
"""The delta at which a release says what a rho means."""


def delta_of(loss: SensorLoss) -> Fraction:
    """The delta of a loss, or that at which a rho, or an epsilon of many readings, is stated."""
    return loss.delta if isinstance(loss, ApproxDP) else Fraction(STATED)


def computed_numbers(design: Design, total: SensorLoss, readings: int | None) -> dict[str, Any]:
    """All that takes no simulation, by the names of the plan's fields."""
    site, delta, count = design.site, delta_of(total), readings or 1
    noise = plan_noise_of(site, design.loss, calibration=design.calibration)
    resolutions: dict[str, Any] = {}
    try:
        resolutions["resolution"] = resolution(site.operator, sigma=noise.sigma)
        if count > 1:
            mean = noise.sigma / np.sqrt(count)
            resolutions["resolution_of_all"] = resolution(site.operator, sigma=float(mean))
    except InvalidParameter as problem:  # more cells than can be looked at
        resolutions = {"no_resolution": str(problem)}
    return {
        "noise": noise,
        "physics": conditioning(site.operator),
        "guess": best_guess(noise, count),
        "one_sensor": one_sensor_loss(noise, delta, count),
        "peak": _peak(site),
        "costs": cost_after(noise, DAY if readings is None else sorted({1, count}), delta=delta),
        "papers": papers_bounds(design.scene, design.loss),
        **resolutions,
    }


def _peak(site: Site) -> float:
    """The most that a sensor reads of one unit, without gains, of some cells all over the site."""
    cells = np.unique(np.linspace(0, site.operator.space.size - 1, 64).astype(np.int64))
    return float(without_gains(site.operator).columns(cells).max())
