"""Who is joined to whom: one light type for networks, made from graphs, matrices and pairs of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, whole
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.spaces import Graph

# Pairs of nodes are numbered in int64, and samplers add up dozens of such numbers.
MAX_NODES = 2**29


@dataclass(frozen=True, init=False, eq=False)
class Network:
    """Nodes 0..size-1 and the pairs that are joined: undirected, without loops, each edge once.

    `edges` is an array of pairs, smaller end first, in increasing order. Nodes without an edge
    count. Make one from anything with `as_network`.

    >>> network = Network(4, [(2, 0), (0, 1)])
    >>> network.edges.tolist(), network.degrees.tolist(), round(network.density, 3)
    ([[0, 1], [0, 2]], [2, 1, 1, 0], 0.333)
    """

    size: int
    edges: IntArray

    def __init__(self, size: int, edges: npt.ArrayLike) -> None:
        nodes = whole("size", size, low=1, high=MAX_NODES)
        ends = _pairs(edges)
        low, high = np.minimum(ends[:, 0], ends[:, 1]), np.maximum(ends[:, 0], ends[:, 1])
        if ends.size and (low.min() < 0 or high.max() >= nodes):
            wrong = ends[np.flatnonzero((low < 0) | (high >= nodes))[0]]
            raise InvalidInput(
                f"edges must join nodes from 0 to {nodes - 1}, got ({wrong[0]}, {wrong[1]}); "
                "no network was built"
            )
        loops = np.flatnonzero(low == high)
        if loops.size:
            node = low[loops[0]]
            raise InvalidInput(
                f"an edge must join two different nodes, got ({node}, {node}) and {loops.size - 1} more "
                "such; no network was built"
            )
        # A pair as one number sorts several times faster than two columns.
        numbers = np.sort(low * nodes + high)
        again = np.flatnonzero(numbers[1:] == numbers[:-1])
        if again.size:
            one, other = divmod(int(numbers[again[0]]), nodes)
            raise InvalidInput(
                f"an edge must be given once, got ({one}, {other}) again and {again.size - 1} more such; "
                "no network was built"
            )
        self._born(nodes, numbers)

    @classmethod
    def from_ends(cls, size: int, low: IntArray, high: IntArray) -> Network:
        """A network of edges that are right by construction: low < high < size, none twice; not checked."""
        network = cls.__new__(cls)
        network._born(size, np.sort(low * size + high))
        return network

    def _born(self, size: int, numbers: IntArray) -> None:
        edges = np.empty((numbers.size, 2), dtype=np.int64)
        np.floor_divide(numbers, size, out=edges[:, 0])
        edges[:, 1] = numbers - edges[:, 0] * size
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "edges", read_only(edges))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return self.size == other.size and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((self.size, self.edges.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        return Network, (self.size, self.edges)

    @property
    def dyads(self) -> int:
        """How many pairs of nodes there are, joined or not."""
        return self.size * (self.size - 1) // 2

    @property
    def density(self) -> float:
        """The share of pairs that are joined; 0 when there are none."""
        return len(self.edges) / max(self.dyads, 1)

    @cached_property
    def degrees(self) -> IntArray:
        """How many others each node is joined to."""
        return read_only(np.bincount(self.edges.ravel(), minlength=self.size).astype(np.int64))

    @cached_property
    def adjacency(self) -> sparse.csr_array[np.float64]:
        """The matrix with 1 for each edge, both ways."""
        low, high = self.edges.T
        rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
        return sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(self.size, self.size))


@runtime_checkable
class Networkx(Protocol):
    """What networkx graphs of all kinds can be asked, so that the package itself is not needed."""

    nodes: Any
    edges: Any

    def is_directed(self) -> bool:
        """Whether edges have a direction."""

    def is_multigraph(self) -> bool:
        """Whether edges may be parallel."""


def as_network(graph: object, *, nodes: int | None = None) -> Network:
    """A network from a Graph, a scipy sparse or square 0-1 matrix, a networkx graph, or pairs of nodes.

    Lengths of a `Graph` and weights of a networkx graph are left out: an edge is there or not.
    Matrices have entries 0 and 1. Node k of a networkx graph is the k-th of its `nodes`; if `nodes`
    says how many there are, its nodes must be numbers from 0 to nodes - 1 and stay what they are.
    Pairs of nodes may come with `nodes` if the last have no edge. Loops, edges given twice and
    matrices that are not symmetric are refused.

    Args:
        graph: A `Network` or `Graph`, a scipy sparse or square 0-1 matrix, a networkx graph, or
            pairs of node numbers.
        nodes: How many nodes there are, numbered from 0; by default as many as the graph has, and
            for pairs up to the largest number.

    Returns:
        The network, undirected and each edge once.

    Raises:
        InvalidInput: The graph is directed, weighted, not symmetric, or has loops or repeated
            edges.

    Example:
        >>> as_network([(0, 1), (1, 2)], nodes=4)
        Network(size=4, edges=array([[0, 1],
               [1, 2]]))

    """
    if isinstance(graph, Network | Graph):
        return _counted(
            graph if isinstance(graph, Network) else Network(graph.size, graph.edges), nodes
        )
    if sparse.issparse(graph):
        return _counted(_from_matrix(sparse.coo_array(cast(Any, graph))), nodes)
    if isinstance(graph, Networkx):
        return _from_networkx(graph) if nodes is None else _by_number(graph, nodes)
    _listed(graph)
    try:
        array = np.asarray(cast(Any, graph))
    except ValueError:
        raise InvalidInput(
            "edges must be pairs of nodes, got uneven rows; no network was built"
        ) from None
    # Two rows of two are pairs of nodes unless they look like nothing but a matrix; none has a
    # joined pair.
    if array.ndim == 2 and array.shape[0] == array.shape[1] and array.shape[0] > 2:
        return _counted(_from_matrix(sparse.coo_array(_zeros_and_ones(array))), nodes)
    ends = _pairs(array)
    if nodes is None and not len(ends):
        raise InvalidInput("a network must have at least one node, got none; no network was built")
    return Network(int(ends.max(initial=0)) + 1 if nodes is None else nodes, ends)


def node_names(graph: object, size: int, *, nodes: int | None = None) -> tuple[Hashable, ...]:
    """What the nodes 0 to size - 1 of `as_network` are called in the graph they come from: mostly just that.

    Those of a networkx graph are its `nodes`, unless `nodes` says that they are numbers.
    """
    named = isinstance(graph, Networkx) and nodes is None
    return tuple(cast(Any, graph).nodes) if named else tuple(range(size))


def private_network(graph: object, *, nodes: int | None = None) -> Network:
    """A network whose edges are private: its size is given and not read off them, and no error names an edge.

    A `Network`, a `Graph` and a matrix have a size. Pairs of nodes and networkx graphs need
    `nodes`, and their nodes are the numbers 0 to nodes - 1: whoever is named only by an edge would
    show it.
    """
    _listed(graph)
    if nodes is None and (isinstance(graph, Networkx) or not _sized(graph)):
        raise InvalidParameter(
            "where edges are private the nodes are public: pairs of nodes and networkx graphs must come with "
            "nodes, how many there are, got none; nothing was charged"
        )
    try:
        return as_network(graph, nodes=nodes)
    except InvalidInput:
        span = "" if nodes is None else f", numbered 0 to {nodes - 1}"
        raise InvalidInput(
            f"a private network must join pairs of its nodes{span}, each pair once and both ways alike, "
            "without loops, and a matrix without weights, got one that does not; which edge it is, is "
            "private; nothing was charged"
        ) from None


def _sized(graph: object) -> bool:
    if isinstance(graph, Network | Graph) or sparse.issparse(graph):
        return True
    try:
        shape = np.shape(cast(Any, graph))
    except ValueError:
        return False
    return len(shape) == 2 and shape[0] == shape[1] > 2


def _by_number(graph: Networkx, nodes: int) -> Network:
    """A networkx graph whose nodes are their own numbers, those that it lacks being without an edge."""
    size = whole("nodes", nodes, low=1, high=MAX_NODES)
    _undirected(graph)
    for node in graph.nodes:
        if not isinstance(node, int | np.integer) or not 0 <= node < size:
            raise InvalidInput(
                f"a networkx graph that comes with nodes={size} must have nodes from 0 to {size - 1}, got "
                f"{node!r}; no network was built"
            )
    return Network(size, list(graph.edges))


def _listed(graph: object) -> None:
    """Refuse what holds edges, but not as a list."""
    if isinstance(graph, str | bytes):
        raise InvalidInput(
            "edges must be a list of pairs of nodes, got a text; no network was built"
        )
    if isinstance(graph, Set | Mapping | Iterator):
        raise InvalidInput(
            f"edges must be a list of pairs of nodes, got a {type(graph).__name__}: make it a list; "
            "no network was built"
        )


def _counted(network: Network, nodes: int | None) -> Network:
    if nodes is None or nodes == network.size:
        return network
    if nodes < network.size:
        raise InvalidInput(
            f"the graph has {network.size} nodes, and nodes says {nodes}; no network was built"
        )
    return Network(nodes, network.edges)


def _pairs(edges: npt.ArrayLike) -> IntArray:
    try:
        ends = np.asarray(edges)
    except ValueError:
        raise InvalidInput(
            "edges must be pairs of nodes, got uneven rows; no network was built"
        ) from None
    if ends.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if ends.dtype.kind in "US":
        raise InvalidInput(
            f"nodes must be whole numbers from 0, got {str(ends.flat[0])!r}: number them, or give a networkx "
            "graph, whose nodes may have names; no network was built"
        )
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InvalidInput(
            f"edges must be pairs of whole numbers, got shape {ends.shape} and type {ends.dtype}; "
            "no network was built"
        )
    return ends.astype(np.int64, copy=False)


def _zeros_and_ones(array: npt.NDArray[Any]) -> FloatArray:
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InvalidInput(
            "a matrix must have entries 0 and 1, got others (lengths and weights are left "
            "out only for Graph and networkx); no network was built"
        )
    return array.astype(np.float64)


def _from_matrix(matrix: Any) -> Network:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInput(
            f"a matrix must be square, got shape {matrix.shape}; no network was built"
        )
    matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    _zeros_and_ones(matrix.data)
    rows, columns = (part.astype(np.int64) for part in matrix.coords)
    size = matrix.shape[0]
    if not np.array_equal(np.sort(rows * size + columns), np.sort(columns * size + rows)):
        raise InvalidInput("a matrix must be symmetric, got one that is not; no network was built")
    once = rows <= columns
    return Network(size, np.column_stack([rows, columns])[once])


def _from_networkx(graph: Networkx) -> Network:
    _undirected(graph)
    number: dict[Hashable, int] = {node: k for k, node in enumerate(graph.nodes)}
    edges = [(number[a], number[b]) for a, b in graph.edges]
    return Network(len(number), np.array(edges, dtype=np.int64).reshape(-1, 2))


def _undirected(graph: Networkx) -> None:
    if graph.is_directed() or graph.is_multigraph():
        raise InvalidInput(
            f"a network must be undirected and without parallel edges, got {type(graph).__name__}; "
            "no network was built"
        )
