"""What no estimator of a graphon can do better, and what is known to be enough.

Errors are in delta_2, the L2 distance after the best relabelling. `density` is rho here: the
largest chance of an edge, which the density of a sampled graph only bounds from below. Proofs:
docs/proofs/graphon.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import xlogy

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter

SHARES = np.linspace(0.02, 0.4, 39)  # of entries in which two matrices of a packing differ
CONTRASTS = np.geomspace(1e-6, 0.5, 400)  # of two chances rho (1/2 + s) and rho (1/2 - s)


def estimation_rate(n: int, k: int, density: float) -> float:
    """The error that no estimator of k blocks from n nodes beats, up to a constant factor.

    min(rho, rho (k/n)**(1/4) + sqrt(rho) k/n, and sqrt(rho/n) where rho n >= 1) [mcmillan18, thm.
    4.3]. It is rho, the error of answering 0, where rho <= k**2 / n**2. One block has no labels to
    be missed.

    Args:
        n: Nodes, at least 1.
        k: Blocks, from 1 to n.
        density: rho, the largest chance of an edge: above 0 and at most 1.

    Returns:
        The error in delta_2, up to a constant.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> round(estimation_rate(600, 8, 0.1) / 0.1, 2)
        0.51

    """
    _check(n, k, density)
    labels = density * (k / n) ** 0.25 if k > 1 else 0.0
    blocks = math.sqrt(density) * k / n
    contiguous = math.sqrt(density / n) if k > 1 and density * n >= 1 else 0.0
    return min(density, labels + blocks + contiguous)


def attained_rate(n: int, k: int, density: float) -> float:
    """The error that block least squares is known to attain, up to a constant factor.

    min(rho, rho (k/n)**(1/4) + sqrt(rho) k/n + sqrt(rho log(k) / n)) [klopp17] [mcmillan18, (4.4)],
    where 1 stands for log 2: constants are not known, and no error is attained that nobody attains.
    Beside `estimation_rate` it says how much is unknown: a factor of at most sqrt(max(1, log k)),
    for rho n >= 1.

    Args:
        n: Nodes, at least 1.
        k: Blocks, from 1 to n.
        density: rho, the largest chance of an edge: above 0 and at most 1.

    Returns:
        The error in delta_2, up to a constant.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> attained_rate(600, 8, 0.1) >= estimation_rate(600, 8, 0.1)
        True

    """
    _check(n, k, density)
    labels = density * (k / n) ** 0.25 if k > 1 else 0.0
    contiguous = math.sqrt(density * max(1.0, math.log(k)) / n) if k > 1 else 0.0
    return min(density, labels + math.sqrt(density) * k / n + contiguous)


@dataclass(frozen=True, slots=True)
class Packing:
    """So many k-block graphons with chances rho/2 up to a contrast, each far from every other.

    `log_count` is the natural logarithm of their number. Any two are at delta_2 at least
    2 sqrt(share) times contrast times rho, whatever the relabelling.
    """

    k: int
    share: float
    log_count: float

    def radius(self, density: float, contrast: float) -> float:
        """How far apart any two are in delta_2, if chances are rho (1/2 + contrast) and (1/2 - contrast)."""
        return 2 * math.sqrt(self.share) * contrast * density


def packing(k: int, *, share: float = 1 / 6) -> Packing:
    """How many k-block graphons can be told apart: exp(order k**2), from random binary matrices.

    [mcmillan18, lem. 5.3, prop. 4.5], of k blocks: with any number of blocks there is no end to
    them. The union bound printed there says something for k >= 357 only; counting both halves of
    the matrix it does from k = 48 on at a share of 1/6, and from k = 10 on at 1/50.

    Args:
        k: Blocks, at least 1.
        share: The share of entries in which any two differ, in (0, 1/2).

    Returns:
        How many there are, as a logarithm, and how far apart.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> packing(47).log_count, packing(60).log_count > 25
        (0.0, True)

    """
    if k < 1 or not 0 < share < 0.5:
        raise InvalidParameter(
            f"k must be at least 1 and the share above 0 and below 1/2, got {k} and {share}; "
            "nothing was computed"
        )

    def exponent(t: float) -> float:
        # log E exp(t (share k**2 - Hamming)), at most: any t > 0 gives a bound.
        pairs = k * (k - 1) / 2 * math.log((1 + math.exp(-2 * t)) / 2)
        return t * share * k * k + pairs + k * math.log((1 + math.exp(-t)) / 2)

    best = float(minimize_scalar(exponent, bounds=(1e-6, 20.0), method="bounded").fun)
    # M matrices exist if M (M - 1) / 2 pairs times (k!)**2 relabellings times the chance are below
    # 1.
    log_count = (math.log(2) - best - 2 * math.lgamma(k + 1)) / 2
    if log_count < 30:
        log_count = math.log(max(1, math.floor(math.exp(log_count))))
    return Packing(k, share, log_count)


def divergence_bound(n: int, density: float, *, contrast: float) -> float:
    """How well a whole graph can tell two members of the packing: their KL divergence at most, in nats.

    n (n - 1) / 2 pairs of nodes, each at most KL of rho (1/2 + s) and rho (1/2 - s), in the worse
    order. By [mcmillan18, (5.10)] it is 32 c**2 k**2 rho, with a rho too many: that lemma asks for
    chances in [1/4, 3/4]. With s = c min(1, k / (n sqrt(rho))), s <= 1/4, 32 c**2 k**2 is right.

    Args:
        n: Nodes, at least 1.
        density: rho, the largest chance of an edge: above 0 and at most 1.
        contrast: How far chances are from rho / 2, as a share of rho: 0 to 1/2.

    Returns:
        The divergence in nats, at most.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> c, k, n, rho = 0.05, 8, 400, 0.01
        >>> found = divergence_bound(n, rho, contrast=c * min(1, k / (n * rho**0.5)))
        >>> 32 * c**2 * k**2 * rho < found < 32 * c**2 * k**2
        True

    """
    _check(n, 1, density)
    if not 0 <= contrast <= 0.5:
        raise InvalidParameter(
            f"contrast must lie in [0, 1/2], got {contrast}; nothing was computed"
        )
    return float(_divergences(n, density, np.array([contrast]))[0])


@dataclass(frozen=True, slots=True)
class Floor:
    """An error that some k-block graphon has in expectation, whatever the estimator: no hidden constant."""

    value: float
    reason: Literal["two points", "packing"]
    contrast: float


def error_floor(n: int, k: int, density: float) -> Floor:
    """How small an expected delta_2 error can be at all, with its constant.

    The better of two constant graphons (Le Cam) and of a packing (Fano), both as corrected, each at
    its best contrast [mcmillan18, thm. 5.4] [tsybakov09, lem. 2.3] [yu97, lem. 3]. Only many blocks
    make a packing the better one; below 10 blocks there is none.

    Args:
        n: Nodes, at least 1.
        k: Blocks, from 1 to n.
        density: rho, the largest chance of an edge: above 0 and at most 1.

    Returns:
        The error in delta_2, the argument that gives it, and its contrast.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> error_floor(1000, 4, 0.1).reason, error_floor(1000, 400, 0.1).reason
        ('two points', 'packing')

    """
    _check(n, k, density)
    pairs = n * (n - 1) / 2
    high, low = density * (0.5 + CONTRASTS), density * (0.5 - CONTRASTS)
    affinity = np.sqrt(high * low) + np.sqrt((1 - high) * (1 - low))
    # Both errors add up to the distance on what the laws share: (d / 2) (1 - TV) is left of the
    # worse.
    points = density * CONTRASTS * (1 - np.sqrt(1 - np.minimum(1.0, affinity) ** (2 * pairs)))
    best = int(np.argmax(points))
    floor = Floor(float(points[best]), "two points", float(CONTRASTS[best]))
    divergence = _divergences(n, density, CONTRASTS)
    for share in SHARES:
        found = packing(k, share=float(share))
        if found.log_count <= math.log(2):
            break  # A larger share leaves fewer.
        radius = 2 * math.sqrt(share) * density * CONTRASTS
        fano = radius / 2 * (1 - (divergence + math.log(2)) / found.log_count)
        best = int(np.argmax(fano))
        if fano[best] > floor.value:
            floor = Floor(float(fano[best]), "packing", float(CONTRASTS[best]))
    return floor


def _divergences(n: int, density: float, contrast: FloatArray) -> FloatArray:
    high, low = density * (0.5 + contrast), density * (0.5 - contrast)
    with np.errstate(divide="ignore"):
        one = _kl(high, low)
        other = _kl(low, high)
    return np.asarray(n * (n - 1) / 2 * np.maximum(one, other))


def _kl(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q)))


def _check(n: int, k: int, density: float) -> None:
    if not 1 <= k <= n:
        raise InvalidParameter(
            f"k must be at least 1 and at most n = {n}, got {k}; nothing was computed"
        )
    if not 0 < density <= 1:
        raise InvalidParameter(
            f"density must be above 0 and at most 1, got {density}; nothing was computed"
        )
