"""The compiled least squares in a box of a few columns, by an active set."""

from __future__ import annotations

from math import sqrt

import numpy as np

from sfumato._compiled import inner, njit


@inner(error_model="numpy")
def _solve(products, sizes, masses, moving, count, ridge, work, goal):
    """Overwrite goal by the least square of the moving masses, the others staying: Cholesky in place."""
    k = sizes.size
    for a in range(count):
        i = moving[a]
        goal[a] = sizes[i]
        for j in range(k):
            goal[a] -= products[i, j] * masses[j]
        for b in range(count):
            j = moving[b]
            work[a, b] = products[i, j]
            goal[a] += products[i, j] * masses[j]
        work[a, a] += ridge
    for a in range(count):
        for b in range(a + 1):
            total = work[a, b]
            for c in range(b):
                total -= work[a, c] * work[b, c]
            if a == b:
                work[a, a] = sqrt(max(total, ridge))
            else:
                work[a, b] = total / work[b, b]
    for a in range(count):
        for c in range(a):
            goal[a] -= work[a, c] * goal[c]
        goal[a] /= work[a, a]
    for a in range(count - 1, -1, -1):
        for c in range(a + 1, count):
            goal[a] -= work[c, a] * goal[c]
        goal[a] /= work[a, a]


@njit(error_model="numpy")
def box_masses(products, sizes, upper, masses):
    """Overwrite masses, in the box, by those that minimise m'(products) m - 2 sizes'm in it.

    Free masses go to their least square and stop at the first side of the box on their way; when
    none is on its way, the one at a side that pulls hardest inwards is let go [lawson74, ch. 23].
    """
    k = sizes.size
    largest, pulled = 1e-300, 1e-300
    for i in range(k):
        largest, pulled = max(largest, products[i, i]), max(pulled, abs(sizes[i]))
    ridge = 1e-13 * largest
    free, moving = np.zeros(k, np.bool_), np.empty(k, np.int64)
    work, goal = np.empty((k, k)), np.empty(k)
    for i in range(k):
        free[i] = 0 < masses[i] < upper
    for _ in range(30 + 10 * k):
        count = 0
        for i in range(k):
            if free[i]:
                moving[count] = i
                count += 1
        _solve(products, sizes, masses, moving, count, ridge, work, goal)
        share, stop = 1.0, -1
        for a in range(count):
            step = goal[a] - masses[moving[a]]
            room = upper - masses[moving[a]] if step > 0 else masses[moving[a]]
            if room < share * abs(step):
                share, stop = room / abs(step), a
        for a in range(count):
            masses[moving[a]] += share * (goal[a] - masses[moving[a]])
        if stop >= 0:
            i = moving[stop]
            masses[i] = upper if masses[i] > upper / 2 else 0.0
            free[i] = False
            continue
        hardest, most = -1, 1e-12 * pulled
        for i in range(k):
            if not free[i]:
                pull = sizes[i]
                for j in range(k):
                    pull -= products[i, j] * masses[j]
                if masses[i] > 0:
                    pull = -pull
                if pull > most:
                    hardest, most = i, pull
        if hardest < 0:
            break
        free[hardest] = True
