"""The protocol of [gilbert17, sec. 5]: sources on a line, noisy readings, recovery, distance to the truth.

Everything is simulated on made-up sources, and the noise is numpy's: real releases quantise
readings and draw discrete noise (`sfumato.sensing.release`), which protects as much and is slower.
Nothing here protects anybody.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato.errors import SolverFailed
from sfumato.privacy import SwappedCells, gaussian_sigma
from sfumato.sensing import Recovery, heat_line, recover, sensitivity
from sfumato.sensing.model.operators import HeatLine
from sfumato.spaces import Line
from sfumato.transport import emd

FloatArray = npt.NDArray[np.float64]
Radius = Literal["papers"] | None
Axis = Literal["n", "m", "T", "k", "sigma", "epsilon", "delta"]

PAPERS, MIXED, OURS = "papers", "exact noise, papers' radius", "ours"


@dataclass(frozen=True, slots=True)
class Method:
    """A way to choose the noise (where the setting does not give it) and the radius of the recovery."""

    name: str
    calibration: Literal["papers", "analytic"]
    radius: Radius


# With the noise given, as in figures 3 and 5a, the first two would be the same.
METHODS = (
    Method(PAPERS, "papers", "papers"),
    Method(MIXED, "analytic", "papers"),
    Method(OURS, "analytic", None),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One experiment: n cells, m sensors, diffusion time T = mu t (mu = 1/2), k sources, noise.

    Noise is either sigma or, where that is 0, what (epsilon, delta) needs.
    """

    n: int = 100
    m: int = 50
    T: float = 0.05
    k: int = 1
    sigma: float = 0.0
    epsilon: float = 1.0
    delta: float = 0.1

    @property
    def private(self) -> bool:
        """Whether the noise is calibrated and not given."""
        return self.sigma == 0


@dataclass(frozen=True, slots=True)
class Draw:
    """One recovery: `optimal` ones have an error, in EMD and in l1, both vectors scaled to mass 1.

    `even` is the EMD of mass spread evenly over all cells: what one can say without any readings.
    """

    figure: str
    series: str
    axis: str
    x: float
    trial: int
    sigma: float
    status: str
    emd: float
    l1: float
    even: float

    @property
    def answered(self) -> bool:
        """Whether there is an estimate with any mass."""
        return self.status == "optimal"


def generator(*words: object) -> np.random.Generator:
    """Simulation randomness from SHA-256 of what it is for: nobody chooses a seed."""
    digest = hashlib.sha256("|".join(map(str, ("sensors", *words))).encode()).digest()
    return np.random.default_rng(list(digest))


def place_sources(line: Line, k: int, rng: np.random.Generator) -> FloatArray:
    """So many unit sources: one is always at 0.5, more are at different random cells [gilbert17, sec. 5]."""
    truth = np.zeros(line.size)
    truth[line.size // 2 - 1 if k == 1 else rng.choice(line.size, k, replace=False)] = 1.0
    return truth


def noise_of(setting: Setting, line: HeatLine, method: Method) -> float:
    """The deviation of the noise on one reading."""
    if not setting.private:
        return setting.sigma
    moved = sensitivity(line, SwappedCells(1)).l2
    return gaussian_sigma(
        setting.epsilon, setting.delta, sensitivity=moved, method=method.calibration
    )


def attempt(line: HeatLine, readings: FloatArray, sigma: float, radius: Radius) -> Recovery | None:
    """A recovery, or None where the solver could not prove its answer."""
    try:
        return recover(line, readings, sigma=sigma, radius=radius)
    except SolverFailed:
        return None


def errors(truth: FloatArray, found: Recovery | None, line: Line) -> tuple[str, float, float]:
    """Status, EMD and l1 distance of vectors scaled to mass 1; nan where there is no estimate."""
    if found is None:
        return "failed", math.nan, math.nan
    if found.status != "optimal":
        return found.status, math.nan, math.nan
    distance = emd(truth, found.estimate, line, normalize=True).value
    apart = np.abs(truth / truth.sum() - found.estimate / found.estimate.sum()).sum()
    return found.status, distance, float(apart)


def methods_for(setting: Setting) -> tuple[Method, ...]:
    """The methods that differ in a setting."""
    return METHODS if setting.private else (METHODS[0], METHODS[2])


def run_point(figure: str, setting: Setting, axis: Axis, trials: int) -> Iterator[Draw]:
    """All methods on the same sources and the same noise up to its scale."""
    line = heat_line(sources=setting.n, sensors=setting.m, diffusion_time=setting.T)
    scaled = [(method, noise_of(setting, line, method)) for method in methods_for(setting)]
    x = float(getattr(setting, axis))
    for trial in range(trials):
        # Not of n, T, sigma, epsilon: points of a panel then differ by what is on its axis alone.
        rng = generator("draw", setting.k, setting.m, trial)
        truth = place_sources(line.space, setting.k, rng)
        even = emd(truth, np.full(setting.n, 1 / setting.n), line.space, normalize=True).value
        clean, standard = line.readings(truth), rng.standard_normal(setting.m)
        for method, sigma in scaled:
            found = attempt(line, clean + sigma * standard, sigma, method.radius)
            status, distance, apart = errors(truth, found, line.space)
            yield Draw(figure, method.name, axis, x, trial, sigma, status, distance, apart, even)


def run_panel(
    figure: str, base: Setting, axis: Axis, values: Sequence[float], trials: int
) -> list[Draw]:
    """One panel: a setting with one of its numbers on the axis."""
    settings = [at(base, axis, value) for value in values]
    return [draw for setting in settings for draw in run_point(figure, setting, axis, trials)]


def at(base: Setting, axis: Axis, value: float) -> Setting:
    """A setting with one of its numbers replaced."""
    changed: dict[str, Any] = {axis: int(value) if axis in ("n", "m", "k") else value}
    return replace(base, **changed)
