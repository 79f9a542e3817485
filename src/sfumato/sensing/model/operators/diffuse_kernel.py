"""The compiled Chebyshev recurrence of heat on a graph, for one vector or a few side by side."""

from __future__ import annotations

import numpy as np

from sfumato._compiled import inner, njit

LOOSE = {"reassoc", "contract", "nsz"}  # sums in any order; NaN and infinity keep their meaning

SIDE = 8
"""Vectors taken side by side: a node's entries fill one line of the cache, which is fetched once for all."""


@inner(fastmath=LOOSE)
def _step(indptr, indices, data, now, before, out, factor, coefficient):
    """Overwrite before by factor S now - before (the next polynomial) and add coefficient times it to out."""
    for i in range(out.size):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * now[indices[p]]
        total = factor * total - before[i]
        before[i] = total
        out[i] += coefficient * total


@inner(fastmath=LOOSE)
def _step_side(indptr, indices, data, now, before, out, factor, coefficient):
    # Eight names, not an array of eight: they stay in registers.
    for i in range(out.shape[0]):
        t0 = -before[i, 0]
        t1 = -before[i, 1]
        t2 = -before[i, 2]
        t3 = -before[i, 3]
        t4 = -before[i, 4]
        t5 = -before[i, 5]
        t6 = -before[i, 6]
        t7 = -before[i, 7]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            t = factor * data[p]
            t0 += t * now[j, 0]
            t1 += t * now[j, 1]
            t2 += t * now[j, 2]
            t3 += t * now[j, 3]
            t4 += t * now[j, 4]
            t5 += t * now[j, 5]
            t6 += t * now[j, 6]
            t7 += t * now[j, 7]
        before[i, 0] = t0
        before[i, 1] = t1
        before[i, 2] = t2
        before[i, 3] = t3
        before[i, 4] = t4
        before[i, 5] = t5
        before[i, 6] = t6
        before[i, 7] = t7
        for c in range(SIDE):
            out[i, c] += coefficient * before[i, c]


@njit
def chebyshev(indptr, indices, data, coefficients, masses):
    """The sum of coefficients[k] T_k(S) applied to one vector, S a sparse matrix with spectrum in [-1, 1]."""
    now, before, out = masses.copy(), np.zeros(masses.size), np.empty(masses.size)
    for i in range(masses.size):
        out[i] = coefficients[0] * masses[i]
    for k in range(1, coefficients.size):
        _step(indptr, indices, data, now, before, out, 1.0 if k == 1 else 2.0, coefficients[k])
        now, before = before, now
    return out


@njit
def chebyshev_side(indptr, indices, data, coefficients, masses):
    """The same for SIDE vectors, as columns."""
    n = masses.shape[0]
    now, before, out = masses.copy(), np.zeros((n, SIDE)), np.empty((n, SIDE))
    for i in range(n):
        for c in range(SIDE):
            out[i, c] = coefficients[0] * masses[i, c]
    for k in range(1, coefficients.size):
        _step_side(indptr, indices, data, now, before, out, 1.0 if k == 1 else 2.0, coefficients[k])
        now, before = before, now
    return out
