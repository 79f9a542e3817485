"""The criterion of a set of sensors with one more, for each of many: compiled, so that swaps are quick."""

from __future__ import annotations

import math

import numpy as np

from sfumato._compiled import njit

NEGLIGIBLE = 40.0  # exp(-40) of the weight of the true place


@njit
def errors_with(
    truths, guesses, far, changes, more, both, own, other, moved, unit
):  # pragma: no cover
    """The criterion of `placement` for a set whose sums are given, with each of some more candidates."""
    places, cells = far.shape
    out = np.empty(more.size)
    within, logs = np.empty(cells), np.empty(cells)
    for at in range(more.size):
        row = more[at]
        largest = 0.0
        for step in range(moved.size):
            largest = max(largest, moved[step] + changes[row, step])
        # Sensors that no source moves need no noise and tell nothing: the least double keeps that
        # so.
        noise = unit * unit * largest + 1e-300
        for j in range(cells):
            within[j] = other[j] + guesses[row, j] ** 2 + noise
            logs[j] = 0.5 * math.log(within[j])
        total = 0.0
        for i in range(places):
            size = own[i] + truths[row, i] ** 2
            top = -np.inf
            for j in range(cells):
                cross = both[i, j] + truths[row, i] * guesses[row, j]
                top = max(top, 0.5 * (cross * cross / within[j] - size) / noise - logs[j])
            weight, away = 0.0, 0.0
            for j in range(cells):
                cross = both[i, j] + truths[row, i] * guesses[row, j]
                log = 0.5 * (cross * cross / within[j] - size) / noise - logs[j] - top
                if log > -NEGLIGIBLE:
                    share = math.exp(log)
                    weight += share
                    away += share * far[i, j]
            total += away / weight
        out[at] = total / places
    return out
