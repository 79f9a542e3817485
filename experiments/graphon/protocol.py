"""Models for the experiments: seeds nobody chose, random contrasts, the packing family, points of means."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from experiments.sensors.points import Point, mean

from sfumato.graphon import BlockGraphon, distance

FloatArray = npt.NDArray[np.float64]


def generator(*words: object) -> np.random.Generator:
    """Simulation randomness from SHA-256 of what it is for: nobody chooses a seed."""
    digest = hashlib.sha256("|".join(map(str, ("graphon", *words))).encode()).digest()
    return np.random.default_rng(list(digest))


def symmetric(entries: FloatArray) -> FloatArray:
    """The upper half of a square matrix, mirrored."""
    return np.asarray(np.triu(entries) + np.triu(entries, 1).T)


def contrasted(
    k: int, density: float, rng: np.random.Generator, *, low: float = 0.2
) -> BlockGraphon:
    """Each two blocks are joined with the density or with `low` of it, by a coin."""
    coins = symmetric(rng.integers(0, 2, (k, k)).astype(np.float64))
    return BlockGraphon(density * (low + (1 - low) * coins))


def packed(
    n: int, k: int, density: float, rng: np.random.Generator, *, c: float = 0.25
) -> BlockGraphon:
    """A member of the family of [mcmillan18, (5.9)]: rho (1/2 +- c min(1, k / (n sqrt(rho))))."""
    coins = symmetric(rng.integers(0, 2, (k, k)).astype(np.float64))
    contrast = c * min(1.0, k / (n * math.sqrt(density)))
    return BlockGraphon(density * (0.5 + contrast * (2 * coins - 1)))


def definite(k: int, rng: np.random.Generator) -> BlockGraphon:
    """Chances whose matrix is positive semidefinite."""
    root = rng.normal(size=(k, k))
    square = root @ root.T
    return BlockGraphon((1 + square / np.abs(square).max()) / 2)


def apart(one: BlockGraphon, other: BlockGraphon) -> float:
    """delta_2 as nearly as it is found: the upper end."""
    return distance(one, other).upper


def mean_point(figure: str, series: str, axis: str, x: float, values: Sequence[float]) -> Point:
    """The mean of some values with its interval."""
    return Point(figure, series, "value", axis, x, *mean(np.array(values)), len(values))
