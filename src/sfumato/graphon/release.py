"""Blocks of a private network: nobody can tell from them whether two given nodes are joined.

First every dyad is reported truly or flipped, and blocks are found in the flipped network; then the
edges between those blocks are counted in the true one, with discrete Laplace noise. The nodes are
public, edges are not. Proof: docs/proofs/graphon-release.md
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, whole
from sfumato.errors import InvalidInput, InvalidParameter, LedgerMismatch
from sfumato.graphon.estimation.estimators import (
    DENSE,
    Estimate,
    block_counts,
    block_means,
    block_pairs,
    refine,
)
from sfumato.graphon.estimation.holdout import MAX_BLOCKS
from sfumato.graphon.flipped_dyads import FlippedDyads
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.network import Network
from sfumato.graphon.sample import triangle_pairs
from sfumato.privacy import (
    Bound,
    DiscreteLaplace,
    FlippedEdge,
    Guarded,
    Ledger,
    Noise,
    PureDP,
    Release,
    guard,
)
from sfumato.privacy.ledger import Source
from sfumato.privacy.runs import Run, Unkept
from sfumato.spaces import kmeans, leading_eigenvectors, numbered_by_first

UNIT = "edge"
PARTS = ("dyads", "")
"""The two releases of which blocks are made, as parts of a request."""

# Share of epsilon that flips the dyads. Counts are sums of many dyads and need little: labels are
# what is hard (experiments/graphon/private.py).
FOR_LABELS = Fraction(19, 20)

SPARSE = (
    1.5  # how far few edges push the noise, where 1 is the first term of its series and not enough
)

# Quantile 0.975 of the largest eigenvalue of a real symmetric matrix [tracy96]; the spectrum has
# two ends.
TRACY_WIDOM = 1.454


def paying_ledger(ledger: Ledger | str | Path) -> Ledger:
    """The ledger that pays for edges; any other is refused with the line that makes the right one."""
    if isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidParameter(f"a ledger is one, or its path, got {ledger!r}; nothing was read")
    path = Path(ledger)
    line = f"sfumato ledger create {path} --epsilon 3 --unit edge --neighbors flipped-edge --source NAME"
    if not path.exists():
        raise InvalidInput(f"there is no ledger {path}; make one with: {line}; nothing was read")
    found = Ledger(path)
    if not isinstance(found.header.neighbors, FlippedEdge) or found.header.unit != UNIT:
        raise LedgerMismatch(
            f"{path} accounts for '{found.header.neighbors}' per {found.header.unit}, and edges need one "
            f"made like: {line}; nothing was read"
        )
    return found


@dataclass(frozen=True, slots=True, eq=False)
class PrivateBlocks:
    """Blocks found in released values alone, and whether the noise leaves anything to find.

    `strengths` are the leading eigenvalues of the flipped network about its mean, in units of the
    largest that flipping alone explains: those above 1 are real directions. k blocks have at most
    k, and k - 1 if all nodes have as many edges. None of them above 1 is `hopeless`; then there is
    one block. `reason` says it in words.
    """

    estimate: Estimate
    hopeless: bool
    reason: str
    strengths: tuple[float, ...]
    releases: tuple[Release[IntArray], ...]


def private_blocks(
    network: Network,
    k: int | None,
    *,
    epsilon: Fraction | int | str,
    ledger: Ledger,
    noise: Noise | None = None,
    labels_share: Fraction = FOR_LABELS,
    run: Run | None = None,
    about: Any = None,
) -> PrivateBlocks:
    """Blocks of a private network for epsilon, paid from the ledger; k None finds the number in the release.

    The ledger's relation is FlippedEdge, its unit "edge", and its model "central": who calls this
    sees all edges. Both releases must be affordable or nothing is charged. If the process dies
    between the two, the first stays charged, and another try pays again, unless it is of the same
    `run`. A dense computation: at most 6000 nodes.

    Privacy: PureDP(epsilon) for a flipped edge. Proof: docs/proofs/graphon-release.md

    Args:
        network: The network; 4 to 6000 nodes.
        k: How many blocks, from 1; None finds the number in the release.
        epsilon: The whole cost: above 0, of which `labels_share` is at most 20.
        ledger: The ledger that pays.
        noise: For rehearsals; the system's without it.
        labels_share: The share of epsilon that flips the dyads, in (0, 1); the rest counts edges.
        run: The request that this is: what is drawn is then kept beside the ledger, and what it has
            paid for is not paid again.
        about: What is kept beside the counts, as JSON: the names of the nodes.

    Returns:
        The blocks, with both releases.

    Raises:
        InvalidParameter: A parameter is out of range; nothing was charged.
        LedgerMismatch: The ledger is not one for edges; nothing was charged.
        BudgetExceeded: The ledger has less left; nothing was charged.

    """
    n = whole("nodes", network.size, low=4, high=DENSE)
    if k is not None:
        whole("k", k, low=1, high=n)
    if not 0 < labels_share < 1:
        raise InvalidParameter(
            f"labels_share must lie in (0, 1), got {labels_share}; nothing was charged"
        )
    whole_budget = PureDP(epsilon)
    flipping = FlippedDyads(whole_budget.epsilon * labels_share)
    rest = PureDP(whole_budget.epsilon - flipping.epsilon)
    paying = Unkept() if run is None else run
    prices = (PureDP(flipping.epsilon), rest)
    made = [paying.made(ledger, part, number=number) for number, part in enumerate(PARTS)]
    costs = [cost for cost, done in zip(prices, made, strict=True) if not done]
    ledger.afford(*costs, bound=_one_edge(network.dyads))
    _fits(n)
    flipped, _ = paying.release(
        ledger,
        flipping,
        lambda: guard_dyads(network, ledger.header.source),
        part=PARTS[0],
        noise=noise,
        note="dyads",
    )
    seen = blocks_in(flipped.value, n, k)
    counting, counts = _counting(network, seen.labels, rest, ledger)
    counted, _ = paying.release(
        ledger,
        counting,
        counts,
        part=PARTS[1],
        noise=noise,
        pay=rest,
        note="blocks",
        attach=lambda _: about,
    )
    return PrivateBlocks(
        estimate_from_counts(seen.labels, counted.value),
        hopeless=seen.directions == 0 and k != 1,
        reason=_reason(n, k, seen.directions, flip=float(flipping.flip), released=counted.value),
        strengths=seen.strengths,
        releases=(flipped, counted),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What a flipped network shows: blocks, strengths of directions, how many of these are above noise."""

    labels: IntArray
    strengths: tuple[float, ...]
    directions: int


