"""Compiled prices on a line: eta(x) = sum of z_i g(s_i - x) as a Taylor series on short pieces.

With w^2 = 2T and v = (s - c) / w, g(s - c - w t) = g(0) exp(-v^2 / 2) sum He_k(v) t^k / k!, and
|He_k(v)| exp(-v^2 / 2) <= 1.09 sqrt(k!) exp(-v^2 / 4) [abramowitz64, 22.14.17]. On |t| <= 1/4 sixteen terms
leave less than 6e-17 of the absolute sum, so a few pieces stand for any number of cells.
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np

from sfumato._compiled import inner, njit
from sfumato.sensing.recovery.solver.dense_kernel import LOOSE

TERMS = 16
HALF = 0.25
"""Half of a piece, in units of w."""

FAR = 12.0
"""Sensors further than this many w from the middle of a piece are left out, with a bound on what they add."""

LEFT_OUT = exp(-((FAR - HALF) ** 2) / 2)
"""The most that a sensor left out reads of a cell of the piece, as a share of the peak: 1e-30."""


@njit(fastmath=LOOSE, error_model="numpy")
def series(sensors, z, first, width, count, half):
    """Coefficients of t^k on each piece, and how far a price there may be from them.

    That is the rest of the series and rounding, a share of the absolute sum, and what the sensors
    left out may add. Sensors must increase; piece p is centered at first + (2 p + 1) half w, half
    at most HALF.
    """
    out, errors = np.zeros((count, TERMS)), np.zeros(count)
    total = 0.0
    for i in range(sensors.size):
        total += abs(z[i])
    peak = 1.0 / (width * 2.5066282746310002)  # g(0) = 1 / (w sqrt(2 pi))
    begin = 0
    for p in range(count):
        reached, sums = 0, 0.0
        center = first + (2 * p + 1) * half * width
        while begin < sensors.size and sensors[begin] < center - FAR * width:
            begin += 1
        for i in range(begin, sensors.size):
            v = (sensors[i] - center) / width
            if v > FAR:
                break
            reached += 1
            sums += abs(z[i]) * peak * exp(-v * v / 4)
            before, now = 0.0, z[i] * peak * exp(-v * v / 2)
            for k in range(TERMS):  # now = z g(0) exp(-v^2 / 2) He_k(v) / k!
                out[p, k] += now
                before, now = now, (v * now - before) / (k + 1)
        errors[p] = 4e-15 * sums
        if reached < sensors.size:
            errors[p] += 1.01 * total * peak * LEFT_OUT
    return out, errors


@inner(fastmath=LOOSE, error_model="numpy")
def _value(c, t):
    total = c[TERMS - 1]
    for k in range(TERMS - 2, -1, -1):
        total = total * t + c[k]
    return total


@inner(fastmath=LOOSE, error_model="numpy")
def _slope(c, t):
    total = (TERMS - 1) * c[TERMS - 1]
    for k in range(TERMS - 2, 0, -1):
        total = total * t + k * c[k]
    return total


@inner(fastmath=LOOSE, error_model="numpy")
def _bend(c, t):
    total = (TERMS - 1) * (TERMS - 2) * c[TERMS - 1]
    for k in range(TERMS - 2, 1, -1):
        total = total * t + k * (k - 1) * c[k]
    return total


@inner
def _cell(positions, x):
    """The number of cells before x."""
    low, high = 0, positions.size
    while low < high:
        middle = (low + high) // 2
        if positions[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@njit(fastmath=LOOSE, error_model="numpy")
def peaks(coefficients, first, width, half, positions, level, slack):
    """Cells around every peak of eta above level, and at doubling distances while eta stays above it."""
    count, samples = coefficients.shape[0], 8
    step = 2 * half / samples
    values = np.empty(count * samples + 1)
    for p in range(count):
        for s in range(samples):
            values[p * samples + s] = _value(coefficients[p], -half + s * step)
    values[count * samples] = _value(coefficients[count - 1], half)
    found, size = np.empty(4096, np.int64), 0
    last = positions.size - 1
    for s in range(values.size):
        if s > 0 and values[s - 1] > values[s]:
            continue
        if s + 1 < values.size and values[s + 1] >= values[s]:
            continue
        p = min(s // samples, count - 1)
        t = -half + (s - p * samples) * step
        low = t if s == 0 else t - step  # no cells beyond the ends
        high = t if s == values.size - 1 else t + step
        c = coefficients[p]
        for _ in range(6):
            slope, bend = _slope(c, t), _bend(c, t)
            if bend >= 0.0:
                break
            moved = min(max(t - slope / bend, low), high)
            done = abs(moved - t) <= 1e-12
            t = moved
            if done:
                break
        value, bend = _value(c, t), _bend(c, t)
        if value <= level + slack or size + 64 > found.size:
            continue
        x = first + ((2 * p + 1) * half + t) * width
        at = _cell(positions, x)
        reach = width * sqrt(2 * (value - level) / max(-bend, 1e-3 * abs(value)))
        for offset in (-1, 0):
            if 0 <= at + offset <= last:
                found[size] = at + offset
                size += 1
        span = 1
        while size + 2 <= found.size:
            left, right = at - 1 - span, at + span
            more = False
            if left >= 0 and positions[left] > x - reach:
                found[size] = left
                size += 1
                more = True
            if right <= last and positions[right] < x + reach:
                found[size] = right
                size += 1
                more = True
            if not more:
                break
            span *= 2
    return found[:size].copy()


@njit(fastmath=LOOSE, error_model="numpy")
def unsettled(coefficients, errors, first, width, half, positions, level, most):
    """All cells whose price is not below level for certain; at most so many, and whether these are all.

    An interval of cells with middle t and half-width h is settled when
    eta(t) + |eta'(t)| h + max |eta''| h^2 / 2 stays below the level by more than rounding.
    """
    out, size = np.empty(most, np.int64), 0
    starts, ends, after = np.empty(64, np.int64), np.empty(64, np.int64), 0
    for p in range(coefficients.shape[0]):
        c = coefficients[p]
        center = first + (2 * p + 1) * half * width
        begin = after  # not searched for: rounding could lose or repeat a cell on the border
        after = positions.size
        if p + 1 < coefficients.shape[0]:
            after = max(begin, _cell(positions, center + half * width))
        bend, power = 0.0, 1.0
        for k in range(2, TERMS):
            bend += k * (k - 1) * abs(c[k]) * power
            power *= half * 1.01
        bend += 25 * errors[p]
        rounding = errors[p]
        starts[0], ends[0], depth = begin, after, 1
        while depth > 0:
            depth -= 1
            begin, end = starts[depth], ends[depth]
            if begin >= end:
                continue
            low, high = (positions[begin] - center) / width, (positions[end - 1] - center) / width
            t, h = (low + high) / 2, (high - low) / 2
            if _value(c, t) + abs(_slope(c, t)) * h + bend * h * h / 2 + rounding < level:
                continue
            if end - begin <= 4:
                for j in range(begin, end):
                    if _value(c, (positions[j] - center) / width) + rounding >= level:
                        if size == most:
                            return out, False
                        out[size] = j
                        size += 1
                continue
            middle = (begin + end) // 2
            starts[depth], ends[depth] = begin, middle
            starts[depth + 1], ends[depth + 1] = middle, end
            depth += 2
    return out[:size].copy(), True
