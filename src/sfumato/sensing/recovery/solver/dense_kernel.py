"""Compiled loops over small dense blocks: products with few rows, and a Cholesky factor.

Plain loops over rows of cells, which a processor does several at a time; array expressions would
say the same shorter and take ten times as long to compile.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from sfumato._compiled import njit

LOOSE = {"reassoc", "contract", "nsz"}
"""Sums may be taken in any order; NaN and infinity keep their meaning."""


@njit(fastmath=LOOSE, error_model="numpy")
def dot(x, y):
    """The inner product."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@njit
def put(out, x):
    """Overwrite out by x."""
    for i in range(x.size):
        out[i] = x[i]


@njit
def fill(out, size, value):
    """Overwrite the first entries of out by one value."""
    for i in range(size):
        out[i] = value


@njit(fastmath=LOOSE, error_model="numpy")
def add(out, by, x):
    """Overwrite out by out + by x."""
    for i in range(x.size):
        out[i] += by * x[i]


@njit(fastmath=LOOSE, error_model="numpy")
def across(rows, x, out):
    """The sum of rows i times x[i]: one number for each cell."""
    fill(out, out.size, 0.0)
    for i in range(rows.shape[0]):
        add(out, x[i], rows[i])


@njit(fastmath=LOOSE, error_model="numpy")
def along(rows, x, out):
    """The inner product of each row with x: one number for each direction."""
    for i in range(rows.shape[0]):
        out[i] = dot(rows[i], x)


@njit(fastmath=LOOSE, error_model="numpy")
def gram(rows, weights, scaled, out):
    """The lower half of rows diag(weights) rows', weights positive; scaled is room for as many rows."""
    r, n = rows.shape
    for j in range(n):
        weights[j] = sqrt(weights[j])
    for i in range(r):
        for j in range(n):
            scaled[i, j] = rows[i, j] * weights[j]
    if r > 32:
        np.dot(scaled, scaled.T, out)
    else:
        for i in range(r):
            for k in range(i + 1):
                out[i, k] = dot(scaled[i], scaled[k])
    for j in range(n):
        weights[j] *= weights[j]


@njit(fastmath=LOOSE, error_model="numpy")
def factor(s, r):
    """Cholesky in place, lower half; False where the matrix is not positive."""
    for j in range(r):
        for i in range(j, r):
            total = s[i, j]
            for k in range(j):
                total -= s[i, k] * s[j, k]
            s[i, j] = total
        if not s[j, j] > 0.0:
            return False
        t = 1.0 / sqrt(s[j, j])
        for i in range(j, r):
            s[i, j] *= t
    return True


@njit(fastmath=LOOSE, error_model="numpy")
def solve(s, x, r):
    """Overwrite x by the solution of s s' x, s a Cholesky factor."""
    for i in range(r):
        total = x[i]
        for k in range(i):
            total -= s[i, k] * x[k]
        x[i] = total / s[i, i]
    for i in range(r - 1, -1, -1):
        x[i] /= s[i, i]
        t = x[i]
        for k in range(i):
            x[k] -= s[i, k] * t