def blocks_in(dyads: IntArray, n: int, k: int | None) -> Seen:
    """The blocks of a released, flipped network; arithmetic on released values, at no further cost.

    Least squares from those eigenvectors about the mean that are above the noise; one block where
    none is. Flipping is affine in the chances, so nothing has to be undone to find blocks. With k
    None there are as many as eigenvalues of the flipped network itself are above the noise, its
    mean being one of them: chances of k blocks have rank k unless some combination of them is
    nothing.

    Args:
        dyads: Released dyads, 0 or 1 each; pair i < j has the number j (j - 1) / 2 + i.
        n: Nodes; there are n (n - 1) / 2 dyads.
        k: How many blocks; None finds the number.

    Returns:
        The block of each node, the strengths of directions, and how many are above the noise.

    """
    flipped = square(dyads, n)
    mean = flipped.sum() / (n * (n - 1))
    centred: FloatArray = flipped - mean
    np.fill_diagonal(centred, 0)
    edge = noise_edge(flipped)
    values, vectors = leading_eigenvectors(centred, min(MAX_BLOCKS if k is None else k, n))
    strengths = np.abs(values) / edge
    directions = int(np.count_nonzero(strengths > 1))
    blocks = 1 if directions == 0 or k is None else k
    if directions and k is None:
        own, _ = leading_eigenvectors(centred + mean, min(MAX_BLOCKS, n))
        blocks = max(2, int(np.count_nonzero(np.abs(own) > edge)))
    labels = np.zeros(n, dtype=np.int64)
    if blocks > 1:
        rows = vectors[:, :directions] * np.abs(values[:directions])
        labels, _ = refine(centred, kmeans(rows, blocks), blocks)
    return Seen(numbered_by_first(labels), tuple(float(s) for s in strengths), directions)


