"""Two boxes that keep an epsilon exactly, for tests that need to know the truth."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box, FunctionBox


def response(epsilon: float, rng: Generator) -> Box:
    """Randomised response: the truth with probability e**epsilon / (1 + e**epsilon)."""

    def draw(data: int, runs: int) -> FloatArray:
        return np.where(rng.random(runs) < 1 / (1 + math.exp(-epsilon)), data, 1 - data).astype(
            float
        )

    return FunctionBox(draw, "randomised response")


def laplace(epsilon: float, rng: Generator) -> Box:
    """Laplace noise on a grid that no bits tell apart, by rounding."""

    def draw(data: float, runs: int) -> FloatArray:
        return np.asarray(np.round((data + rng.laplace(0, 1 / epsilon, runs)) * 1024) / 1024)

    return FunctionBox(draw, "laplace")
