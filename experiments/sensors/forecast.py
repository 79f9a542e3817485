"""Whether forecasts of `sense plan` hold: ten settings, each forecast, then measured in 400 other trials.

    python -m experiments.sensors.forecast [--quick] [--least-mass-only]

The settings are fixed here and used for nothing else. It prints a line for each, and ends with exit
code 1 when fewer than nine of ten measured means lie inside, or an interval is wider than 40 % of
its mean.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from experiments.sensors.protocol import generator

from sfumato.privacy import ApproxDP, SwappedCells
from sfumato.sensing import Site, heat_line, heat_plane, plan
from sfumato.sensing.model.operators import Operator, even_places
from sfumato.sensing.planning import (
    ESTIMATORS,
    MAX_TRIALS,
    ErrorForecast,
    Scene,
    SyntheticMasses,
    draw_trials,
    error_of,
    forecast_recovery,
)
from sfumato.spaces import Grid

MEASURED = 400


@dataclass(frozen=True, slots=True)
class Setting:
    """Sensors, diffusion time, epsilon, sources; 100 cells of a line, or 16 x 16 of a plane."""

    m: int
    T: float
    epsilon: float
    k: int
    masses: SyntheticMasses = "known"
    plane: bool = False

    @property
    def scene(self) -> Scene:
        """What is simulated: noise by the analytic calibration at delta 0.1, cells may be swapped."""
        operator: Operator
        if self.plane:
            places = even_places(self.m, np.zeros(2), np.ones(2))
            operator = heat_plane(sources=Grid(4), sensors=places, diffusion_time=self.T)
        else:
            operator = heat_line(sources=100, sensors=self.m, diffusion_time=self.T)
        noise = plan(Site("forecast", operator, SwappedCells(1)), ApproxDP(self.epsilon, "0.1"))
        return Scene(operator, noise.sigma, self.k, self.masses)


SETTINGS = (
    Setting(12, 0.03, 3, 1),
    Setting(60, 0.08, 2, 2, "free"),
    Setting(90, 0.02, 1, 4),
    Setting(25, 0.15, 6, 3, "free"),
    Setting(180, 0.012, 4, 8),
    Setting(40, 0.05, 0.7, 1, "free"),
    Setting(49, 0.015, 3, 1, plane=True),
    Setting(16, 0.06, 8, 2),
    Setting(120, 0.1, 1.5, 5, "free"),
    Setting(75, 0.04, 5, 3),
)


def held(setting: Setting, forecast: ErrorForecast, trials: int) -> tuple[float, bool]:
    """The measured mean of other trials than those of the forecast, and whether it was foreseen."""
    scene = setting.scene
    lots = draw_trials(scene, trials, rng=generator("measured", setting))
    mean = float(np.nanmean([error_of(scene, lot, forecast.estimator) for lot in lots]))
    return mean, forecast.low <= mean <= forecast.high


def main(words: list[str]) -> int:
    """Forecast, measure, compare."""
    trials = 40 if "--quick" in words else MEASURED
    asked = ESTIMATORS[:1] if "--least-mass-only" in words else ESTIMATORS
    settings = SETTINGS[:2] if "--quick" in words else SETTINGS
    good = True
    counted: dict[str, list[bool]] = {}
    for setting in settings:
        found = forecast_recovery(
            setting.scene,
            rng=generator("forecast", setting),
            max_trials=trials
            if "--quick" in words
            else MAX_TRIALS,  # as many as `sense plan` takes
            estimators=asked,
        )
        for one in (found.least_mass, found.bayes):
            if one is None:
                continue
            mean, inside = held(setting, one, trials)
            counted.setdefault(one.estimator, []).append(inside)
            good &= one.width <= 0.4
            print(
                f"{setting}: {one.estimator} {one.mean:.4f}, {one.low:.4f} to {one.high:.4f} "
                f"({100 * one.width:.0f} % wide, {one.trials} trials), measured {mean:.4f}, "
                f"{'inside' if inside else 'OUTSIDE'}",
                flush=True,
            )
    for name, all_of_it in counted.items():
        print(f"{name}: {sum(all_of_it)} of {len(all_of_it)} inside")
        good &= 10 * sum(all_of_it) >= 9 * len(all_of_it)
    return 0 if good or "--quick" in words else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
