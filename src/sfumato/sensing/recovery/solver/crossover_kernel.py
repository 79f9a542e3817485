"""The compiled walk from a nearly optimal recovery to a sparse one that is exact to rounding.

For a free set F (the other cells at 0 or at the box) with columns B_F = Q R and c = b - u sum of
the columns at the box, the stationary f_F = R^-1 Q'c - mu R^-1 w, w = R^-T 1, leaves the residual
r0 + mu Q w with r0 = c - QQ'c orthogonal to it. So |residual|^2 = |r0|^2 + mu^2 |w|^2, and the mu
that meets the radius is a root in closed form; (r0 + mu Q w) / mu is the dual vector.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from sfumato._compiled import inner, njit
from sfumato.sensing.recovery.solver.dense_kernel import LOOSE, across, add, dot, fill, put

FOUND, LOST, INFEASIBLE = 0, 1, 2
ZERO, FREE, FULL = 0, 1, 2
DEPENDENT = 1e-12
"""A column whose part outside the free ones is smaller than this share of it is taken as dependent."""


@inner(fastmath=LOOSE, error_model="numpy")
def _split(q, k, coordinates, rest):
    """Take the first k rows of q out of rest; coordinates say how much of each, the norm left is returned."""
    fill(coordinates, k, 0.0)
    for _ in range(2):  # twice is enough: what is left is orthogonal to rounding
        for p in range(k):
            t = dot(q[p], rest)
            coordinates[p] += t
            add(rest, -t, q[p])
    return sqrt(dot(rest, rest))


@inner(fastmath=LOOSE, error_model="numpy")
def _take(rows, j, out):
    for i in range(out.size):
        out[i] = rows[i, j]


@inner(fastmath=LOOSE, error_model="numpy")
def _shift(base, rows, j, by):
    for i in range(base.size):
        base[i] += by * rows[i, j]


@inner(fastmath=LOOSE, error_model="numpy")
def _orthonormalize(rows, free, begin, k, q, t, rest, sizes):
    """Bring rows begin to k of q, and columns of t, up to date; the first dependent place, or -1."""
    for c in range(begin, k):
        _take(rows, free[c], rest)
        left = _split(q, c, t[c], rest)
        if left <= DEPENDENT * sizes[free[c]]:
            return c
        t[c, c] = left
        for i in range(rest.size):
            q[c, i] = rest[i] / left
    return -1


@inner(fastmath=LOOSE, error_model="numpy")
def _back(t, k, x):
    for c in range(k - 1, -1, -1):
        x[c] /= t[c, c]
        add(x, -x[c], t[c, :c])


@inner(fastmath=LOOSE, error_model="numpy")
def _target(q, t, k, base, mu, aim, w, rest, residual):
    """The stationary values of the free cells (aim), w, r0 (rest) and the residual."""
    put(rest, base)
    _split(q, k, aim, rest)
    put(residual, rest)
    for c in range(k):
        w[c] = (1.0 - dot(t[c, :c], w[:c])) / t[c, c]
        aim[c] -= mu * w[c]
        add(residual, mu * w[c], q[c])
    _back(t, k, aim)


@inner(fastmath=LOOSE, error_model="numpy")
def _begin(rows, guess, upper, f, state, free, q, t, rest, sizes, base):
    """Sort the guess into zero, free and full; the free ones are the most inner that are independent."""
    n, r = f.size, rest.size
    inner = np.empty(n)
    for j in range(n):
        state[j] = ZERO if guess[j] < upper / 2 else FULL
        f[j] = 0.0 if state[j] == ZERO else upper
        inner[j] = min(guess[j], upper - guess[j])
    k = 0
    while k < r:
        best, most = -1, 0.0
        for j in range(n):
            if inner[j] > most:
                best, most = j, inner[j]
        if best < 0:
            break
        inner[best] = 0.0
        free[k] = best
        if _orthonormalize(rows, free, k, k + 1, q, t, rest, sizes) < 0:
            f[best] = guess[best]
            state[best] = FREE
            k += 1
    for j in range(n):
        if state[j] == FULL:
            _shift(base, rows, j, -upper)
    return k


@inner
def _drop(free, k, place):
    for p in range(place, k - 1):
        free[p] = free[p + 1]
    return k - 1


@inner(fastmath=LOOSE, error_model="numpy")
def _block(f, free, k, aim, upper):
    """The share of the way to aim at which the first free cell meets an end of the box, and its place."""
    share, place = 1.0, -1
    for p in range(k):
        now, then = f[free[p]], aim[p]
        if then <= 0.0:
            s = now / (now - then) if now > then else 0.0
        elif then >= upper:
            s = (upper - now) / (then - now) if then > now else 0.0
        else:
            continue
        if s < share or place < 0:
            share, place = s, p
    return share, place


@njit(fastmath=LOOSE, error_model="numpy")
def crossover(rows, b, radius, upper, guess, mu, tolerance, limit):
    """Cells, residual and multiplier of the optimum over these columns (directions by cells), from a guess.

    FOUND: residual / mu is the dual vector. INFEASIBLE: the residual is a ray that proves it, for
    these columns. LOST: the walk went in circles or out of patience; nothing is promised.
    """
    r, n = rows.shape
    f, state, banned, dots, sizes = (
        np.empty(n),
        np.empty(n, np.int8),
        np.zeros(n, np.bool_),
        np.empty(n),
        np.zeros(n),
    )
    free, q, t = np.zeros(r + 1, np.int64), np.empty((r + 1, r)), np.zeros((r + 1, r + 1))
    aim, w, rest, residual = np.zeros(r + 1), np.zeros(r + 1), np.empty(r), np.empty(r)
    coordinates, outside, base = np.zeros(r + 1), np.empty(r), b.copy()
    across(rows, b, dots)
    top = 0.0  # above it no cell is worth a source
    for i in range(r):
        for j in range(n):
            sizes[j] += rows[i, j] ** 2
    for j in range(n):
        sizes[j] = sqrt(sizes[j])
        top = max(top, dots[j])
    mu = min(mu, 0.999 * top)
    b_norm = sqrt(dot(b, b))
    k = _begin(rows, guess, upper, f, state, free, q, t, rest, sizes, base)
    clean, solves, status, some_banned = k, 0, LOST, False
    low, high, room = 0.0, top, False
    for _ in range(200):
        while solves < limit:  # the box-constrained lasso at this mu, as in [lawson74, ch. 23]
            entered = -1
            while solves < limit:
                solves += 1
                bad = _orthonormalize(rows, free, clean, k, q, t, rest, sizes)
                if bad >= 0:  # rounding has made an old column dependent: it goes to its nearer end
                    j = free[bad]
                    k = _drop(free, k, bad)
                    clean = bad
                    state[j] = ZERO if f[j] < upper / 2 else FULL
                    f[j] = 0.0 if state[j] == ZERO else upper
                    _shift(base, rows, j, -f[j])
                    continue
                clean = k
                _target(q, t, k, base, mu, aim, w, rest, residual)
                share, place = _block(f, free, k, aim, upper)
                for p in range(k):
                    f[free[p]] = aim[p] if place < 0 else f[free[p]] + share * (aim[p] - f[free[p]])
                if place < 0:
                    break
                j = free[place]
                k = _drop(free, k, place)
                clean = place
                state[j] = ZERO if aim[place] <= 0.0 else FULL
                f[j] = 0.0 if state[j] == ZERO else upper
                _shift(base, rows, j, -f[j])
                if share > 0.0 and some_banned:
                    fill(banned, n, False)
                    some_banned = False
                elif share <= 0.0 and j == entered:
                    banned[j] = True
                    some_banned = True
            size = sqrt(dot(residual, residual))
            if mu == 0.0 and size < radius:
                break  # there is room: the optimum has a positive mu
            across(rows, residual, dots)
            floor = 4e-16 * (
                size if mu > 0.0 else max(size, b_norm)
            )  # of rounding, for a unit column
            worst, entered = 0.0, -1
            for j in range(n):
                if state[j] != FREE and not banned[j]:
                    v = dots[j] - mu if state[j] == ZERO else mu - dots[j]
                    if v > worst and v > tolerance * mu + floor * sizes[j]:
                        worst, entered = v, j
            if entered < 0:
                break
            _take(rows, entered, outside)
            left = _split(q, k, coordinates, outside)
            if k < r and left > DEPENDENT * sizes[entered]:
                _shift(base, rows, entered, f[entered])
                state[entered] = FREE
                free[k] = entered
                k += 1
                continue
            # A dependent column: the total falls along a line that leaves the residual alone.
            _back(t, k, coordinates)
            solves += 1
            sign = 1.0 if state[entered] == ZERO else -1.0
            step, place = upper, -1
            for p in range(k):
                v = -sign * coordinates[p]
                limit_of = f[free[p]] if v < 0.0 else upper - f[free[p]]
                if v != 0.0 and limit_of < step * abs(v):
                    step, place = limit_of / abs(v), p
            for p in range(k):
                f[free[p]] -= sign * step * coordinates[p]
            if step <= 0.0:
                banned[entered] = True
                some_banned = True
            elif some_banned:
                fill(banned, n, False)
                some_banned = False
            if place < 0:
                state[entered] = FULL if sign > 0.0 else ZERO
                f[entered] = upper if sign > 0.0 else 0.0
                _shift(base, rows, entered, -sign * upper)
                continue
            _shift(base, rows, entered, f[entered])
            f[entered] += sign * step
            j = free[place]
            state[j] = ZERO if sign * coordinates[place] > 0.0 else FULL
            f[j] = 0.0 if state[j] == ZERO else upper
            _shift(base, rows, j, -f[j])
            k = _drop(free, k, place)
            clean = place
            state[entered] = FREE
            free[k] = entered
            k += 1
        if solves >= limit:
            break
        size = sqrt(dot(residual, residual))
        if mu == 0.0 and size >= radius:
            status = INFEASIBLE
            break
        if size > radius:
            high = min(high, mu)
        else:
            low = max(low, mu)
        fixed, turn = sqrt(dot(rest, rest)), dot(w[:k], w[:k])
        root = (
            sqrt((radius - fixed) * (radius + fixed) / turn) if k > 0 and fixed < radius else -1.0
        )
        if mu > 0.0 and (abs(size - radius) <= 4e-16 * radius or abs(root - mu) <= 1e-15 * mu):
            status = FOUND
            break
        if root > 0.0 and low < root < high:
            mu = root
        elif low == 0.0 and root < 0.0 and not room:
            mu, room = 0.0, True
        elif high - low <= 4e-16 * high:
            status = FOUND
            break
        else:
            mu = sqrt(low * high) if low > 0 else 0.1 * high
    return status, f, residual, mu, free[:k], state, solves
