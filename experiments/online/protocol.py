"""Sequences and learners that the tables compare."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from sfumato.online import SEQUENCES, Chooser

FloatArray = npt.NDArray[np.float64]
COUNT = 16
NOISES = (
    "laplace",
    "gumbel",
    "frechet",
    "exponential",
    "pareto",
)  # Weibull noise of shape 1 is exponential


def generator(*words: object) -> np.random.Generator:
    """Simulation randomness from SHA-256 of what it is for: nobody chooses a seed."""
    digest = hashlib.sha256("|".join(map(str, ("online", *words))).encode()).digest()
    return np.random.default_rng(list(digest))


def losses_of(name: str, rounds: int, *, draw: int = 0) -> FloatArray:
    """One of the six sequences; `draw` numbers others of the same kind."""
    words = (name, rounds, draw) if draw else (name, rounds)
    return SEQUENCES[name](rounds, COUNT, rng=generator(*words))


def chosen(losses: FloatArray) -> tuple[Chooser[int], FloatArray, FloatArray]:
    """The shipped chooser after these losses, its plays, and its bound after every round."""
    chooser = Chooser(range(losses.shape[1]))
    plays, bounds = np.empty_like(losses), np.empty(losses.shape[0])
    for round_, row in enumerate(losses):
        plays[round_] = list(chooser.probabilities.values())
        chooser.observe(row)
        bounds[round_] = chooser.bound
    return chooser, plays, bounds
