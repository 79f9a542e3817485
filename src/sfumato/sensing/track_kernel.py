"""The compiled draw of one path of a hidden Markov model, given how each cell fits each round."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def draw_path(fit, step, chances):
    """A path from its posterior: filter forward, then draw backward [carter94].

    fit: rounds by cells, logarithms of likelihoods. step: the chance of going from row to column. chances:
    a uniform number for each round.
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
