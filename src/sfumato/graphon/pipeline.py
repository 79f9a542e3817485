"""Whole jobs on networks: find or release blocks, compare two networks, say what one can tell, make one up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.files import new_folder, write_table
from sfumato.graphon.blocks import Blocks
from sfumato.graphon.blocks_release import blocks_result
from sfumato.graphon.cut_distance import distance
from sfumato.graphon.inputs import BETWEEN, known_blocks, limits_case
from sfumato.graphon.limits.bounds import attained_rate, error_floor, estimation_rate
from sfumato.graphon.limits.thresholds import detectability, signals
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.render import render_network
from sfumato.graphon.results import (
    BlocksResult,
    MeasuredBlocks,
    NetworkComparison,
    NetworkFiles,
    NetworkLimits,
)
from sfumato.graphon.sample import Sampled, sample_graph
from sfumato.graphon.sources import Columns, NamedNetwork, Nodes, named_network

Auto = Literal["auto"]
Watch = Callable[[str], None]


def find_blocks(
    graph: object,
    k: int | Auto = "auto",
    *,
    nodes: Nodes = None,
    columns: Columns = None,
    watch: Watch | None = None,
) -> BlocksResult:
    """Find groups of nodes that are joined alike, or say that there is nothing to be found.

    Blocks are believed only if they foretell edges that were kept from them; pure chance passes at
    most once in 20 times. The same graph always gives the same answer.

    Args:
        graph: A path to an edge list (.csv, .tsv, .json, .parquet or plain text), a pandas or polars
            table of edges, a networkx graph, a scipy sparse or 0-1 matrix, pairs of node numbers, or
            a `Network` or `Graph`.
        k: How many blocks, from 1; "auto" chooses from 1 to 12.
        nodes: All nodes. For files and tables of edges: their names, a file that lists them, or how
            many there are if they are called 0, 1, ...; for other graphs how many there are. By
            default those that have an edge.
        columns: The columns of the two ends of an edge; by default u,v, source,target, from,to or
            src,dst.
        watch: Called with each step in words.

    Returns:
        The blocks, with the block of each node by name.

    Raises:
        InvalidInput: The graph cannot be read, is directed or has weights in a matrix.
        InvalidParameter: k is not from 1 to the number of nodes.

    Example:
        >>> pairs = [(i, j) for j in range(24) for i in range(j) if i // 8 == j // 8]
        >>> found = find_blocks(pairs, 3)
        >>> found.k, found.labels["0"] == found.labels["7"], found.graphon.matrix[0].tolist()
        (3, True, [1.0, 0.0, 0.0])

    """
    fitted = Blocks(k)
    given = _read(graph, nodes=nodes, columns=columns, watch=watch)
    _tell(watch, f"looking for {'blocks' if k == 'auto' else f'{k} blocks'}")
    return blocks_result(fitted.fit(given.network), given)


def compare_networks(
    a: object,
    b: object,
    k: int | Auto = "auto",
    *,
    columns: Columns = None,
    watch: Watch | None = None,
) -> NetworkComparison:
    """Measure how far the blocks of two networks are apart, whatever their nodes are called.

    The distance is delta_2: the root mean square difference of chances of an edge under the best
    matching of nodes, between proved bounds. Graphs are replaced by the blocks found in them; how
    far those are from the truth is not in the bounds.

    Args:
        a: A graph as for `find_blocks`; or its blocks: a `BlocksResult`, a file that it wrote, a
            fitted `Blocks` or a `BlockGraphon`.
        b: Another.
        k: How many blocks to find in graphs; "auto" chooses.
        columns: As for `find_blocks`, for both.
        watch: Called with each step in words.

    Returns:
        The interval, which blocks are matched, and what proves the lower end.

    Raises:
        InvalidInput: One of the two cannot be read; nothing was compared.
        InvalidParameter: k is not from 1 to the number of nodes.

    Example:
        >>> from sfumato.graphon import BlockGraphon
        >>> a, b = BlockGraphon([[0.5, 0.1], [0.1, 0.5]]), BlockGraphon([[0.3]])
        >>> round(compare_networks(a, b).upper, 6)
        0.2

    """
    one, other = (_graphon(graph, k, columns, watch=watch) for graph in (a, b))
    _tell(watch, "matching blocks")
    found = distance(one, other)
    return NetworkComparison(
        found.lower,
        found.upper,
        found.exact,
        found.witness.name,
        found.coupling,
        (one.k, other.k),
        (one.density, other.density),
    )


def network_limits(
    graph: object | None = None,
    *,
    n: int | None = None,
    k: int | None = None,
    rho: float | None = None,
    between: float | None = None,
    columns: Columns = None,
    watch: Watch | None = None,
) -> NetworkLimits:
    """Say what a network can tell about its blocks: before anyone collects it, or of one you have.

    Of blocks of even size, an edge within one with chance rho and between two with a share of that.

    Args:
        graph: A graph or its blocks, as for `compare_networks`, whose nodes, blocks and chances are
            taken where they are not given. Without it n, k and rho are needed.
        n: Nodes, at least 2.
        k: Blocks, at least 2.
        rho: The largest chance of an edge, that within blocks: above 0 and at most 1.
        between: The chance between blocks as a share of rho, from 0 to below 1; 0.2 if not given.
        columns: As for `find_blocks`.
        watch: Called with each step in words.

    Returns:
        Whether the blocks can be found, and the errors that nobody beats.

    Raises:
        InvalidParameter: Something is missing or out of range; nothing was computed.
        InvalidInput: The graph cannot be read.

    Example:
        >>> network_limits(n=1000, k=4, rho=0.01, between=0.6).detectability.regime
        'impossible'

    """
    found = graphon = None
    if graph is not None:
        graphon, found = _measured(graph, columns, watch=watch)
    n, k, within, across = limits_case(found, graphon, n, k, rho, between)
    largest = max(within, across)
    return NetworkLimits(
        n,
        k,
        within,
        across,
        detectability(n, k, within=within, between=across),
        estimation_rate(n, k, largest),
        attained_rate(n, k, largest),
        error_floor(n, k, largest).value,
        found,
    )


def simulate_network(
    n: int = 600,
    k: int = 3,
    *,
    rho: float = 0.1,
    between: float = BETWEEN,
    rng: np.random.Generator,
) -> Sampled:
    """Make up a network of even blocks: to try everything on, or to see what one like yours would tell.

    Args:
        n: Nodes, at least 1.
        k: Blocks of about even size, at least 1.
        rho: The chance of an edge within a block, from 0 to 1.
        between: The chance of an edge between blocks as a share of rho, from 0 to 1.
        rng: Where the nodes' blocks and the edges come from.

    Returns:
        The network, and the block of each node, which the network does not tell.

    Raises:
        InvalidParameter: A parameter is out of range; nothing was made.

    Example:
        >>> drawn = simulate_network(60, 2, rho=1.0, between=0.0, rng=np.random.default_rng(1))
        >>> find_blocks(drawn.network, 2).graphon.matrix.tolist()
        [[1.0, 0.0], [0.0, 1.0]]

    """
    for name, value in (("rho", rho), ("between", between)):
        if not 0 <= value <= 1:
            raise InvalidParameter(
                f"`{name}` must be at least 0 and at most 1, got {value}; nothing was made"
            )
    return sample_graph(BlockGraphon(rho * (between + (1 - between) * np.eye(k))), n, rng)


def write_network(drawn: Sampled, folder: str | Path) -> NetworkFiles:
    """Write a simulated network and its blocks into a new folder.

    Args:
        drawn: The network, as `simulate_network` returns it.
        folder: The folder to make; its parents are made too.

    Returns:
        The two files: edges.csv and blocks.csv.

    Raises:
        InvalidInput: The folder exists already; nothing was written.

    """
    folder = Path(folder)
    new_folder(folder)
    files = NetworkFiles(folder / "edges.csv", folder / "blocks.csv")
    write_table(files.edges, ["u", "v"], drawn.network.edges.tolist())
    write_table(files.blocks, ["node", "block"], enumerate(drawn.labels.tolist()))
    return files


def _read(
    graph: object, *, nodes: Nodes = None, columns: Columns, watch: Watch | None
) -> NamedNetwork:
    given = named_network(graph, nodes=nodes, columns=columns)
    _tell(watch, render_network(given))
    return given


def _graphon(
    graph: object, k: int | Auto, columns: Columns, *, watch: Watch | None
) -> BlockGraphon:
    if (known := known_blocks(graph)) is not None:
        return known.graphon if isinstance(known, BlocksResult) else known
    return find_blocks(graph, k, columns=columns, watch=watch).graphon


def _measured(
    graph: object, columns: Columns, *, watch: Watch | None
) -> tuple[BlockGraphon, MeasuredBlocks]:
    known: Any = known_blocks(graph)
    if isinstance(graph, Blocks):
        n, reason = graph.labels_.size, graph.reason_
    elif isinstance(known, BlockGraphon):
        raise InvalidParameter(
            "a BlockGraphon has no nodes: give `n`, `k` and `rho` instead; nothing was computed"
        )
    else:
        found = known or find_blocks(graph, columns=columns, watch=watch)
        known, n, reason = found.graphon, found.nodes, found.reason
    return known, MeasuredBlocks(n, known.k, reason, tuple(signals(known, n).tolist()))


def _tell(watch: Watch | None, step: str) -> None:
    if watch is not None:
        watch(step)
