"""Graphs as spaces: mass sits on nodes and moves along edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array, whole
from sfumato.errors import InvalidParameter, MissingPackage

if TYPE_CHECKING:
    import networkx
    from scipy import sparse


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Graph:
    """A network of places; two nodes are as far apart as the shortest path between them.

    Undirected. `edges` are pairs of nodes 0..size-1 and `lengths` their positive lengths (1 if not
    given); both are kept sorted, smaller end first, so that equal graphs have equal arrays. `nodes`
    says how many nodes there are if some of the last have no edge. Nodes without a path between
    them are at distance inf.

    >>> graph = Graph([(0, 1), (1, 2), (2, 0)], [1, 1, 5], nodes=4)
    >>> graph.distance(0, 2), graph.distance(0, 3)
    (2.0, inf)
    >>> graph.neighbors(2)
    array([0, 1])
    """

    size: int
    edges: IntArray
    lengths: FloatArray
    _made: sparse.csr_array[np.float64] | None = field(repr=False)
    kind: ClassVar[str] = "graph"

    def __init__(
        self,
        edges: npt.ArrayLike,
        lengths: npt.ArrayLike | None = None,
        *,
        nodes: int | None = None,
    ) -> None:
        ends = _checked_edges(edges)
        if nodes is None and not len(ends):
            raise InvalidParameter(
                "a graph must have at least one node, got none; no graph was built"
            )
        size = int(ends.max(initial=0)) + 1 if nodes is None else whole("nodes", nodes, low=1)
        _check_ends(ends, size)
        spans = np.ones(len(ends)) if lengths is None else _checked_lengths(lengths, len(ends))
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        ends, spans = ends[order], spans[order]
        again = np.flatnonzero((ends[1:] == ends[:-1]).all(axis=1))
        if again.size:
            raise InvalidParameter(
                f"an edge must be given once, got {_pair(ends[again[0]])} again; no graph was built"
            )
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "edges", read_only(ends))
        object.__setattr__(self, "lengths", read_only(spans))
        object.__setattr__(self, "_made", None)

    @property
    def _matrix(self) -> sparse.csr_array[np.float64]:
        """Lengths from node to node, made when first asked for: SciPy's matrices are long to load."""
        made = self._made
        if made is None:
            made = _symmetric(self.edges, self.lengths, self.size)
            object.__setattr__(self, "_made", made)
        return made

    @classmethod
    def from_sparse(cls, matrix: sparse.sparray | sparse.spmatrix) -> Graph:
        """A graph from a symmetric scipy sparse matrix whose stored entries are edge lengths."""
        from scipy import sparse

        if not sparse.issparse(matrix):
            raise InvalidParameter(
                f"matrix must be a scipy sparse matrix, got {type(matrix).__name__}; no graph was built"
            )
        stored: Any = sparse.coo_array(cast(Any, matrix), copy=True)
        if stored.ndim != 2 or stored.shape[0] != stored.shape[1]:
            raise InvalidParameter(
                f"matrix must be square, got shape {stored.shape}; no graph was built"
            )
        stored.sum_duplicates()  # an entry stored twice means the sum, everywhere in scipy
        rows, columns = stored.coords
        lengths = real_array("matrix entries", stored.data)
        there, back = np.lexsort((columns, rows)), np.lexsort((rows, columns))
        if not (
            np.array_equal(rows[there], columns[back])
            and np.array_equal(columns[there], rows[back])
            and np.array_equal(lengths[there], lengths[back], equal_nan=True)
        ):
            raise InvalidParameter(
                "matrix must be symmetric, got one that is not; no graph was built"
            )
        once = rows <= columns
        return cls(np.column_stack([rows, columns])[once], lengths[once], nodes=stored.shape[0])

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, *, length: str = "weight") -> Graph:
        """A graph from an undirected networkx graph; node k is the k-th of `graph.nodes`.

        `length` names the edge attribute that holds lengths; as in networkx, an edge without it has
        length 1.
        """
        try:
            import networkx
        except ImportError:
            raise MissingPackage('pip install "networkx>=3.4"') from None
        if not isinstance(graph, networkx.Graph) or graph.is_directed() or graph.is_multigraph():
            raise InvalidParameter(
                "graph must be an undirected networkx.Graph without parallel edges, "
                f"got {type(graph).__name__}; no graph was built"
            )
        number = {node: k for k, node in enumerate(graph.nodes)}
        edges = [(number[a], number[b]) for a, b in graph.edges]
        lengths = [value for _, _, value in graph.edges.data(length, default=1.0)]
        return cls(edges, lengths, nodes=len(number))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return (
            self.size == other.size
            and np.array_equal(self.edges, other.edges)
            and np.array_equal(self.lengths, other.lengths)
        )

    def __hash__(self) -> int:
        return hash((self.size, self.edges.tobytes(), self.lengths.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        # Copies and unpickled graphs are born again, so that their arrays are read-only too.
        return partial(Graph, nodes=self.size), (self.edges, self.lengths)

    @property
    def metric(self) -> str:
        """What a neighbor relation calls this distance."""
        return "graph"

    @property
    def diameter(self) -> float:
        """The largest distance between two nodes, exact; inf if the graph is not connected.

        Cost: one Dijkstra for each node at worst (a cycle, nearly so a random graph), far fewer
        where some nodes are central: 26 for the 2640 of Minnesota's roads. Each one bounds, by the
        triangle inequality, how far every other node is from its farthest. The answer is not
        remembered.
        """
        if self.components().any():
            return float("inf")
        lower, upper = np.zeros(self.size), np.full(self.size, np.inf)
        undecided = np.arange(self.size)
        largest, central = 0.0, False
        while undecided.size:
            # Outer nodes raise the answer, central ones lower the bounds of all others: take them
            # in turn.
            pick = np.argmin(lower[undecided]) if central else np.argmax(upper[undecided])
            distances = self.distances_from(int(undecided[pick]))
            farthest = float(distances.max())
            largest = max(largest, farthest)
            lower = np.maximum(lower, np.maximum(distances, farthest - distances))
            upper = np.minimum(upper, distances + farthest)
            undecided = np.delete(undecided, pick)
            undecided = undecided[upper[undecided] > largest]
            central = not central
        return largest

    def distance(self, i: int, j: int) -> float:
        """How long the shortest path is, inf without one; costs one Dijkstra from the smaller node."""
        i, j = (whole("node", node, low=0, high=self.size - 1) for node in (i, j))
        # Sums round differently from the other end; one fixed end keeps the distance symmetric to
        # the bit.
        return float(self.distances_from(min(i, j))[max(i, j)])

    def distances_from(self, node: int) -> FloatArray:
        """How far every node is from one node, inf where there is no path; costs one Dijkstra."""
        node = whole("node", node, low=0, high=self.size - 1)
        return _dijkstra(self._matrix, indices=[node]).reshape(-1)

    def distances_from_each(self, nodes: npt.ArrayLike) -> FloatArray:
        """How far every node is from each of several: a row for each; costs one Dijkstra a row."""
        chosen = [
            whole("node", node, low=0, high=self.size - 1)
            for node in np.asarray(nodes).ravel().tolist()
        ]
        return _dijkstra(self._matrix, indices=chosen)

    def distances_from_any(self, nodes: npt.ArrayLike) -> FloatArray:
        """How far every node is from the nearest of several; costs one Dijkstra for all of them."""
        chosen = [
            whole("node", node, low=0, high=self.size - 1)
            for node in np.asarray(nodes).ravel().tolist()
        ]
        return _dijkstra(self._matrix, indices=chosen, min_only=True)

    def neighbors(self, i: int) -> IntArray:
        """The nodes that share an edge with node i, in increasing order.

        An edge longer than the path around it is still a step, never a shorter one.
        """
        i = whole("node", i, low=0, high=self.size - 1)
        begin, end = self._matrix.indptr[i : i + 2]
        return np.array(self._matrix.indices[begin:end], dtype=np.int64)

    def components(self) -> IntArray:
        """A number for each node; two nodes have the same exactly when a path joins them. Node 0 has 0."""
        from scipy.sparse import csgraph

        _, labels = csgraph.connected_components(self._matrix, directed=False)
        return np.asarray(labels, dtype=np.int64)

    def adjacency(self) -> sparse.csr_array[np.float64]:
        """The matrix with 1 for each edge, both ways; lengths are not in it, since long is not strong."""
        return _symmetric(self.edges, np.ones(len(self.edges)), self.size)

    def laplacian(self) -> sparse.csr_array[np.float64]:
        """Degrees minus adjacency: the L of the diffusion exp(-tau L) on the graph, lengths aside."""
        from scipy import sparse

        adjacency = self.adjacency()
        return sparse.csr_array(sparse.diags_array(adjacency.sum(axis=1)) - adjacency)

    def places(self, cells: IntArray) -> FloatArray:
        """The numbers of some nodes as coordinates: [cells, 1]."""
        return np.asarray(cells, dtype=np.float64).reshape(-1, 1)

    def distances_between(self, places: FloatArray, others: FloatArray) -> FloatArray:
        """How far each of some nodes [n, 1] is from each of others [m, 1]; one Dijkstra a node."""
        nodes, inverse = np.unique(places[:, 0].astype(np.int64), return_inverse=True)
        return self.distances_from_each(nodes)[inverse][:, others[:, 0].astype(np.int64)]

    def nearest_cells(self, places: FloatArray) -> IntArray:
        """The nodes that places [n, 1] are."""
        return places[:, 0].astype(np.int64)

    def describe(self) -> str:
        """The graph in words."""
        return f"a graph of {self.size} nodes and {len(self.edges)} edges, shortest paths"

    def to_json(self) -> dict[str, Any]:
        """Its nodes and edges, and their lengths unless all are 1."""
        return {
            "kind": self.kind,
            "nodes": self.size,
            "edges": self.edges.tolist(),
            "lengths": None if (self.lengths == 1).all() else self.lengths.tolist(),
        }

    @staticmethod
    def from_json(data: Any) -> Graph:
        """The graph a JSON object states."""
        return Graph(data["edges"], data["lengths"], nodes=data["nodes"])


def _checked_edges(edges: npt.ArrayLike) -> IntArray:
    try:
        ends = np.asarray(edges)
    except ValueError:
        raise InvalidParameter(
            "edges must be pairs of nodes, got uneven rows; no graph was built"
        ) from None
    if ends.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InvalidParameter(
            f"edges must be pairs of whole numbers, got shape {ends.shape} and type {ends.dtype}; "
            "no graph was built"
        )
    return np.sort(ends.astype(np.int64), axis=1)


def _check_ends(ends: IntArray, size: int) -> None:
    wrong = np.flatnonzero((ends[:, 0] < 0) | (ends[:, 1] >= size))
    if wrong.size:
        raise InvalidParameter(
            f"edges must join nodes from 0 to {size - 1}, got {_pair(ends[wrong[0]])}; no graph was built"
        )
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if loops.size:
        raise InvalidParameter(
            f"an edge must join two different nodes, got {_pair(ends[loops[0]])}; no graph was built"
        )


def _checked_lengths(lengths: npt.ArrayLike, count: int) -> FloatArray:
    array = real_array("lengths", lengths)
    if array.shape != (count,):
        raise InvalidParameter(
            f"lengths must be one number for each of {count} edges, got shape {array.shape}; "
            "no graph was built"
        )
    wrong = np.flatnonzero(~((array > 0) & (array < np.inf)))
    if wrong.size:
        raise InvalidParameter(
            f"lengths must be positive and finite, got {array[wrong[0]]} at {wrong[0]}; no graph was built"
        )
    with np.errstate(over="ignore"):
        total = array.sum()
    # Otherwise a long path could overflow to inf, which means that there is none.
    if not np.isfinite(total):
        raise InvalidParameter(
            "lengths must have a finite sum, got one that overflows; no graph was built"
        )
    return array


def _dijkstra(matrix: sparse.csr_array[np.float64], **rest: Any) -> FloatArray:
    from scipy.sparse import csgraph

    return np.asarray(csgraph.dijkstra(matrix, **rest), dtype=np.float64)


def _symmetric(ends: IntArray, values: FloatArray, size: int) -> sparse.csr_array[np.float64]:
    from scipy import sparse

    low, high = ends.T
    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    matrix = sparse.csr_array(
        (np.concatenate([values, values]), (rows, columns)), shape=(size, size)
    )
    matrix.sort_indices()
    return matrix


def _pair(ends: IntArray) -> str:
    return f"({ends[0]}, {ends[1]})"
