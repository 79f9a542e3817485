"""The compiled heat bath: eigenvalues drawn one at a time, each given all the others."""

# mypy: ignore-errors

from __future__ import annotations

import math

import numpy as np

from sfumato._compiled import inner, njit

PANEL = 4.0
NEGLIGIBLE = 1e-18


@njit
def run(state, uniforms, points, primitive):
    """Sweep up and down through an ascending state, once for each row of uniforms, in place."""
    # mypy: ignore-errors
    size = state.size
    for row in range(uniforms.shape[0]):
        for step in range(2 * size):
            i = step if step < size else 2 * size - 1 - step
            state[i] = _site(state, i, uniforms[row, step], points, primitive)


@inner
def _site(state, i, u, points, primitive):
    """A new value of one eigenvalue between its two neighbors, the u-quantile given the others."""
    # mypy: ignore-errors
    size = state.size
    low = -np.inf if i == 0 else state[i - 1]
    high = np.inf if i == size - 1 else state[i + 1]
    if not low < high:  # both infinite, of one sign: nothing has come down (up) to here yet
        return state[i]
    others = np.empty(size)
    count = 0
    for j in range(size):
        if j != i and np.isfinite(state[j]):  # one at infinity multiplies the density by a constant
            others[count] = state[j]
            count += 1
    if low == -np.inf and high == np.inf:  # only where no other is finite: the Laplace quantile
        return math.log(2 * u) if u < 0.5 else -math.log(2 * (1 - u))
    if low == -np.inf:
        return -_quantile(1 - u, -high, np.inf, -others[:count], points, primitive)
    return _quantile(u, low, high, others[:count], points, primitive)


@inner(inline="always")
def _density(x, others):
    """e**-|x| times the product of |x - other|, each over their number, so that nothing overflows."""
    # mypy: ignore-errors
    scale = 1.0 / (others.size + 1)
    product = math.exp(-abs(x))
    for j in range(others.size):
        product *= abs(x - others[j]) * scale
    return product


@inner
def _quantile(u, low, high, others, points, primitive):
    """The u-quantile of the density on (low, high), low finite: panels, and in the right one Newton.

    On a panel the density is a polynomial times e**(+-x) and is interpolated at Chebyshev points;
    `primitive` takes its values there to the Chebyshev series of its integral from -1.
    """
    nodes = points.size
    top = low
    for j in range(others.size):
        top = max(top, others[j])
    falling = max(top, 0.0) + others.size  # beyond it the density falls
    edges = [low]
    masses = [0.0]
    total = 0.0
    while edges[-1] < high:
        begin = edges[-1]
        end = min(begin + PANEL, high)
        if high < np.inf:  # panels of one length, not a last thin one
            end = begin + (high - begin) / math.ceil((high - begin) / PANEL)
            if end > high or high - end < 1e-12 * PANEL:
                end = high
        if begin < 0.0 < end:  # a kink is always an edge
            end = 0.0
        half, middle = 0.5 * (end - begin), 0.5 * (begin + end)
        mass = 0.0
        for q in range(nodes):
            mass += primitive[q, nodes + 1] * _density(middle + half * points[q], others)
        mass *= half
        total += mass
        edges.append(end)
        masses.append(total)
        if begin > falling and mass < NEGLIGIBLE * total:
            break
    target = u * total
    panel = 1
    while panel < len(masses) - 1 and masses[panel] < target:
        panel += 1
    begin, end = edges[panel - 1], edges[panel]
    half, middle = 0.5 * (end - begin), 0.5 * (begin + end)
    series = np.zeros(nodes + 1)
    for q in range(nodes):
        value = half * _density(middle + half * points[q], others)
        for k in range(nodes + 1):
            series[k] += primitive[q, k] * value
    need = target - masses[panel - 1]
    left, right = -1.0, 1.0
    t = -1.0 + 2.0 * min(1.0, max(0.0, need / max(masses[panel] - masses[panel - 1], 1e-300)))
    for _ in range(100):
        before, now = 1.0, t
        excess = series[0] + series[1] * t - need
        for k in range(2, nodes + 1):
            before, now = now, 2.0 * t * now - before
            excess += series[k] * now
        if excess > 0:
            right = t
        else:
            left = t
        slope = half * _density(middle + half * t, others)
        following = t - excess / slope if slope > 0 else left
        if not left < following < right:
            following = 0.5 * (left + right)
        moved = abs(following - t)
        t = following
        if moved < 1e-12:
            break
    return middle + half * t
