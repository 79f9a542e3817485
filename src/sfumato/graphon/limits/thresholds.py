"""Can this network tell you anything? Where blocks leave no trace, where they can be found, where exactly.

For k blocks of even size with one chance p of an edge within and one, q, between blocks. All
thresholds are for n without end, with a = n p and b = n q held (and for exact recovery n p / log
n): near a threshold a finite network may do otherwise. Why: docs/explain/graphon-limits.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.graphon.model import BlockGraphon

Regime = Literal[
    "impossible", "only by exhaustive search, if at all", "detectable", "recoverable exactly"
]
REGIMES: tuple[Regime, ...] = (
    "impossible", "only by exhaustive search, if at all", "detectable", "recoverable exactly",
)  # fmt: skip
EFFICIENT = 1.0  # Kesten and Stigum's bound on the signal
LARGE = "in large networks like this"  # with n without end; a finite one may do better, or worse


@dataclass(frozen=True, slots=True)
class Detectability:
    """What a network of k even blocks can tell about them, and the numbers that were compared.

    `signal` is compared with `contiguous` (below: no test tells it from one block) and with 1
    (above: known fast algorithms find the blocks better than guessing). `degree` is compared with
    `search_degree` (above: exhaustive search finds them), `separation` with 1 (above: every node
    can be placed rightly). `trivial` says that rho <= k**2 / n**2: some k-block graphon is then not
    estimated better than by answering 0.
    """

    regime: Regime
    signal: float
    contiguous: float
    degree: float
    search_degree: float
    separation: float
    trivial: bool

    @property
    def sentence(self) -> str:
        """The answer for a reader, with the numbers it comes from."""
        compared = f"signal {self.signal:.3g}"
        match self.regime:
            case "impossible":
                text = f"{compared} is not above {self.contiguous:.3g}: no test tells the blocks from none"
            case "only by exhaustive search, if at all":
                sure = "is" if self.degree > self.search_degree else "is not known to be"
                text = (
                    f"{compared} lies between {self.contiguous:.3g} and 1: no fast method is known, "
                    f"and exhaustive search {sure} enough"
                )
            case "detectable":
                text = f"{compared} is above 1: the blocks can be found {LARGE}, though not every node's"
            case "recoverable exactly":
                text = f"separation {self.separation:.3g} is above 1: every node's block can be found {LARGE}"
        return f"{self.regime}: {text}"


def signal(n: int, k: int, *, within: float, between: float) -> float:
    """How much the blocks stand out: d lambda**2, which is 1 at the bound of Kesten and Stigum.

    n (p - q)**2 / (k (p + (k - 1) q)), or (a - b)**2 > k (a + (k - 1) b) with a = n p, b = n q
    [decelle11] [abbe18].

    Args:
        n: Nodes, at least 2.
        k: Blocks, from 1 to n.
        within: The chance of an edge within a block, in [0, 1].
        between: The chance of an edge between two blocks, in [0, 1].

    Returns:
        The signal; above 1 fast methods find the blocks.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> round(signal(1000, 2, within=0.012, between=0.004), 12)
        2.0

    """
    _check(n, k, within, between)
    mean = (within + (k - 1) * between) / k
    return n * (within - between) ** 2 / (k * k * mean) if mean else 0.0


def contiguity_threshold(k: int) -> float:
    """The signal up to which no test tells k even blocks from none, as far as is proved.

    1 for two blocks [mossel15] [banerjee18]; 2 log(k - 1) / (k - 1) for more [banks16].

    >>> contiguity_threshold(2), round(contiguity_threshold(5), 4)
    (1.0, 0.6931)
    """
    if k < 2:
        raise InvalidParameter(f"there must be at least 2 blocks to tell from one, got {k}")
    return 1.0 if k == 2 else 2 * math.log(k - 1) / (k - 1)


def search_degree(k: int, contrast: float) -> float:
    """The mean degree from which an exhaustive search finds k even blocks.

    2 log(k) / KL(inside || 1/k): above it no wrong partition has as many edges inside. `contrast`
    is lambda, (p - q) over k times the mean chance; an edge is inside with chance (1 + (k - 1)
    lambda) / k [banks16].

    >>> round(search_degree(2, 1.0), 12)
    2.0
    """
    if k < 2 or not -1 / (k - 1) <= contrast <= 1:
        raise InvalidParameter(
            f"with k >= 2 blocks the contrast lies in [-1/(k - 1), 1], got {contrast} for {k}; "
            "nothing was computed"
        )
    inside = (1 + (k - 1) * contrast) / k
    kl = sum(x * math.log(x / y) for x, y in ((inside, 1 / k), (1 - inside, 1 - 1 / k)) if x > 0)
    return 2 * math.log(k) / kl if kl > 0 else math.inf


def detectability(n: int, k: int, *, within: float, between: float = 0.0) -> Detectability:
    """Say whether n nodes in k even blocks can tell anything about the blocks.

    With `between` left at 0 the contrast is as sharp as `within` allows: where even that is
    impossible, so are all even blocks whose largest chance is `within`. If only their mean chance m
    is known, the sharpest have within = k m, as far as that is at most 1. Every node can be placed
    if n (sqrt(p) - sqrt(q))**2 > k log n [abbe18].

    Args:
        n: Nodes, at least 2.
        k: Blocks, from 2 to n.
        within: The chance of an edge within a block, in [0, 1].
        between: The chance of an edge between two blocks, in [0, 1].

    Returns:
        The regime, and the numbers that were compared.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> detectability(1000, 4, within=0.01, between=0.006).regime
        'impossible'
        >>> print(detectability(1000, 4, within=0.2, between=0.02).sentence.partition(": ")[2])
        separation 3.38 is above 1: every node's block can be found in large networks like this

    """
    _check(n, k, within, between)
    if k < 2:
        raise InvalidParameter(
            f"there must be at least 2 blocks to find, got {k}; nothing was computed"
        )
    found = signal(n, k, within=within, between=between)
    threshold = contiguity_threshold(k)
    mean = (within + (k - 1) * between) / k
    # From -1/(k - 1) to 1, but for rounding.
    contrast = max(-1 / (k - 1), min(1.0, (within - between) / (k * mean))) if mean else 0.0
    separation = n * (math.sqrt(within) - math.sqrt(between)) ** 2 / (k * math.log(n))
    if found > EFFICIENT:
        regime: Regime = "recoverable exactly" if separation > 1 else "detectable"
    else:
        regime = "only by exhaustive search, if at all" if found > threshold else "impossible"
    return Detectability(
        regime,
        signal=found,
        contiguous=threshold,
        degree=n * mean,
        search_degree=search_degree(k, contrast),
        separation=separation,
        trivial=max(within, between) <= (k / n) ** 2,
    )


def signals(graphon: BlockGraphon, n: int) -> FloatArray:
    """How much each direction of the blocks stands out among n nodes: above 1 a fast method can find it.

    n l_i**2 / l_1 for all eigenvalues l_i of B diag(shares) but the largest, l_1; in decreasing
    order. For even blocks all are `signal`; uneven ones may show some directions and hide others. k
    - 1 numbers.

    Args:
        graphon: The blocks.
        n: Nodes, at least 2.

    Returns:
        k - 1 numbers, in decreasing order.

    Raises:
        InvalidParameter: n is below 2.

    Example:
        >>> signals(BlockGraphon([[0.012, 0.004], [0.004, 0.012]]), 1000).round(9).tolist()
        [2.0]

    """
    _check(n, 1)
    values = _eigenvalues(graphon)
    if values[-1] <= 0:
        return np.zeros(graphon.k - 1)
    return np.asarray(np.sort(n * values[:-1] ** 2 / values[-1])[::-1])


def even_like(graphon: BlockGraphon) -> tuple[float, float]:
    """Chances p within and q between even blocks that stand out as the faintest of these do, equally dense.

    Their signal is the least of `signals`, their density that of these. So what can be said of even
    blocks is not too much for uneven ones. The sign is that of the faintest eigenvalue: p < q where
    nodes meet their like least. Where that asks for a chance below 0 it is 0, and above 1 it is 1.

    Args:
        graphon: Blocks of any shares.

    Returns:
        The chances within and between blocks.

    Example:
        >>> p, q = even_like(BlockGraphon([[0.3, 0.1], [0.1, 0.3]]))
        >>> round(p, 12), round(q, 12)
        (0.3, 0.1)

    """
    k, density = graphon.k, graphon.density
    if k == 1:
        return density, density
    *others, largest = _eigenvalues(graphon).tolist()
    faintest = min(others, key=abs)
    # Even blocks have the density as their largest eigenvalue, so that n l**2 / density is their
    # signal.
    faintest *= math.sqrt(density / largest) if largest > 0 else 0.0
    # Of both chances none is below 0, and the mean is kept: p + (k - 1) q = k times the density.
    faintest = min(density, max(-density / (k - 1), faintest))
    return min(1.0, density + (k - 1) * faintest), min(1.0, density - faintest)


def phases(n: int, *, contrast: float, densities: npt.ArrayLike, blocks: npt.ArrayLike) -> IntArray:
    """The regime at every density and number of blocks, for a picture: [block, density], places in REGIMES.

    Densities are rho, the larger chance; the smaller is 1 - |contrast| of it, between blocks if the
    contrast is above 0 and within them if it is below.

    Args:
        n: Nodes, at least 2.
        contrast: How far the smaller chance is below the larger, as a share: in [-1, 1], not 0.
        densities: The larger chances, in [0, 1].
        blocks: Numbers of blocks, each from 2 to n.

    Returns:
        Places in REGIMES, [block, density].

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> phases(1000, contrast=0.9, densities=[0.001, 0.3], blocks=[2, 10])
        array([[0, 3],
               [0, 3]])

    """
    if not 0 < abs(contrast) <= 1:
        raise InvalidParameter(
            f"contrast must lie in [-1, 1] and not be 0, got {contrast}; nothing was computed"
        )
    rho, many = (
        np.atleast_1d(np.asarray(densities, np.float64)),
        np.atleast_1d(np.asarray(blocks, np.int64)),
    )
    sides = (1.0, 1 - contrast) if contrast > 0 else (1 + contrast, 1.0)

    def place(k: int, density: float) -> int:
        return REGIMES.index(
            detectability(n, k, within=sides[0] * density, between=sides[1] * density).regime
        )

    return np.array([[place(int(k), float(one)) for one in rho] for k in many], dtype=np.int64)


def _eigenvalues(graphon: BlockGraphon) -> FloatArray:
    """Those of B diag(shares), in increasing order."""
    root = np.sqrt(graphon.shares)
    return np.asarray(np.linalg.eigvalsh(graphon.matrix * np.outer(root, root)))


def _check(n: int, k: int, *chances: float) -> None:
    if n < 2 or not 1 <= k <= n:
        raise InvalidParameter(
            f"n must be at least 2 and k from 1 to n, got n = {n}, k = {k}; nothing was computed"
        )
    for chance in chances:
        if not 0 <= chance <= 1:
            raise InvalidParameter(
                f"the chance of an edge must lie in [0, 1], got {chance}; nothing was computed"
            )
