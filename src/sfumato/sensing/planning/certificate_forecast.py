"""What a recovery will be certified to be off at most, before anything is deployed: a few readings made up."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from sfumato._types import FloatArray
from sfumato.errors import SolverFailed
from sfumato.sensing.planning.forecast import Scene, draw_trials, sources_of
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.certified_error import (
    ErrorCertificate,
    LaplaceNoise,
    strong_directions,
)
from sfumato.sensing.recovery.error_bound import LEVEL, certifiable, certify_error
from sfumato.sensing.recovery.estimators.min_radius import recover_min_radius
from sfumato.spaces import Grid, Line

DRAWS, DRAWS_SLOW = 3, 1
# Cells up to which so many draws take two seconds or less.
FEW_DIRECTIONS = 16
QUICK_LINE, SLOW_LINE, SLOW_PLANE, SLOW_ELSEWHERE = 256, 512, 1024, 256


@dataclass(frozen=True, slots=True)
class CertificateForecast:
    """How far R will be certified to be from the sources at most, whatever they are; in the space's unit.

    A median of few draws, so a first digit and no more. The bound that a recovery states holds by itself: this
    says how wide it will be about.

    Attributes:
        level: The chance with which such a bound holds, over the noise.
        bound: The median bound of R; None where nothing was tried, or no draw was certified.
        low: The smallest of them.
        high: The largest.
        least: On a line: the median of the least that any answer could be certified; else None.
        draws: How many readings were made up.
        none: In how many of them nothing was certified.
        why_not: Why nothing was tried; "" if it was.
    """

    level: float
    bound: float | None
    low: float | None
    high: float | None
    least: float | None
    draws: int
    none: int
    why_not: str = ""

    def to_json(self) -> dict[str, Any]:
        """All of it in numbers."""
        return asdict(self)

    @staticmethod
    def from_json(data: Any) -> CertificateForecast:
        """The forecast that a JSON object states."""
        return CertificateForecast(**data)


def forecast_certificate(
    scene: Scene, *, rng: np.random.Generator, max_draws: int = DRAWS, laplace: bool = False
) -> CertificateForecast:
    """Certify R on a few made-up readings of a scene, where that takes no more than about two seconds.

    >>> from sfumato.sensing.model.operators.heat_line import heat_line
    >>> line = heat_line(sources=20, sensors=20, diffusion_time=0.005)
    >>> found = forecast_certificate(Scene(line, 0.01), rng=np.random.default_rng(1), max_draws=1)
    >>> found.bound < 0.1, found.draws, found.none
    (True, 1, 0)
    """
    draws, why_not = _draws(scene)
    bounds, leasts = list[float](), list[float]()
    trials = draw_trials(scene, min(draws, max_draws), rng=rng)
    operator = scene.operator
    for trial in trials:
        noise = _as_laplace(trial.noise) if laplace else trial.noise
        y = operator.readings(sources_of(scene, trial)) + scene.sigma * noise
        try:
            found = recover_min_radius(operator, y, sigma=scene.sigma)
        except SolverFailed:
            continue
        cells = found.support
        answer = Estimate(operator, operator.space.places(cells), found.estimate[cells])
        proved = certify_error(
            operator, y, answer, sigma=scene.sigma, laplace=LaplaceNoise() if laplace else None
        )
        if proved is None or not math.isfinite(proved.bound):
            continue
        bounds.append(proved.bound)
        leasts += [proved.least] if isinstance(proved, ErrorCertificate) else []
    return CertificateForecast(
        LEVEL,
        float(np.median(bounds)) if bounds else None,
        min(bounds, default=None),
        max(bounds, default=None),
        float(np.median(leasts)) if leasts else None,
        len(trials),
        len(trials) - len(bounds),
        why_not,
    )


def _as_laplace(normal: FloatArray) -> FloatArray:
    """Laplace numbers of deviation 1 that are as far out as these are of the normal law."""
    return np.asarray(-np.sign(normal) * math.sqrt(0.5) * (math.log(2) + log_ndtr(-np.abs(normal))))


def _draws(scene: Scene) -> tuple[int, str]:
    """How many readings to make up, and why none."""
    operator = scene.operator
    cells = operator.space.size
    if not certifiable(operator):
        return 0, "there are too many cells or sensors for a certificate"
    match operator.space:
        case Line():
            most = SLOW_LINE
            seen = strong_directions(operator, sigma=scene.sigma, max_mass=1.0, offset=False)
            if cells <= QUICK_LINE and seen.shape[1] <= FEW_DIRECTIONS:
                return DRAWS, ""
        case Grid():
            most = SLOW_PLANE
        case _:
            most = SLOW_ELSEWHERE
    if cells <= most:
        return DRAWS_SLOW, ""
    return 0, f"with {cells:,} cells it takes longer than a plan should"