def response_signal(n: int, k: int, *, density: float, epsilon: float) -> float:
    """How far k even blocks of this density can stand out of flipping at epsilon; below 1 they do not.

    At their clearest they have all edges inside them: the eigenvalues about the mean are then n (1
    - 2 q) (p - r) / k, with q the chance of a flip and p, r the densities inside and between.
    Flipping makes a semicircle of radius 2 sqrt(n f (1 - f)), f the density after flipping, and no
    eigenvector tells anything of blocks whose eigenvalue is below half of that [benaychgeorges11,
    thm. 2.1 and 2.2]. Uneven blocks of the same density, such as few nodes who all know each other,
    may stand out further. To be asked before any data is read. The density is a guess, or comes
    from a release.

    Args:
        n: Nodes, at least 2.
        k: Even blocks, from 1 to n.
        density: The share of pairs that are joined, in [0, 1].
        epsilon: What the flipping costs, at least 0.

    Returns:
        The signal at its clearest; below 1 even blocks stay hidden.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> [round(response_signal(800, 4, density=0.065, epsilon=e), 2) for e in (0.5, 1, 2)]
        [0.92, 1.86, 3.74]

    """
    if not (n >= 2 and 1 <= k <= n and 0 <= density <= 1 and epsilon >= 0):
        raise InvalidParameter(
            "n must be at least 2, k from 1 to n, density in [0, 1] and epsilon at least 0, got "
            f"n = {n}, k = {k}, density {density}, epsilon {epsilon}; nothing was computed"
        )
    q = 1 / (1 + math.exp(min(epsilon, 700.0)))  # beyond it no flip is left, and exp would overflow
    inside = min(1.0, k * density)
    between = (k * density - inside) / (k - 1) if k > 1 else density
    after = q + (1 - 2 * q) * density
    noise = math.sqrt(n * after * (1 - after))
    return (1 - 2 * q) * n * (inside - between) / k / noise if noise else 0.0


