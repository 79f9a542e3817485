"""Bregman iteration, the papers' way to the sources: for comparison, `recover` is what to use."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import read_only, real_array, whole
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing.model.operators import CHUNK, Operator

GAP = 1e-9
"""How much of its value an inner problem may be from its optimum, proved by a dual bound."""
INNER_STEPS = 200_000
"""Gradient steps that one inner problem may take before it is given up."""


@dataclass(frozen=True, slots=True, eq=False)
class BregmanPath:
    """The iterates, one in each row, with their residuals |M f - y|_2 and totals |f|_1.

    `stopped_at` is the first row whose residual is at most the radius; none if there was no radius,
    or no row got there in the steps allowed. `weight` is twice the papers' lambda, which they put
    before
    |M f - y|^2 without a half.
    """

    iterates: FloatArray
    residuals: FloatArray
    objectives: FloatArray
    stopped_at: int | None
    weight: float

    @property
    def estimate(self) -> FloatArray:
        """The last iterate."""
        last: FloatArray = self.iterates[-1]
        return last


def bregman(
    operator: Operator,
    readings: npt.ArrayLike,
    *,
    radius: float | None = None,
    max_mass: float = 1.0,
    weight: float | None = None,
    steps: int = 50,
) -> BregmanPath:
    """Sources by Bregman iteration, stopped where readings are met within the radius or after so many steps.

    f_{k+1} = argmin of J(f) + weight |M f - b_k|^2 / 2, b_{k+1} = b_k + y - M f_{k+1}, b_0 = y,
    with J the total |f|_1 on the box 0 <= f <= upper [mcmillan18, alg. 2] [yin08]; the papers'
    lambda is weight / 2. Corrected: iterates are f and steps t throughout (printed u and k beside
    them); p is the subgradient weight M'(b_k - y), begun at 0, and not also the vector b_k, begun
    at y; H is |M f - y|^2 / 2 with the readings y (printed f).

    The residual never grows [mcmillan18, thm. 8.4], but where it leads is the least-squares fit in
    the box: with H* its least value, H(f_k) - H* <= |f*|_1 / (weight k) [osher05, sec. 3]. min H =
    0, which the thesis assumes, fails for noisy readings. Stopped at the radius its total is not
    the least one but about one per cent more on the papers' problems, and a smaller weight, with
    more steps, does not mend it. Unless given the weight is 10 / max(M'y), ten times what moves the
    first iterate.

    >>> from sfumato.sensing import linear
    >>> from sfumato.spaces import Line
    >>> bregman(linear([[2.0]], Line(1)), [1.0], weight=1, steps=3).iterates.ravel()
    array([0.25, 0.5 , 0.5 ])
    """
    y = real_array("readings", readings)
    m, n = operator.shape
    if y.shape != (m,) or not np.isfinite(y).all():
        raise InvalidParameter(
            f"readings must be one finite number for each of {m} sensors, got shape {y.shape}; "
            "nothing was computed"
        )
    for name, value in (("max_mass", max_mass), ("radius", radius), ("weight", weight)):
        if value is not None and not 0 < value < math.inf:
            raise InvalidParameter(
                f"{name} must be positive and finite, got {value}; nothing was computed"
            )
    count = whole("steps", steps, low=1)
    if m * n > 8 * CHUNK:
        raise InvalidParameter(
            f"Bregman iteration forms the whole matrix, at most {8 * CHUNK} entries, got {m} sensors by {n} "
            "cells; nothing was computed"
        )
    matrix = operator.columns(np.arange(n))
    if weight is None:
        largest = float((matrix.T @ y).max())
        weight = 10 / largest if largest > 0 else 1.0
    curvature = weight * float(np.linalg.norm(matrix, 2)) ** 2
    f, b = np.zeros(n), y.copy()
    iterates, residuals = [], []
    stopped_at = None
    for step in range(count):
        f = _penalised(matrix, b, f, weight=weight, max_mass=max_mass, curvature=curvature)
        left = y - matrix @ f
        iterates.append(f)
        residuals.append(float(np.linalg.norm(left)))
        if radius is not None and residuals[-1] <= radius:
            stopped_at = step
            break
        b = b + left
    rows = np.array(iterates)
    return BregmanPath(
        read_only(rows),
        read_only(np.array(residuals)),
        read_only(rows.sum(axis=1)),
        stopped_at,
        weight,
    )


def _penalised(
    matrix: FloatArray,
    b: FloatArray,
    start: FloatArray,
    *,
    weight: float,
    max_mass: float,
    curvature: float,
) -> FloatArray:
    """The minimiser of sum f + weight |M f - b|^2 / 2 on the box, by projected gradients with momentum.

    [beck09], begun again whenever momentum points uphill [odonoghue15]. For every z, b'z - |z|^2 /
    2 weight
    - upper sum (M'z - 1)_+ is a lower bound; with z = weight (b - M f) it says when to stop.
    """
    if curvature == 0:
        return np.zeros_like(start)
    f, ahead, momentum = start, start, 1.0
    for step in range(INNER_STEPS):
        if step % 20 == 0:
            z = weight * (b - matrix @ f)
            value = float(f.sum() + z @ z / (2 * weight))
            excess = np.maximum(matrix.T @ z - 1, 0).sum()
            bound = float(b @ z - z @ z / (2 * weight) - max_mass * excess)
            if value - bound <= GAP * value:
                return f
        gradient = 1 - weight * (matrix.T @ (b - matrix @ ahead))
        after = np.clip(ahead - gradient / curvature, 0, max_mass)
        if (ahead - after) @ (after - f) > 0:
            ahead, momentum = f, 1.0
            continue
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = after + (momentum - 1) / grown * (after - f)
        f, momentum = after, grown
    raise SolverFailed(
        f"an inner problem of Bregman iteration did not reach a relative gap of {GAP:g} in {INNER_STEPS} "
        "steps; no path was returned"
    )
