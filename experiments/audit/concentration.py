"""What only checks the thesis: tails of sample means, and the error of every estimator on two laws.

No command reaches these; audits and plans use `fano_error` and `least_samples` of the package.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import InvalidParameter


def hoeffding_tail(deviation: float, widths: ArrayLike) -> float:
    """A bound on the chance that a mean of bounded variables exceeds its expectation by at least deviation.

    exp(-2 n**2 t**2 / sum (b_i - a_i)**2) for n independent variables, a_i <= X_i <= b_i; the
    widths are the b_i - a_i [mcmillan18, lem. 1.2] [boucheron13, thm. 2.8].

    >>> round(-math.log(hoeffding_tail(0.5, [1, 1])), 9)
    1.0
    """
    spread = np.asarray(widths, dtype=np.float64)
    _require(deviation > 0, "deviation must be above 0", deviation)
    _require(spread.ndim == 1 and spread.size > 0, "widths must be a non-empty list", widths)
    _require(
        bool(np.all((spread >= 0) & (spread < np.inf))),
        "widths must be finite and at least 0",
        widths,
    )
    # Ratios below 1 cannot overflow when squared, whatever the unit.
    largest = float(spread.max())
    if largest == 0:
        return 0.0
    relative = float(np.sum((spread / largest) ** 2))
    scaled = spread.size * deviation / largest
    return math.exp(-2 * scaled * scaled / relative)


def bernstein_tail(deviation: float, samples: int, *, variance: float, bound: float) -> float:
    """A bound on the chance that `hoeffding_tail` bounds, far smaller where the variances are small.

    exp(-n t**2 / (2 variance + 2 bound t / 3)) for n independent variables whose variances average
    at most variance and with X_i - E X_i <= bound [boucheron13, thm. 2.9]. The thesis asks only
    |X_i| <= bound, and so the inequality fails [mcmillan18, lem. 1.3]: such a variable can exceed
    its mean by twice the bound.

    >>> round(-math.log(bernstein_tail(1, 2, variance=1, bound=3)), 9)
    0.5
    """
    _require(deviation > 0, "deviation must be above 0", deviation)
    _require(samples >= 1, "samples must be at least 1", samples)
    _require(0 <= variance < math.inf, "variance must be finite and at least 0", variance)
    _require(0 < bound < math.inf, "bound must be finite and above 0", bound)
    return math.exp(-samples * deviation / (2 * variance / deviation + 2 * bound / 3))


def overlap_from_total_variation(total_variation: float, samples: int) -> float:
    """The least mass that r samples of p and r of q share: 1 - TV(P**r, Q**r) is at least this.

    (1 - TV)**r, because a product of minima is at most the minimum of the products. No better bound
    holds for every pair of this total variation: (1 - t, t, 0) and (1 - t, 0, t) attain it.

    >>> overlap_from_total_variation(0.5, 3)
    0.125
    """
    _require(0 <= total_variation <= 1, "total_variation must be between 0 and 1", total_variation)
    _require(samples >= 1, "samples must be at least 1", samples)
    return float((1 - total_variation) ** samples)


def overlap_from_affinity(affinity: float, samples: int) -> float:
    """The same, from the Hellinger affinity of one sample: often far more, since affinities just multiply.

    1 - sqrt(1 - A**(2 r)), A = sum sqrt(p q) [tsybakov09, lem. 2.3]. A is exp(-D/2) for the Renyi
    divergence D of order 1/2, hence at least exp(-KL/2), which may stand for it.

    >>> round(overlap_from_affinity(0.6, 1), 9)
    0.2
    """
    _require(0 <= affinity <= 1, "affinity must be between 0 and 1", affinity)
    _require(samples >= 1, "samples must be at least 1", samples)
    if affinity == 0:
        return 0.0
    exponent = 2 * samples * math.log(affinity)
    # 1 - sqrt(1 - x) = x / (1 + sqrt(1 - x)), which loses no digits when x is small.
    return math.exp(exponent) / (1 + math.sqrt(-math.expm1(exponent)))


def le_cam_risk(separation: float, overlap: float) -> float:
    """The expected error that every estimator makes on one of two distributions whose parameters lie apart.

    max E d(estimate, parameter) >= separation / 2 * overlap, where overlap is at most 1 - TV(P**r,
    Q**r): see `overlap_from_total_variation`, `overlap_from_affinity` [yu97, lem. 1]. The printed
    separation / 8 * (1 - TV)**(2 r) [mcmillan18, lem. 3.1] holds too, and is at most a quarter of
    this.

    >>> le_cam_risk(2, overlap_from_total_variation(0.5, 1))
    0.5
    """
    _require(0 <= separation < math.inf, "separation must be finite and at least 0", separation)
    _require(0 <= overlap <= 1, "overlap must be between 0 and 1", overlap)
    return separation / 2 * overlap


def _require(holds: bool, rule: str, value: object) -> None:
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}")
