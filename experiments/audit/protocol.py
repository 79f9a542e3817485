"""Cases for the testers: laws on a few outputs, and how often tests of their counts accept."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato.privacy.accounting import hockey_stick

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Laws = tuple[FloatArray, FloatArray]


def generator(*words: object) -> np.random.Generator:
    """Simulation randomness from SHA-256 of what it is for: nobody chooses a seed."""
    digest = hashlib.sha256("|".join(map(str, ("audit", *words))).encode()).digest()
    return np.random.default_rng(list(digest))


def spread(laws: Laws, outputs: int) -> Laws:
    """Laws on two outputs with each divided evenly into half of all outputs: the same privacy."""
    half = outputs // 2
    return np.repeat(laws[0] / half, half), np.repeat(laws[1] / half, half)


def response(outputs: int, epsilon: float) -> Laws:
    """Randomised response with so many answers: the truth e**epsilon times likelier than each other one."""
    first = np.ones(outputs)
    first[0] = math.exp(epsilon)
    return _pair(first, np.roll(first, 1))


def geometric(outputs: int, epsilon: float) -> Laws:
    """The truncated geometric mechanism on 0, 1, ...: neighbors are two counts in the middle."""
    places = np.arange(outputs)
    middle = outputs // 2
    return _clipped(lambda at: math.exp(-epsilon) ** np.abs(at), places, (middle - 1, middle))


def gaussian(outputs: int, sigma: float) -> Laws:
    """Discrete Gaussian noise, clipped: neighbors differ by one."""
    places = np.arange(outputs)
    middle = outputs // 2
    return _clipped(lambda at: np.exp(-(at**2) / (2 * sigma**2)), places, (middle, middle + 1))


def worst(laws: Laws, epsilon: float) -> float:
    """The delta of a pair at epsilon, in the worse order."""
    return max(float(hockey_stick(*both, epsilon=epsilon)) for both in (laws, laws[::-1]))


def accepted(decide: Callable[[IntArray, IntArray], bool], x: IntArray, y: IntArray) -> int:
    """How many of many tests accept."""
    return sum(decide(one, other) for one, other in zip(x, y, strict=True))


def draw(
    rng: np.random.Generator, laws: Laws, samples: int, trials: int
) -> tuple[IntArray, IntArray]:
    """Counts of so many samples of each law, many times."""
    return rng.multinomial(samples, laws[0], trials), rng.multinomial(samples, laws[1], trials)


def _clipped(
    shape: Callable[[FloatArray], FloatArray], places: IntArray, centers: tuple[int, int]
) -> Laws:
    far = np.arange(-400, 401, dtype=np.float64)
    noise = shape(far) / shape(far).sum()
    laws = [
        np.bincount(
            np.clip(far.astype(np.int64) + center, 0, places.size - 1),
            weights=noise,
            minlength=places.size,
        )
        for center in centers
    ]
    first, second = (np.asarray(law, dtype=np.float64) for law in laws)
    return _pair(first, second)


def _pair(first: FloatArray, second: FloatArray) -> Laws:
    return first / first.sum(), second / second.sum()
