"""Does the network tell anything beyond its number of edges? Blocks must foretell edges kept from them.

Fitting k blocks to pure chance always finds some, and their matrix is then worse than one number: 3
to 5 times at an average degree of 2. So edges are split by a fixed hash of their dyad, most for
fitting and the rest held out. Blocks that do not foretell the rest better than one number, by more
than chance explains, are not believed. The same gains choose k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sfumato._types import FloatArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.graphon.estimation.estimators import (
    Estimate,
    block_counts,
    block_means,
    constant,
    embedding,
    least_squares,
    refine,
)
from sfumato.graphon.network import Network
from sfumato.spaces import hashed, kmeans

KEPT = 0.85  # share of the edges that blocks are fitted to
FOLDS = 3
MAX_BLOCKS = 12  # blocks that k="auto" looks at
PATIENCE = 3  # numbers of blocks in a row that foretell no better, before it stops


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better k blocks foretell held-out dyads than one number does.

    `gain` is the drop in squared error over all folds. Given the kept edges it is an unbiased
    estimate of the drop for the chances of dyads that are not kept: (1 - t) p / (1 - t p), p the
    chance of an edge and t the share that is kept. `deviation` is at least its standard deviation:
    those of the folds added up, as if they erred alike. What chance explains is `threshold`
    deviations; so chance is believed more seldom than was allowed, and blocks just above what can
    be detected are often not.
    """

    k: int
    gain: float
    deviation: float
    threshold: float

    @property
    def believed(self) -> bool:
        """Whether the gain is more than chance explains."""
        return self.gain > self.threshold * self.deviation


@dataclass(frozen=True, slots=True)
class Choice:
    """The number of blocks that foretells best, and what each number that was looked at gained."""

    k: int
    detectable: bool
    gains: tuple[Gain, ...]


def guarded_fit(
    network: Network, k: int | None = None, *, salt: int = 0, alarm: float = 0.05
) -> tuple[Estimate, Choice]:
    """Blocks by least squares if they foretell held-out dyads, otherwise one block; k by itself unless given.

    On a network that is pure chance (Erdos-Renyi) blocks are believed with a chance of at most
    `alarm`. Far more blocks than there are may be refused where fewer are believed: k is then too
    many to foretell.

    Args:
        network: The network.
        k: How many blocks, from 1; None chooses from 1 to 12.
        salt: Which hash splits the edges.
        alarm: The chance of believing in blocks where there are none, at most; in (0, 1).

    Returns:
        The blocks, and what each number of blocks gained on held-out edges.

    Raises:
        InvalidParameter: k or alarm is out of range.

    """
    if k == 1 or network.size < 4:
        return constant(network), Choice(1, False, ())
    choice = choose(
        network, candidates(network.size) if k is None else (k,), salt=salt, alarm=alarm
    )
    if not choice.detectable:
        return constant(network), choice
    # The same steps as in the folds: what was tested is what is used.
    return least_squares(network, choice.k, starts=1), choice


def candidates(n: int) -> tuple[int, ...]:
    """The numbers of blocks that k="auto" looks at: blocks of ten nodes at least, and no more than 12."""
    return tuple(range(2, max(2, min(MAX_BLOCKS, n // 10)) + 1))


def choose(network: Network, ks: Sequence[int], *, salt: int = 0, alarm: float = 0.05) -> Choice:
    """The number of blocks, of those given in increasing order, that foretells held-out dyads best.

    Several numbers are several chances of a false alarm, so each gets its part of `alarm`.
    """
    if not ks:
        raise InvalidParameter(
            "at least one number of blocks must be given, got none; nothing was fitted"
        )
    if not 0 < alarm < 1:
        raise InvalidParameter(f"alarm must lie in (0, 1), got {alarm}; nothing was fitted")
    max_blocks = max(whole("k", k, low=2, high=network.size) for k in ks)
    threshold = -float(ndtri(alarm / len(ks)))
    folds = [
        _Fold.split(network, KEPT, salt=FOLDS * salt + fold, max_blocks=max_blocks)
        for fold in range(FOLDS)
    ]
    gains: list[Gain] = []
    best = 0
    for at, k in enumerate(ks):
        found = [fold.gain(k) for fold in folds]
        # Each fold's blocks were fitted to edges that others hold out, so how folds err together is
        # not known: deviations add up at worst.
        gains.append(Gain(k, sum(g for g, _ in found), sum(d for _, d in found), threshold))
        if gains[at].gain > gains[best].gain:
            best = at
        if at - best >= PATIENCE:
            break
    believed = gains[best].believed
    return Choice(gains[best].k if believed else 1, believed, tuple(gains))


@dataclass(frozen=True, slots=True)
class _Fold:
    """A network without its held-out edges, those edges, and the embedding of its nodes."""

    kept: Network
    held: Network
    share: float
    rows: FloatArray

    @classmethod
    def split(cls, network: Network, share: float, *, salt: int, max_blocks: int) -> _Fold:
        low, high = network.edges.T
        chosen = hashed(low * network.size + high, 1000 + salt) < share
        kept = Network(network.size, network.edges[chosen])
        held = Network(network.size, network.edges[~chosen])
        return cls(kept, held, share, embedding(kept, min(max_blocks, network.size)))

    def gain(self, k: int) -> tuple[float, float]:
        """The drop in squared error on dyads that are not kept edges, and a bound of its deviation.

        A dyad with chance p is a kept edge with t p, t the share. If it is not, it is a held-out
        edge with (1 - t) p / (1 - t p), by itself, whatever was kept: so blocks of the kept edges
        foretell it fairly.
        """
        labels, _ = refine(self.kept.adjacency, kmeans(self.rows[:, :k], k), k)
        edges, pairs = block_counts(self.kept, labels, k)
        found, _ = block_counts(self.held, labels, k)
        chance = self._foretold(block_means(edges, pairs))
        flat = float(self._foretold(np.array(len(self.kept.edges) / self.kept.dyads)))
        free, once = pairs - edges, np.triu(np.ones((k, k)))
        apart = chance - flat
        drop = 2 * found * apart - free * (chance**2 - flat**2)
        # Poisson, which is more than binomial; and where few were found, at least what one number
        # expects.
        variance = 4 * apart**2 * np.maximum(found, free * flat)
        return float((once * drop).sum()), math.sqrt(float((once * variance).sum()))

    def _foretold(self, kept: FloatArray) -> FloatArray:
        chance = np.minimum(kept / self.share, 1.0)
        return (1 - self.share) * chance / (1 - self.share * chance)
