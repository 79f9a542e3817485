"""The noise of a perturbed leader: scaled for one-step privacy, its cost, and draws of it."""

from __future__ import annotations

import math
from typing import assert_never

import numpy as np
import numpy.typing as npt
from scipy import special

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.online.laws import (
    Exponential,
    Frechet,
    Gaussian,
    Gumbel,
    Laplace,
    Pareto,
    Perturbation,
    Weibull,
    probabilities,
    require_positive,
)

NAMES = ("laplace", "gumbel", "frechet", "weibull", "pareto", "exponential")


def perturbation(name: str, epsilon: float, *, count: int) -> Perturbation:
    """Noise for so many candidates whose leader moves by at most a factor e**epsilon in one round.

    Its hazard is at most epsilon [mcmillan18, cor. 13.6]. Shapes of Frechet and Pareto noise are
    max(2, ln count), which gives them an expected maximum of order ln(count) / epsilon
    [abernethy15].

    Args:
        name: The noise: "laplace", "gumbel", "frechet", "weibull", "pareto" or "exponential".
        epsilon: The one-step privacy: above 0 and finite.
        count: How many candidates, at least 1.

    Returns:
        The law of the noise.

    Raises:
        InvalidParameter: The name is unknown, gaussian (whose hazard has no bound), or epsilon is
            out of range.

    Example:
        >>> perturbation("gumbel", 0.5, count=16)
        Gumbel(scale=2.0)

    """
    require_positive("epsilon", epsilon)
    _require_count(count)
    shape = max(2.0, math.log(count))
    match name:
        case "laplace":
            return Laplace(1 / epsilon)
        case "gumbel":
            return Gumbel(1 / epsilon)
        case "frechet":
            return Frechet(shape, Frechet(shape, 1.0).hazard / epsilon)
        case "weibull":
            return Weibull(1.0, 1 / epsilon)
        case "pareto":
            return Pareto(shape, shape / epsilon)
        case "exponential":
            return Exponential(1 / epsilon)
        case "gaussian":
            raise InvalidParameter(
                "the hazard of Gaussian noise has no bound, so no scale makes it private in one round "
                "without a delta: take Gaussian(sigma) and the bound of Theorem 12.4; no noise was made"
            )
        case _:
            raise InvalidParameter(
                f"noise must be one of {', '.join(NAMES)}, got {name!r}; no noise was made"
            )


def excess(noise: Perturbation, count: int) -> float:
    """How far the largest of so many draws lies above the mean: what perturbing a known leader can cost.

    E max - E Z, the regret bound of be-the-perturbed-leader; (12.1) of [mcmillan18] has E max,
    which is more for noise with a positive mean. Infinite where the mean is.

    Args:
        noise: The law of each draw.
        count: How many draws, at least 1.

    Returns:
        E max - E Z, in the unit of the noise; infinite where the mean is.

    Raises:
        InvalidParameter: count is below 1.

    Example:
        >>> excess(Gumbel(2.0), 16) == 2 * math.log(16)
        True

    """
    _require_count(count)
    if not math.isfinite(noise.mean):
        return math.inf
    if count == 1:
        return 0.0
    match noise:
        case Gumbel(scale):
            return scale * math.log(count)
        case Exponential(scale):
            return scale * sum(1 / k for k in range(2, count + 1))
        case Frechet(shape, _):
            return noise.mean * math.expm1(math.log(count) / shape)
        case Pareto(shape, scale):
            # E max is a Beta function: ratios of Gamma functions, the mean that of count 1.
            grown = float(special.poch(count + 1 - 1 / shape, 1 / shape)) * math.gamma(
                1 - 1 / shape
            )
            return scale * grown - noise.mean
        case Laplace(scale):
            # Integrate F - F**count by halves: powers of exp(x) left of 0, a geometric sum right of
            # it.
            left = 0.5 - 0.5**count / count
            return scale * (left + sum((1 - 0.5**k) / k for k in range(2, count + 1)))
        case Weibull() | Gaussian():
            return _excess_by_quadrature(noise, count)
        case _:
            assert_never(noise)


def draws(noise: Perturbation, uniforms: npt.ArrayLike) -> FloatArray:
    """Noise from uniforms in [0, 1), each taken for the middle of its step of 2**-53, from the nearer tail.

    So that neither end is ever infinite, as 0 would be for Laplace noise.

    >>> draws(Laplace(1.0), [0.0, 0.5, 1 - 2**-53]).round(2) + 0.0
    array([-36.74,   0.  ,  36.74])
    """
    u = probabilities(uniforms)
    if np.any(u >= 1):
        raise InvalidParameter("uniforms must be at least 0 and below 1, got 1; nothing was drawn")
    step = 2.0**-54
    low = noise.ppf(np.minimum(u + step, 0.5))
    return np.where(u < 0.5, low, noise.isf(np.minimum(1 - u - step, 0.5)))


def _excess_by_quadrature(noise: Perturbation, count: int) -> float:
    """The integral of F - F**count, which is positive, over ln(F / (1 - F)), where both tails are even."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    starts = np.arange(-80.0, 80.0 + 2 * math.log(count), 2.0)
    t = (starts[:, None] + 1 + nodes).ravel()
    below, above = special.expit(t), special.expit(-t)
    x = np.where(t < 0, noise.ppf(below), noise.isf(above))
    gap = -below * np.expm1((count - 1) * special.log_expit(t))
    return float(np.sum(np.tile(weights, starts.size) * gap * below * above / noise.pdf(x)))


def _require_count(count: int) -> None:
    if count < 1:
        raise InvalidParameter(f"count must be at least 1, got {count}; nothing was computed")
