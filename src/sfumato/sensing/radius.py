"""How far the readings may be from what the estimate would read."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri

from sfumato.sensing.operators import Operator
from sfumato.sensing.solver.compress import range_of
from sfumato.spaces.space import FloatArray

CONFIDENCE = 0.9
SAMPLE = 512  # cells that stand for all others, to find the directions they move readings in
MOST_READINGS = 1500  # above it the directions of a full matrix are not looked for: all of them count


def default_radius(operator: Operator, y: FloatArray, sigma: float, *, upper: float = 1.0) -> float:
    """The radius within which the true sources stay in nine of ten draws of the noise.

    radius**2 = sigma**2 q + |y_perp|**2. The signal lives in the few directions of readings in which one
    source moves them by more than sigma; q is the 0.9 quantile of chi-square with so many degrees of freedom.
    y_perp is what is read outside of them: noise, and what signal is too weak to be told from it.
    """
    directions, reach = _directions(operator)
    if directions is None:
        return sigma * math.sqrt(float(chdtri(y.size, 1 - CONFIDENCE)))
    strong = directions[:, upper * reach > sigma]
    rest = y - strong @ (strong.T @ y)
    quantile = float(chdtri(max(1, strong.shape[1]), 1 - CONFIDENCE))
    return math.sqrt(sigma**2 * quantile + float(rest @ rest))


def papers_radius(operator: Operator, sigma: float) -> float:
    """Sigma sqrt(m): half of all draws of the noise are larger [gilbert17, algorithm 1]."""
    return sigma * math.sqrt(operator.shape[0])


def _directions(operator: Operator) -> tuple[FloatArray | None, FloatArray]:
    """Left singular vectors of the operator and how far one unit moves readings along each; kept on it."""
    held: tuple[FloatArray | None, FloatArray] | None = operator.__dict__.get("_directions")
    if held is None:
        held = _find_directions(operator)
        operator.__dict__["_directions"] = held
    return held


def _find_directions(operator: Operator) -> tuple[FloatArray | None, FloatArray]:
    m, n = operator.shape
    found = range_of(operator)
    if found.rank > MOST_READINGS:
        return None, np.empty(0)
    # A full matrix is looked at whole; where neighbors read nearly the same, some cells stand for all.
    cells = np.arange(n) if found.basis is None or n <= SAMPLE else np.linspace(0, n - 1, SAMPLE).astype(int)
    if m * cells.size > 1 << 24:
        return None, np.empty(0)
    columns = found.into(operator.columns(cells)).T
    left, _, _ = np.linalg.svd(columns, full_matrices=False)
    reach = np.abs(left.T @ columns).max(axis=1)
    return (left if found.basis is None else found.basis @ left), reach