def guard_dyads(network: Network, source: Source) -> Guarded[IntArray]:
    """All dyads of a network under guard, 1 where joined; pair i < j has the number j (j - 1) / 2 + i."""
    dyads = np.zeros(network.dyads, dtype=np.int64)
    low, high = network.edges.T
    dyads[high * (high - 1) // 2 + low] = 1
    return guard(dyads, _one_edge(network.dyads), source=source)


def square(dyads: IntArray, n: int) -> FloatArray:
    """The symmetric matrix with these dyads, 0 on the diagonal.

    Args:
        dyads: One number for each pair of nodes; pair i < j has the number j (j - 1) / 2 + i.
        n: Nodes.

    Returns:
        The matrix, n x n.

    """
    i, j = triangle_pairs(np.arange(dyads.size))
    matrix = np.zeros((n, n))
    matrix[i, j] = matrix[j, i] = dyads
    return matrix


def noise_edge(flipped: FloatArray) -> float:
    """The largest eigenvalue about the mean that independent dyads without blocks have, but once in 20 times.

    sqrt(n v) (2 + (SPARSE - 6 v) / (n v) + n**(-2/3) t), v = f (1 - f) of the density f and t a
    quantile of Tracy and Widom; where few are joined, stars reach further: d / sqrt(d - n f) if the
    largest degree d is above 2 n f, which is about its root [krivelevich03, thm. 1.1]. Where most
    are joined the pairs that are not count. Derivation, and how often it fails:
    docs/proofs/graphon-release.md

    Args:
        flipped: The symmetric 0-1 matrix of a flipped network, 0 on its diagonal.

    Returns:
        The eigenvalue, above 0; larger ones are real directions.

    """
    n = len(flipped)
    degrees = flipped.sum(axis=1)
    mean = float(degrees.mean())
    if 2 * mean > n - 1:
        degrees, mean = n - 1 - degrees, n - 1 - mean
    if mean <= 0:
        return 1e-12
    variance = mean / (n - 1) * (1 - mean / (n - 1))
    bulk = math.sqrt(n * variance) * (
        2 + (SPARSE - 6 * variance) / (n * variance) + TRACY_WIDOM * math.pow(n, -2 / 3)
    )
    largest = float(degrees.max())
    return max(bulk, largest / math.sqrt(largest - mean) if largest > 2 * mean else 0.0)


def estimate_from_counts(labels: IntArray, released: IntArray) -> Estimate:
    """Block means from released counts of edges, clipped to chances; arithmetic on released values too."""
    k = int(labels.max()) + 1
    sizes = np.bincount(labels, minlength=k)
    pairs = block_pairs(sizes)
    counts = np.zeros((k, k))
    counts[np.triu_indices(k)] = released
    counts = np.triu(counts) + np.triu(counts, 1).T
    means = np.clip(block_means(counts, pairs), 0, 1)
    once = np.triu(np.ones((k, k)))
    loss = float((once * pairs * means * (1 - means)).sum() / max(int((once * pairs).sum()), 1))
    return Estimate(BlockGraphon(means, sizes / labels.size), read_only(labels), loss)


def _fits(n: int) -> None:
    """Take the memory of `blocks_in` and give it back: where there is not enough, before anything is paid."""
    np.ones((4, n, n))


def _one_edge(size: int) -> Bound:
    return Bound(FlippedEdge(), size, l1=1, l2_squared=1, linf=1, entries=1, unit=UNIT)


def _counting(
    network: Network, labels: IntArray, loss: PureDP, ledger: Ledger
) -> tuple[DiscreteLaplace, Callable[[], Guarded[IntArray]]]:
    """Noise for the edges between each two blocks, those of the upper triangle; one edge is in one of them."""
    k = int(labels.max()) + 1
    bound = _one_edge(k * (k + 1) // 2)

    def counts() -> Guarded[IntArray]:
        edges, _ = block_counts(network, labels, k)
        return guard(edges[np.triu_indices(k)], bound, source=ledger.header.source)

    # A scale is rounded up to a double; what was meant is paid, so that the two parts make up
    # epsilon.
    return DiscreteLaplace.within(loss, bound), counts


def _reason(n: int, k: int | None, seen: int, *, flip: float, released: IntArray) -> str:
    """What the release says of itself, from released and public numbers only."""
    epsilon = math.log((1 - flip) / flip)
    density = min(1.0, max(0.0, float(np.sum(released)) / (n * (n - 1) / 2)))
    if k == 1:
        return "one block was asked for: its density is all there is to find"
    if seen:
        need = (
            ""
            if k is None or seen >= k - 1
            else f", of the {k - 1} that {k} even blocks have, so some of these blocks may be chance"
        )
        return (
            f"{seen} {'direction rises' if seen == 1 else 'directions rise'} above the noise{need}"
        )
    best = response_signal(n, k or 2, density=density, epsilon=epsilon)
    even = f"{k or 2} even blocks of density {density:.2g}"
    could = (
        f"{even}, however clear, do not: a signal of {best:.2g} at most, where 1 is needed"
        if best < 1
        else f"{even} reach a signal of {best:.2g} at their clearest, where 1 is needed: these are fainter, "
        "or there are none"
    )
    return (
        f"hopeless: every pair of nodes is flipped with chance {flip:.3g}, and nothing rises above that "
        f"noise; {could}"
    )
