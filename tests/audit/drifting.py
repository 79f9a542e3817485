"""A mechanism that is private in each run alone, and whose runs depend on each other."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from scipy import signal, stats

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box, FunctionBox


def drifting(length: float, rng: Generator, *, epsilon: float = 1.0) -> Box:
    """Laplace noise that is right for one run, and about the same for so many runs that follow each other."""
    kept = math.exp(-1 / length)
    state = [float(rng.normal())]

    def draw(data: float, runs: int) -> FloatArray:
        shocks = rng.normal(size=runs) * math.sqrt(1 - kept**2)
        path, _ = signal.lfilter([1.0], [1.0, -kept], shocks, zi=[kept * state[0]])
        state[0] = float(path[-1])
        noise = stats.laplace.ppf(stats.norm.cdf(path)) / epsilon
        return np.asarray(np.round((data + noise) * 1024) / 1024)

    return FunctionBox(draw, "drifting")
