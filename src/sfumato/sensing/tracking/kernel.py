"""Compiled draws of a path of a hidden Markov model, and of who of two went along which path when."""

from __future__ import annotations

import numpy as np

from sfumato._compiled import njit


@njit
def draw_path(fit, step, chances):
    """A path from its posterior: filter forward, then draw backward [carter94].

    fit: rounds by cells, logarithms of likelihoods. step: the chance of going from row to column.
    chances: a uniform number for each round.
    """
    rounds, n = fit.shape
    filtered = np.empty((rounds, n))
    for at in range(rounds):
        ahead = np.full(n, 1.0 / n) if at == 0 else filtered[at - 1] @ step
        filtered[at] = ahead * np.exp(fit[at] - fit[at].max())
        filtered[at] /= filtered[at].sum()
    path = np.empty(rounds, dtype=np.int64)
    for at in range(rounds - 1, -1, -1):
        weights = filtered[at].copy()
        if at < rounds - 1:
            for cell in range(n):
                weights[cell] *= step[cell, path[at + 1]]
        aim = chances[at] * weights.sum()
        reached, chosen = 0.0, n - 1
        for cell in range(n):
            reached += weights[cell]
            if reached > aim:
                chosen = cell
                break
        path[at] = chosen
    return path


@njit
def draw_swaps(gain, keep, swap, chances):
    """In which rounds two sources trade places, from its posterior: filter forward, then draw backward.

    All in logarithms. gain: for each round, by how much readings are likelier if they trade places
    in it. keep, swap: for each step, how likely both are if they trade in both of its rounds or in
    neither, and if in one of them. chances: a uniform number for each round.
    """
    rounds = len(gain)
    stayed, traded = np.empty(rounds), np.empty(rounds)
    stayed[0], traded[0] = 0.0, gain[0]
    for at in range(1, rounds):
        likely, other = keep[at - 1], swap[at - 1]
        stayed[at] = np.logaddexp(stayed[at - 1] + likely, traded[at - 1] + other)
        traded[at] = np.logaddexp(stayed[at - 1] + other, traded[at - 1] + likely) + gain[at]
    out = np.empty(rounds, dtype=np.bool_)
    for at in range(rounds - 1, -1, -1):
        odds = traded[at] - stayed[at]
        if at < rounds - 1:
            odds += (1.0 if out[at + 1] else -1.0) * (keep[at] - swap[at])
        out[at] = chances[at] * (1.0 + np.exp(-odds)) < 1.0
    return out
