"""Networks drawn from a block graphon, in time proportional to their edges."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, whole
from sfumato.errors import InvalidParameter
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.network import MAX_NODES, Network


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A network drawn from a model, and the block of each of its nodes, which the network does not tell."""

    network: Network
    labels: IntArray


def sample_graph(
    graphon: BlockGraphon, n: int, rng: np.random.Generator, *, labels: npt.ArrayLike | None = None
) -> Sampled:
    """A network of n nodes as the model makes them: a block for each node, then a coin for each pair.

    Every node falls into a block by itself, with the shares as chances, unless `labels` says where
    they are; every pair is joined by itself [mcmillan18, def. 4.1]. Coins are not tossed one by
    one: from one edge to the next lies a geometric number of pairs, so the cost is that of the
    edges [batagelj05, alg. 1].

    Args:
        graphon: The model.
        n: How many nodes, at least 1.
        rng: Where blocks and edges come from.
        labels: The block of each node, if they are not to be drawn.

    Returns:
        The network and the block of each node.

    Raises:
        InvalidParameter: n is out of range, or labels are not n blocks of the model.

    Example:
        >>> cliques = BlockGraphon([[1.0, 0.0], [0.0, 1.0]])
        >>> drawn = sample_graph(cliques, 5, np.random.default_rng(7), labels=[0, 1, 0, 1, 1])
        >>> drawn.network.edges.tolist()
        [[0, 2], [1, 3], [1, 4], [3, 4]]

    """
    n = whole("n", n, low=1, high=MAX_NODES)
    chosen = (
        graphon.block(rng.random(n)) if labels is None else checked_labels(labels, n, graphon.k)
    )
    order = np.argsort(chosen, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(chosen, minlength=graphon.k))[:-1])
    ends: list[tuple[IntArray, IntArray]] = []
    for a in range(graphon.k):
        one, chance = groups[a], float(graphon.matrix[a, a])
        i, j = triangle_pairs(bernoulli_cells(one.size * (one.size - 1) // 2, chance, rng))
        ends.append((one[i], one[j]))
        for b in range(a + 1, graphon.k):
            other, chance = groups[b], float(graphon.matrix[a, b])
            cells = bernoulli_cells(one.size * other.size, chance, rng)
            row = cells // max(other.size, 1)
            ends.append((one[row], other[cells - row * other.size]))
    first, second = (np.concatenate(part) for part in zip(*ends, strict=True))
    network = Network.from_ends(n, np.minimum(first, second), np.maximum(first, second))
    return Sampled(network, read_only(chosen))


def bernoulli_cells(cells: int, chance: float, rng: np.random.Generator) -> IntArray:
    """Which of so many cells come up when each does with this chance, in increasing order.

    The gaps between them are geometric; about as many are drawn as are needed, and a few more.
    """
    if cells <= 0 or chance <= 0:
        return np.empty(0, dtype=np.int64)
    if chance >= 1:
        return np.arange(cells, dtype=np.int64)
    found: list[IntArray] = []
    last = -1
    while last < cells:
        expected = (cells - 1 - last) * chance
        count = int(expected + 4 * math.sqrt(expected)) + 8
        # A gap beyond the end is as good as any other. Cut there, 64 of them stay in int64 for the
        # 2**57 pairs of the largest network; where more are drawn, no chance takes them to 64 times
        # the end.
        gaps = np.minimum(rng.geometric(chance, count), cells + 1)
        reached = last + np.cumsum(gaps)
        found.append(reached)
        last = int(reached[-1])
    places = np.concatenate(found) if len(found) > 1 else found[0]
    return places[: np.searchsorted(places, cells)]


def triangle_pairs(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """The pair i < j whose number is j (j - 1) / 2 + i: exact for all numbers below 2**61.

    >>> [part.tolist() for part in triangle_pairs(np.arange(4))]
    [[0, 0, 1, 0], [1, 2, 2, 3]]
    """
    # The root is off by rounding at most; whole numbers put it right.
    guess: FloatArray = np.floor((1 + np.sqrt(8.0 * numbers + 1)) / 2)
    j = guess.astype(np.int64)
    j -= j * (j - 1) // 2 > numbers
    j += (j + 1) * j // 2 <= numbers
    return numbers - j * (j - 1) // 2, j


def checked_labels(labels: npt.ArrayLike, n: int, k: int) -> IntArray:
    """A fresh array of one block from 0 to k - 1 for each of n nodes, or what is wrong with it."""
    array = np.array(labels)
    if array.shape != (n,) or array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= k:
        raise InvalidParameter(
            f"labels must be a block from 0 to {k - 1} for each of {n} nodes, got shape {array.shape} of "
            f"type {array.dtype}; nothing was computed"
        )
    return array.astype(np.int64)
