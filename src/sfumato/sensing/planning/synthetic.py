"""Made-up sites and sources, to try everything on: nobody in them exists."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.privacy import MovedMass, SwappedCells
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.site import Site
from sfumato.spaces import Graph, Grid, Line, Points


def synthetic_site(name: str, operator: Operator, neighbors: MovedMass | SwappedCells) -> Site:
    """A site whose sensors read as its operator says: of a source of mass 1 as much as the operator is."""
    return Site(name, operator, neighbors, unit="mass of sources", per_source=Fraction(1))


def synthetic_sources(
    space: Line | Grid | Graph | Points, count: int, *, rng: np.random.Generator
) -> FloatArray:
    """Unit sources in so many different cells, chosen at random."""
    count = whole("sources", count, low=1, high=space.size)
    masses = np.zeros(space.size)
    masses[rng.choice(space.size, count, replace=False)] = 1.0
    return masses


def block_graph(
    sizes: list[int], *, inside: float, across: float, rng: np.random.Generator
) -> tuple[Graph, IntArray]:
    """A network of communities and the community of each node: a stochastic block model, made connected.

    Two nodes share an edge with probability `inside` within a community, `across` between two.
    Parts that end up alone are tied by one edge to a random node, of their own community where
    there is one.
    """
    for name, share in (("inside", inside), ("across", across)):
        if not 0 <= share <= 1:
            raise InvalidParameter(f"{name} must be a probability, got {share}; no graph was made")
    labels = np.repeat(np.arange(len(sizes)), sizes)
    low, high = np.triu_indices(labels.size, 1)
    chosen = rng.random(low.size) < np.where(labels[low] == labels[high], inside, across)
    edges = np.column_stack([low[chosen], high[chosen]])
    graph = Graph(edges, nodes=labels.size)
    while (parts := graph.components()).any():
        # Tie the part of the first node that node 0 does not reach to another part, at home if
        # possible.
        lonely = int(np.flatnonzero(parts != 0)[0])
        others = np.flatnonzero((parts != parts[lonely]) & (labels == labels[lonely]))
        if not others.size:
            others = np.flatnonzero(parts != parts[lonely])
        edges = np.concatenate([edges, [[lonely, int(rng.choice(others))]]])
        graph = Graph(edges, nodes=labels.size)
    return graph, labels
