"""The compiled interior point of a recovery: one cone, one box, a Newton system as large as the data.

Mehrotra's predictor and corrector with the scaling of Nesterov and Todd [andersen03], for f in the
box and s = (1, b - B f) in the second-order cone; duals are low and high (of the box) and z (of the
cone).
"""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from sfumato._compiled import inner, njit
from sfumato.sensing.recovery.solver.dense_kernel import (
    LOOSE,
    across,
    along,
    dot,
    factor,
    gram,
    solve,
)


@inner(fastmath=LOOSE, error_model="numpy")
def _scale(sign, v0, k0, wv, d0, dv, by, out):
    """The scaling of the cone (sign 1) or its inverse (-1) on (d0, dv); the vector part goes to out."""
    q = 2 * (v0 * d0 + sign * k0 * dot(wv, dv))
    for i in range(wv.size):
        out[i] = by * (sign * q * k0 * wv[i] + dv[i])
    return by * (q * v0 - d0)


@inner(fastmath=LOOSE, error_model="numpy")
def _into(d0, dv, l0, lv, size):
    """One over the longest step from the point l of the cone, of that size, along d."""
    b0 = l0 / size
    p0 = b0 * d0 - dot(lv, dv) / size
    t = (p0 + d0) / (b0 + 1) / size
    side = 0.0
    for i in range(dv.size):
        side += (dv[i] - t * lv[i]) ** 2
    return (sqrt(side) - p0) / size


@inner(fastmath=LOOSE, error_model="numpy")
def _newton(
    rows,
    f,
    low,
    high,
    gain,
    slack,
    c1,
    c2,
    upper,
    e0,
    ev,
    r0,
    rv,
    cone,
    wv,
    s,
    work,
    df,
    dlow,
    dhigh,
):
    """One direction for the right-hand sides c1, c2 (box) and e (cone, scaled); s holds a Cholesky factor.

    The parts of the cone are left in work: row 0 the change of s, row 1 that of z; rows 2 to 4 are
    room.
    """
    w0, w2, v0, k0, beta = cone
    square = beta * beta
    r, n = rows.shape
    dsv, dzv, qv, pv, x = work[0], work[1], work[2], work[3], work[4]
    q0 = _scale(1.0, v0, k0, wv, e0, ev, beta, qv) + r0
    for i in range(r):
        qv[i] += rv[i]
    t = 2 * (w0 * q0 - dot(wv, qv))
    for i in range(r):
        pv[i] = (qv[i] - t * wv[i]) / square
    across(rows, pv, dlow)
    for j in range(n):
        h = c1[j] / f[j] - c2[j] / (upper - f[j]) - slack[j] - dlow[j]
        df[j] = h
        dhigh[j] = h * gain[j]
    along(rows, dhigh, x)
    solve(s, x, r)
    across(rows, x, dlow)
    for j in range(n):
        d = gain[j] * (df[j] - dlow[j])
        df[j] = d
        dlow[j] = (c1[j] - low[j] * d) / f[j]
        dhigh[j] = (c2[j] + high[j] * d) / (upper - f[j])
    # B df is taken from the r by r system, not from df: otherwise the dual residual grows at gaps
    # of 1e-6.
    t = 2 / (1 + 2 * w2) * dot(wv, x)
    for i in range(r):
        moved = square * (x[i] - wv[i] * t)
        qv[i] += moved
        dsv[i] = -rv[i] - moved
        dzv[i] = x[i] + pv[i]
    t = 2 * (w0 * q0 - dot(wv, qv))
    return -r0, (t * w0 - q0) / square


@inner(fastmath=LOOSE, error_model="numpy")
def _reach(f, low, high, upper, df, dlow, dhigh):
    """One over the longest step that stays in the box."""
    a = 1e-12
    for j in range(f.size):
        a = max(
            a,
            max(
                max(-df[j] / f[j], df[j] / (upper - f[j])),
                max(-dlow[j] / low[j], -dhigh[j] / high[j]),
            ),
        )
    return a


