"""Networks as people have them: a file, a DataFrame, a matrix, a networkx graph, pairs of nodes."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import EdgeList, number_edges, read_edge_list, usual_ends
from sfumato.graphon.network import Network, as_network, node_names, private_network

Nodes = int | str | Path | Sequence[str] | None
Columns = tuple[str, str] | None


@dataclass(frozen=True, slots=True, eq=False)
class NamedNetwork:
    """A network, what its nodes are called, and how many rows of its file were no edge of it.

    Attributes:
        network: Who is joined to whom, nodes numbered from 0.
        names: Node i is called names[i].
        loops: Rows left out because both ends are one node; 0 for what is no table.
        repeats: Rows left out because the edge had come before; 0 for what is no table.
    """

    network: Network = field(repr=False)  # its edges may be private
    names: tuple[Hashable, ...]
    loops: int = 0
    repeats: int = 0


@runtime_checkable
class Frame(Protocol):
    """What pandas and polars tables can be asked, so that neither package is needed."""

    columns: Any

    def to_numpy(self) -> Any:
        """The table as an array."""

    def __getitem__(self, name: Any, /) -> Any:
        """One column."""


def named_network(
    graph: object, *, nodes: Nodes = None, columns: Columns = None, private: bool = False
) -> NamedNetwork:
    """A network with the names of its nodes.

    Files and tables of edges have names; loops and repeated edges are left out of them and counted.
    In everything else nodes are numbers (or those of a networkx graph), and both are refused. With
    `private` the nodes must be given, and no message names an edge.
    """
    if isinstance(graph, NamedNetwork):
        return graph
    named = isinstance(graph, str | os.PathLike)
    frame = None if named else _edge_columns(graph, columns)
    if not named and frame is None:
        if not isinstance(nodes, int | None):
            raise InvalidParameter(
                "nodes of a graph are numbers, so nodes must say how many there are; names of nodes "
                "are for files and tables of edges; nothing was read"
            )
        read = private_network if private else as_network
        network = read(graph.to_numpy() if isinstance(graph, Frame) else graph, nodes=nodes)
        return NamedNetwork(network, _names(graph, network.size, nodes, private=private))
    if private and nodes is None:
        raise InvalidParameter(
            "with `epsilon` say which nodes there are by `nodes`: who has an edge is private; "
            "nothing was read"
        )
    public = [str(node) for node in range(nodes)] if isinstance(nodes, int) else nodes
    if named:
        path = Path(cast(Any, graph))
        found = read_edge_list(path, ends=columns, nodes=public, private=private)
    else:
        found = _from_frame(cast(Frame, graph), cast(Any, frame), public, private=private)
    return NamedNetwork(
        Network(len(found.names), found.edges), found.names, found.loops, found.repeats
    )


def _names(graph: object, size: int, nodes: int | None, *, private: bool) -> tuple[Hashable, ...]:
    if isinstance(graph, Frame):
        return tuple(str(name) for name in graph.columns)
    return node_names(graph, size, nodes=size if private else nodes)


def _edge_columns(graph: object, columns: Columns) -> tuple[str, str] | None:
    """The columns of a table that hold the ends of edges; None if it is none or a square matrix."""
    if not isinstance(graph, Frame):
        return None
    ends = usual_ends(list(graph.columns), columns)
    if ends is None and len(list(graph.columns)) != len(cast(Any, graph)):
        raise InvalidInput(
            "a table must have columns u,v or source,target or from,to or src,dst, or those that "
            "`columns` names, or be a square matrix; nothing was read"
        )
    return ends


def _from_frame(frame: Frame, ends: tuple[str, str], nodes: Any, *, private: bool) -> EdgeList:
    pairs = list(zip(*(map(_name, frame[name]) for name in ends), strict=True))
    if any(None in pair for pair in pairs):
        raise InvalidInput(
            "the table has a row that is no pair of nodes: one end is missing; nothing was charged"
        )
    return number_edges(pairs, nodes=nodes, what="the table", private=private)


def _name(value: Any) -> str | None:
    """What a cell calls a node; whole numbers that a gap elsewhere has made floats are whole again."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else None if value != value else str(value)
    name = "" if value is None else str(value).strip()
    return None if name in ("", "<NA>") else name
