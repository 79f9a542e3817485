"""Six sequences of losses in [0, 1], fixed before the first play, on which learners are compared.

Each is a table with a row for every round and a column for every candidate.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter


class LossSequence(Protocol):
    """So many rounds of losses for so many candidates, from a generator."""

    def __call__(self, rounds: int, count: int, *, rng: np.random.Generator) -> FloatArray:
        """One row for each round."""


def leader_killer(rounds: int, count: int, *, rng: np.random.Generator) -> FloatArray:  # noqa: ARG001  all alike
    """Losses that hit whoever leads: two candidates take turns, half a loss apart; the others always lose.

    The example of [mcmillan18, sec. 12.1] with losses instead of signs.

    Args:
        rounds: How many rounds, at least 1.
        count: How many candidates, at least 2.
        rng: Where chance comes from, if there is any.

    Returns:
        A table of losses in [0, 1], one row for each round.

    Raises:
        InvalidParameter: There are fewer rounds or candidates.

    """
    losses = _empty(rounds, count)
    losses[0, 0] = 0.5
    losses[1::2, 1] = 1.0
    losses[2::2, 0] = 1.0
    losses[:, 2:] = 1.0
    return losses


def round_robin(rounds: int, count: int, *, rng: np.random.Generator) -> FloatArray:  # noqa: ARG001  all alike
    """One candidate loses in every round, each in its turn."""
    losses = _empty(rounds, count)
    losses[np.arange(rounds), np.arange(rounds) % count] = 1.0
    return losses


def fair_coins(rounds: int, count: int, *, rng: np.random.Generator) -> FloatArray:
    """Every candidate loses every other round, by chance.

    Args:
        rounds: How many rounds, at least 1.
        count: How many candidates, at least 2.
        rng: Where chance comes from, if there is any.

    Returns:
        A table of losses in [0, 1], one row for each round.

    Raises:
        InvalidParameter: There are fewer rounds or candidates.

    """
    return (rng.random(_empty(rounds, count).shape) < 0.5).astype(np.float64)


def one_good(rounds: int, count: int, *, rng: np.random.Generator) -> FloatArray:
    """One candidate loses once in a hundred rounds, the others every other round.

    Args:
        rounds: How many rounds, at least 1.
        count: How many candidates, at least 2.
        rng: Where chance comes from, if there is any.

    Returns:
        A table of losses in [0, 1], one row for each round.

    Raises:
        InvalidParameter: There are fewer rounds or candidates.

    """
    chance = np.full(count, 0.5)
    chance[count // 2] = 0.01
    return (rng.random(_empty(rounds, count).shape) < chance).astype(np.float64)


def switching(rounds: int, count: int, *, rng: np.random.Generator) -> FloatArray:
    """The best candidate changes after each quarter."""
    chance = np.full(_empty(rounds, count).shape, 0.6)
    best = np.minimum(4 * np.arange(rounds) // rounds, 3) % count
    chance[np.arange(rounds), best] = 0.2
    return (rng.random(chance.shape) < chance).astype(np.float64)


def perfect(rounds: int, count: int, *, rng: np.random.Generator) -> FloatArray:
    """The first candidate never loses, the others every other round."""
    losses = fair_coins(rounds, count, rng=rng)
    losses[:, 0] = 0.0
    return losses


SEQUENCES: dict[str, LossSequence] = {
    "leader killer": leader_killer,
    "round robin": round_robin,
    "fair coins": fair_coins,
    "one good": one_good,
    "switching": switching,
    "perfect": perfect,
}


def _empty(rounds: int, count: int) -> FloatArray:
    if rounds < 1 or count < 2:
        raise InvalidParameter(
            f"a sequence needs at least 1 round and 2 candidates, got {rounds} and {count}; nothing was made"
        )
    return np.zeros((rounds, count))
