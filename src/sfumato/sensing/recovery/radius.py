"""How far the readings may be from what the estimate would read."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri, gammaincinv

from sfumato._types import FloatArray
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.solver.compress import range_of
from sfumato.sensing.recovery.solver.operator_cache import afresh, cached

CONFIDENCE = 0.9
SAMPLE = 512  # cells that stand for all others, to find the directions they move readings in
MAX_READINGS = 1500  # up to it all directions of a full matrix are found
LEADING = 64  # above it, so many of the strongest
MAX_LEADING = 20_000  # above it, and above 2**28 entries, not even those


def default_radius(
    operator: Operator, y: FloatArray, sigma: float, *, max_mass: float = 1.0, laplace: int = 0
) -> float:
    """The radius within which the true sources stay in about nine of ten draws of the noise.

    radius**2 = sigma**2 q + |y_perp|**2. The signal lives in the few directions of readings in
    which one source of mass `max_mass` moves them by more than sigma; q is the 0.9 quantile of
    chi-square with so many degrees of freedom. y_perp is what is read outside of them: noise, and
    what signal is too weak to be told from it. Exactly nine of ten if there is none of the latter;
    with a signal of sigma outside one strong direction, 0.876.

    A full matrix (a graph, or any) of more than 1,500 readings has its 64 strongest directions
    looked for. Where the weakest of them still moves readings by more than sigma, and above 20,000
    readings, all directions count: radius = sigma sqrt(q) with one degree of freedom for each
    reading. That is as sure, and a wider radius where signal lives in few directions.

    Args:
        operator: Maps masses of cells to readings of sensors.
        y: One noisy reading for each sensor.
        sigma: Standard deviation of the noise of one reading.
        max_mass: The largest mass of one source.
        laplace: How many Laplace numbers the noise of a reading is the mean of; 0 if it is Gaussian.

    Returns:
        The radius, in the unit of readings.
    """
    afresh(operator)
    directions, reach = cached(operator, "directions", lambda: _find_directions(operator))
    if directions is None or (
        directions.shape[1] < range_of(operator).rank and max_mass * reach[-1] > sigma
    ):
        return sigma * math.sqrt(_quantile(y.size, float(y.size), laplace))
    strong = directions[:, max_mass * reach > sigma]
    rest = y - strong @ (strong.T @ y)
    own = float(np.square(np.square(strong).sum(axis=1)).sum())
    quantile = _quantile(max(1, strong.shape[1]), own, laplace)
    return math.sqrt(sigma**2 * quantile + float(rest @ rest))


def _quantile(count: int, own: float, laplace: int) -> float:
    """What the square of noise in so many directions exceeds in one of ten draws.

    Of Laplace noise by the gamma law with its mean and its variance, 2 count + 3 own / laplace: the fourth
    moment of one number is 6, and `own` is the sum of squares of each sensor's share in the directions.
    """
    if not laplace:
        return float(chdtri(count, 1 - CONFIDENCE))
    scale = 2 + 3 * own / laplace / count
    return scale * float(gammaincinv(count / scale, CONFIDENCE))


def papers_radius(operator: Operator, sigma: float) -> float:
    """Sigma sqrt(m): half of all draws of the noise are larger [gilbert17, algorithm 1]."""
    return sigma * math.sqrt(operator.shape[0])


def _find_directions(operator: Operator) -> tuple[FloatArray | None, FloatArray]:
    """Left singular vectors of the operator, all or the leading ones, and how far one unit moves each."""
    m, n = operator.shape
    found = range_of(operator)
    # A full matrix is looked at whole; where neighbors read nearly the same, some cells stand for
    # all.
    cells = (
        np.arange(n)
        if found.basis is None or n <= SAMPLE
        else np.linspace(0, n - 1, SAMPLE).astype(int)
    )
    if found.rank > MAX_READINGS or m * cells.size > 1 << 24:
        if m > MAX_LEADING or m * n > 1 << 28 or min(m, n) < 4 * LEADING:
            return None, np.empty(0)
        return _leading_directions(operator)
    columns = found.into(operator.columns(cells)).T
    left, _, _ = np.linalg.svd(columns, full_matrices=False)
    reach = np.abs(left.T @ columns).max(axis=1)
    return (left if found.basis is None else found.basis @ left), reach


def _leading_directions(operator: Operator) -> tuple[FloatArray, FloatArray]:
    """The strongest directions by power iteration on a block, the strongest first.

    From a fixed start, so that a radius is always the same. Directions that are not yet told apart
    from weaker ones are mixtures of both: the radius stays as sure with any directions, if not as
    short.
    """
    n = operator.shape[1]
    # Irrational steps: columns without structure, and no chance.
    block = np.sin(100 * np.outer(np.arange(1, n + 1), np.sqrt(np.arange(2, LEADING + 18))))
    for _ in range(4):
        side = np.linalg.qr(operator.apply(block))[0]
        block = np.linalg.qr(operator.apply_adjoint(side))[0]
    basis = np.linalg.qr(operator.apply(block))[0]
    rows = operator.apply_adjoint(basis).T
    inner, _, _ = np.linalg.svd(rows, full_matrices=False)
    reach = np.abs(inner.T @ rows).max(axis=1)
    return (basis @ inner)[:, :LEADING], reach[:LEADING]
