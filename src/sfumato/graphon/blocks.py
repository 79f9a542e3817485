"""Blocks: groups of nodes that are joined alike, found in a network by anybody, with the doubts said."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.graphon.estimation.estimators import Estimate, block_pairs
from sfumato.graphon.estimation.holdout import Gain, guarded_fit
from sfumato.graphon.limits.bounds import estimation_rate
from sfumato.graphon.limits.thresholds import even_like
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.network import Network
from sfumato.graphon.release import paying_ledger, private_blocks
from sfumato.graphon.sources import Nodes, named_network
from sfumato.privacy import Ledger, Noise, PureDP, Release
from sfumato.privacy.runs import Run
from sfumato.spaces import Graph

MAX_COMPLETE = 3000  # nodes of which all pairs are given weights


class Blocks:
    """Groups of nodes that are joined alike, and how often nodes of each two groups are joined.

    `Blocks().fit(graph)` takes a path to an edge list, a table of edges, a `Graph`, a scipy sparse or
    0-1 matrix, a networkx graph, or pairs of nodes. It chooses the number of blocks itself unless k
    says it, and gives one block where there is nothing to be found: blocks are believed only if they
    foretell edges that were kept from them. Pure chance passes at most once in 20 times.
    After `fit`:

        labels_      the block of each node, 0 to k_ - 1, in the order of nodes_
        nodes_       the nodes: names in files and tables, those of a networkx graph in its own order; in
                     other graphs, and if `fit` was told how many, the numbers 0 to n - 1
        matrix_      the chance that nodes of each two blocks are joined
        shares_      the share of the nodes in each block
        density_     the share of all pairs of nodes that are joined; a private one as far as was released
        k_           how many blocks were found
        detectable_  whether the network tells more than its density; if not, k_ is 1
        rate_        the error nobody beats for so many nodes and blocks, up to a constant: compare, don't
                     quote [mcmillan18, thm. 4.3]. It is stated for all networks whose chances are
                     at most rho; here rho is the larger chance of the even blocks that are as faint
                     as the faintest of these (`even_like`), and 0 gives 0: a network without edges
                     tells no rho
        graphon_     matrix_ and shares_ as a model to draw networks from
        reason_      why these blocks were believed or not, in words

    With `epsilon` and a `ledger` (or its path; relation FlippedEdge, unit "edge") the edges are private: nobody
    can tell from the answer whether two given nodes are joined. The nodes are public, so `fit`
    wants to know how many there are. `hopeless_` then says that the noise hid everything, and
    `releases_` are the receipts. A network that is public is not `hopeless_`.

    The same graph gives the same answer: edges are kept back by a fixed hash of their ends, which
    is public arithmetic and no secret. An `rng` chooses another hash; noise of private fits never
    comes from it.

    >>> cliques = [(i, j) for j in range(24) for i in range(j) if i // 8 == j // 8]
    >>> blocks = Blocks(k=3).fit(cliques)
    >>> blocks.labels_.tolist() == [node // 8 for node in range(24)], blocks.matrix_[0].tolist()
    (True, [1.0, 0.0, 0.0])
    >>> blocks
    Blocks(k=3): 3 blocks of 24 nodes
    """

    labels_: IntArray
    nodes_: tuple[Hashable, ...]
    density_: float
    matrix_: FloatArray
    shares_: FloatArray
    k_: int
    detectable_: bool
    hopeless_: bool
    rate_: float
    graphon_: BlockGraphon
    reason_: str
    gains_: tuple[Gain, ...]
    strengths_: tuple[float, ...]
    releases_: tuple[Release[IntArray], ...]

    def __init__(
        self,
        k: int | Literal["auto"] = "auto",
        *,
        epsilon: float | Fraction | str | None = None,
        ledger: Ledger | str | Path | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        if isinstance(k, str) and k != "auto":
            raise InvalidParameter(
                f"k must be a whole number or 'auto', got {k!r}; nothing was fitted"
            )
        if (epsilon is None) != (ledger is None):
            raise InvalidParameter(
                "private blocks need both epsilon and a ledger that pays, got "
                f"{'no epsilon' if epsilon is None else 'no ledger'}; nothing was fitted"
            )
        self.k: int | Literal["auto"] = k if isinstance(k, str) else whole("k", k, low=1)
        # A float such as 0.1 means the decimal that is printed, not the binary fraction next to it.
        self.epsilon = None if epsilon is None else PureDP(str(epsilon)).epsilon
        self.ledger = None if ledger is None else paying_ledger(ledger)
        self.rng = rng

    def __repr__(self) -> str:
        private = "" if self.epsilon is None else f", epsilon={self.epsilon}"
        asked = f"Blocks(k={self.k!r}{private})"
        if not hasattr(self, "labels_"):
            return asked
        found = f"{self.k_} block{'s' * (self.k_ > 1)} of {self.labels_.size} nodes"
        return f"{asked}: {found}" + (
            "" if self.detectable_ or self.k == 1 else ", nothing to be found"
        )

    def fit(
        self,
        graph: object,
        *,
        nodes: Nodes = None,
        noise: Noise | None = None,
        run: Run | None = None,
    ) -> Blocks:
        """Find the blocks of a graph.

        Args:
            graph: A path to an edge list, a pandas or polars table of edges, a networkx graph, a
                scipy sparse or 0-1 matrix, pairs of node numbers, a `Network` or a `Graph`.
            nodes: How many nodes there are, numbered from 0: the nodes of a networkx graph must then
                be such numbers, and labels_ follow the numbers; without it they follow
                `list(graph)`. For files and tables also the names of all nodes, or a file that lists
                them. Private fits need it for all but matrices and `Network`s: who is there must not
                be read off the edges.
            noise: For rehearsals of private fits; the system's is used without it.
            run: The request that a private fit is part of: what it draws is then kept.

        Returns:
            The same object, with what was found.

        Raises:
            InvalidInput: The graph cannot be read, is directed, or has loops or repeated edges.
            InvalidParameter: k is above the number of nodes, or a private fit has no `nodes`.
            BudgetExceeded: The ledger has less left than epsilon; nothing was released.

        """
        given = named_network(graph, nodes=nodes, private=self.epsilon is not None)
        network, self.nodes_ = given.network, given.names
        k = None if isinstance(self.k, str) else whole("k", self.k, low=1, high=network.size)
        if self.epsilon is not None and self.ledger is not None:
            found = private_blocks(
                network,
                k,
                epsilon=self.epsilon,
                ledger=self.ledger,
                noise=noise,
                run=run,
                about={"names": [str(name) for name in self.nodes_]},
            )
            self._keep(
                found.estimate, k, detectable=not found.hopeless and found.estimate.graphon.k > 1
            )
            counted = float(found.releases[-1].value.sum())
            self.density_ = min(1.0, max(0.0, counted / max(network.dyads, 1)))
            self.hopeless_, self.reason_ = found.hopeless, found.reason
            self.strengths_, self.releases_, self.gains_ = found.strengths, found.releases, ()
            return self
        salt = 0 if self.rng is None else int(self.rng.integers(1, 2**40))
        estimate, choice = guarded_fit(network, k, salt=salt)
        self._keep(estimate, k, detectable=choice.detectable)
        self.density_ = network.density
        self.hopeless_, self.reason_ = False, _reason(choice.gains, choice.k, chosen=k is None)
        self.strengths_, self.releases_, self.gains_ = (), (), choice.gains
        return self

    def fit_predict(
        self, graph: object, *, nodes: Nodes = None, noise: Noise | None = None
    ) -> IntArray:
        """The block of each node: labels_ after `fit`."""
        return self.fit(graph, nodes=nodes, noise=noise).labels_

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn asks so
        """What these blocks were asked for by, to ask again or otherwise; `deep` changes nothing."""
        return {"k": self.k, "epsilon": self.epsilon, "ledger": self.ledger, "rng": self.rng}

    def set_params(self, **params: Any) -> Blocks:
        """The same object, asked for otherwise; what was fitted before stays until `fit`."""
        known = self.get_params()
        if unknown := sorted(set(params) - set(known)):
            raise InvalidParameter(
                f"parameters are {', '.join(known)}, got {unknown[0]}; none was changed"
            )
        asked = Blocks(**{**known, **params})
        self.k, self.epsilon, self.ledger, self.rng = (
            asked.k,
            asked.epsilon,
            asked.ledger,
            asked.rng,
        )
        return self

    def plot(self, *, caption: str = "") -> bytes:
        """A picture (PNG) of the blocks: as wide as they are large, dark where joined."""
        from sfumato.figures import blocks_picture

        self._fitted("a picture", "drawn")
        names = [str(block) for block in range(self.k_)]
        return blocks_picture(
            self.matrix_,
            self.shares_,
            names=names,
            caption=caption or self.reason_,
            rehearsal=any(release.rehearsal for release in self.releases_),
        )

    def weights(self, edges: npt.ArrayLike | None = None) -> tuple[Graph, FloatArray]:
        """A graph and how strongly each of its edges conducts, for a network that is only partly known.

        Each pair conducts with the chance that it is joined. `edges` says which pairs, all if not
        given (at most 3000 nodes). `sensing.graph_diffusion(graph, rate, weights=weights)` takes
        both as they are. Two blocks without an edge seen get half an edge, since none seen in N
        pairs is not none: so the graph is connected.

        >>> graph, weights = Blocks(k=1).fit([(0, 1), (1, 2)]).weights()
        >>> graph.edges.tolist(), weights.round(3).tolist()
        ([[0, 1], [0, 2], [1, 2]], [0.667, 0.667, 0.667])
        """
        self._fitted("weights", "computed")
        n = self.labels_.size
        if edges is None:
            if not 2 <= n <= MAX_COMPLETE:
                raise InvalidParameter(
                    f"all pairs are given weights for 2 to {MAX_COMPLETE} nodes, got {n}: say which edges; "
                    "nothing was computed"
                )
            graph = Graph(np.column_stack(np.triu_indices(n, 1)), nodes=n)
        else:
            graph = Graph(Network(n, edges).edges, nodes=n)
        pairs = block_pairs(np.bincount(self.labels_, minlength=self.k_))
        chances = np.maximum(self.matrix_, 0.5 / np.maximum(pairs, 1))
        low, high = self.labels_[graph.edges].T
        return graph, chances[low, high]

    def _fitted(self, what: str, done: str) -> None:
        if not hasattr(self, "labels_"):
            raise InvalidParameter(
                f"blocks must be fitted before they have {what}; nothing was {done}"
            )

    def _keep(self, estimate: Estimate, k: int | None, *, detectable: bool) -> None:
        self.graphon_, self.labels_ = estimate.graphon, estimate.labels
        self.matrix_, self.shares_, self.k_ = (
            self.graphon_.matrix,
            self.graphon_.shares,
            self.graphon_.k,
        )
        self.detectable_ = detectable
        largest = max(even_like(self.graphon_))
        self.rate_ = (
            estimation_rate(self.labels_.size, k or self.k_, largest) if largest > 0 else 0.0
        )


def _reason(gains: tuple[Gain, ...], k: int, *, chosen: bool) -> str:
    """What the held-out edges said, and whether more blocks might have said more."""
    if not gains:
        return "one block: its density is all there is to find"
    best = max(gains, key=lambda gain: gain.gain)
    if best.deviation == 0:
        return "held-out edges say nothing of blocks: there are none, or all pairs are joined"
    by = best.gain / best.deviation
    limit = f"chance explains {best.threshold:.1f}"
    if k == 1:
        return f"{best.k} blocks foretell held-out edges no better than one: {by:.1f} deviations, {limit}"
    more = f"; more blocks than {k} were not tried: give k" if chosen and gains[-1].k == k else ""
    return (
        f"{k} blocks foretell held-out edges better than one, by {by:.1f} deviations; {limit}{more}"
    )