@njit(fastmath=LOOSE, error_model="numpy")
def interior(given, readings, radius, upper, tolerance, limit):
    """A guess of f, the best dual vector met, and the least distance of B f to b that was met.

    Columns are given as directions by cells. The guess is nearly optimal but for cells that are
    likely at an end of the box: they are put there.

    The bound b'z - R|z| - u sum (B'z - 1)_+ holds for every z, so the best one met is kept whatever
    happens later.
    """
    r, n = given.shape
    rows, b = np.empty((r, n)), np.empty(r)
    wv, zv, sv, rv, lv = np.zeros(r), np.zeros(r), np.empty(r), np.empty(r), np.empty(r)
    av, bv, ev, image, best_dual = np.empty(r), np.empty(r), np.empty(r), np.empty(r), np.zeros(r)
    work, s, scaled = np.empty((5, r)), np.empty((r, r)), np.empty((r, n))
    df, dlow, dhigh, dots = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    slack, gain, c1, c2 = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    f, low, high, best_f = np.ones(n), np.ones(n), np.ones(n), np.zeros(n)
    for i in range(r):
        b[i] = readings[i] / radius
        for j in range(n):
            rows[i, j] = given[i, j] / radius
    along(rows, f, image)
    start = dot(image, b) / max(dot(image, image), 1e-300)
    start = min(max(start, 1e-2 * upper / n), 0.5 * upper)
    across(rows, b, dots)
    peak = 1e-300
    for j in range(n):
        peak = max(peak, abs(dots[j]))
        f[j] = start
        high[j] = max(start / (upper - start), 1e-3)
    for i in range(r):
        sv[i] = b[i] - start * image[i]
    s0 = max(1.0, 1.1 * sqrt(dot(sv, sv)))
    z0 = max(1.0, sqrt(dot(b, b))) / peak
    best_bound, last, worse, steps, nearest = -np.inf, np.inf, 0, 0, np.inf
    while steps < limit:
        steps += 1
        across(rows, zv, dots)
        along(rows, f, image)
        primal = over = 0.0
        mu = s0 * z0 + dot(sv, zv)
        for j in range(n):
            slack[j] = 1.0 + dots[j] - low[j] + high[j]
            primal += f[j]
            over += max(-dots[j] - 1.0, 0.0)
            mu += f[j] * low[j] + (upper - f[j]) * high[j]
            gain[j] = 1.0 / (low[j] / f[j] + high[j] / (upper - f[j]))
        mu /= 2 * n + 1
        r0 = s0 - 1.0
        miss = 0.0
        for i in range(r):
            rv[i] = image[i] + sv[i] - b[i]
            miss += (b[i] - image[i]) ** 2
        zn = sqrt(dot(zv, zv))
        bound = -dot(zv, b) - zn - upper * over
        if bound > best_bound:
            best_bound = bound
            for i in range(r):
                best_dual[i] = -zv[i] / radius
        nearest = min(nearest, sqrt(miss))
        gap = abs(primal - best_bound) / max(1.0, primal) + max(sqrt(miss) - 1.0, 0.0)
        if best_bound > upper * n * (1 + 1e-6) + 1 or not isfinite(gap):  # infeasible, or lost
            break
        if gap < last:
            last, worse = gap, 0
            for j in range(
                n
            ):  # an end of the box is likely where its dual is larger than the distance to it
                best_f[j] = f[j]
                if f[j] < upper * low[j]:
                    best_f[j] = 0.0
                elif upper - f[j] < upper * high[j]:
                    best_f[j] = upper
        else:
            worse += 1
        if gap <= tolerance or worse > 6:
            break
        sn = sqrt(dot(sv, sv))
        s_size = sqrt(max((s0 - sn) * (s0 + sn), 1e-300))
        z_size = sqrt(max((z0 - zn) * (z0 + zn), 1e-300))
        beta = sqrt(s_size / z_size)
        middle = sqrt((1 + (s0 * z0 + dot(sv, zv)) / (s_size * z_size)) / 2)
        for i in range(r):
            wv[i] = (sv[i] / s_size - zv[i] / z_size) / (2 * middle)
        w2 = dot(wv, wv)
        w0 = sqrt(1 + w2)
        k0 = 1 / sqrt(2 * (w0 + 1))
        v0 = (w0 + 1) * k0
        cone = (w0, w2, v0, k0, beta)
        l0 = _scale(1.0, v0, k0, wv, z0, zv, beta, lv)
        l_square = max(l0 * l0 - dot(lv, lv), 1e-300)
        l_size = sqrt(l_square)
        gram(rows, gain, scaled, s)
        share = 2 * beta * beta / (1 + 2 * w2)
        for i in range(r):
            s[i, i] += beta * beta
            for k in range(i + 1):
                s[i, k] -= wv[i] * wv[k] * share
        if not factor(s, r):
            break
        e0, aim, length = -l0, 0.0, 1.0
        for i in range(r):
            ev[i] = -lv[i]
        for j in range(n):
            c1[j] = -f[j] * low[j]
            c2[j] = -(upper - f[j]) * high[j]
        ds0 = dz0 = 0.0
        for corrected in range(2):
            ds0, dz0 = _newton(
                rows,
                f,
                low,
                high,
                gain,
                slack,
                c1,
                c2,
                upper,
                e0,
                ev,
                r0,
                rv,
                cone,
                wv,
                s,
                work,
                df,
                dlow,
                dhigh,
            )
            a0 = _scale(-1.0, v0, k0, wv, ds0, work[0], 1 / beta, av)
            b0 = _scale(1.0, v0, k0, wv, dz0, work[1], beta, bv)
            reach = max(_reach(f, low, high, upper, df, dlow, dhigh), _into(a0, av, l0, lv, l_size))
            reach = max(reach, _into(b0, bv, l0, lv, l_size))
            if corrected == 1:
                length = min(1.0, 0.99 / reach)
                break
            aim = (1 - min(1.0, 1 / reach)) ** 3 * mu
            x0 = aim - (l0 * l0 + dot(lv, lv)) - (a0 * b0 + dot(av, bv))
            for i in range(r):
                ev[i] = -2 * l0 * lv[i] - (a0 * bv[i] + b0 * av[i])
            e0 = (l0 * x0 - dot(lv, ev)) / l_square
            for i in range(r):
                ev[i] = (ev[i] - e0 * lv[i]) / l0
            for j in range(n):
                c1[j] = aim - f[j] * low[j] - df[j] * dlow[j]
                c2[j] = aim - (upper - f[j]) * high[j] + df[j] * dhigh[j]
        if not length > 1e-7:
            break
        for j in range(n):
            f[j] += length * df[j]
            low[j] += length * dlow[j]
            high[j] += length * dhigh[j]
        s0 += length * ds0
        z0 += length * dz0
        for i in range(r):
            sv[i] += length * work[0, i]
            zv[i] += length * work[1, i]
    return best_f, best_dual, nearest * radius
