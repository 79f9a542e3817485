"""Edge lists as people have them: CSV, TSV, JSON, Parquet, or two words on a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only
from sfumato.errors import InvalidInput
from sfumato.files.tables import Rows, column_of, has_column, numbers_of, read_rows, unique_names

PLAIN = {"", ".txt", ".edges", ".edgelist"}
"""Suffixes of edge lists without a header: two words on a line; lines that begin with # or % are remarks."""
ENDS = (("u", "v"), ("source", "target"), ("from", "to"), ("src", "dst"))
"""Columns that hold the two ends of an edge, unless others are named."""


class BadRow(InvalidInput):
    """One row of an edge list is no edge."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeList:
    """The distinct undirected edges of a file, by the numbers of their nodes.

    Attributes:
        names: The nodes; node i has names[i].
        edges: Pairs u < v of node numbers, [edges, 2], sorted.
        loops: How many rows were left out because both ends are one node.
        repeats: How many rows were left out because the edge, or its reverse, had come before.
        values: Further columns that were asked for and are in the file, one number for each edge:
            that of the first row that has it.
    """

    names: tuple[str, ...]
    edges: IntArray
    loops: int = 0
    repeats: int = 0
    values: dict[str, FloatArray] = field(default_factory=dict)


def read_edge_list(
    path: str | Path,
    *,
    ends: tuple[str, str] | None = None,
    nodes: str | Path | Sequence[str] | None = None,
    values: Iterable[str] = (),
    private: bool = False,
) -> EdgeList:
    """Read an undirected network; loops, and edges given again or the other way, are left out.

    Args:
        path: CSV, TSV, a JSON list of objects or of pairs, Parquet, or a plain text (.txt, .edges,
            .edgelist or no suffix) with two words on each line.
        ends: The columns of the two ends; by default u,v, source,target, from,to or src,dst,
            whichever come first in this order.
        nodes: All nodes, or a file that lists them (see `read_nodes`); an edge to any other node is
            refused. By default nodes are those that have an edge.
        values: Names of further columns of numbers, taken where the table has them ("length").
        private: Whether the edges are private: messages then do not say which row is wrong.

    Returns:
        The edges, with the names of the nodes.

    Raises:
        InvalidInput: The file is no edge list, or has an edge to a node outside `nodes`.

    """
    path = Path(path)
    public = (
        None
        if nodes is None
        else read_nodes(nodes)
        if isinstance(nodes, str | Path)
        else [str(name) for name in nodes]
    )
    # Whether there is any edge at all is private where nodes are public: a list without one is a
    # network too.
    try:
        listed, table = _pairs(path, ends, empty=public is not None)
    except BadRow:
        if private:
            raise InvalidInput(
                f"{path} has a row that is no pair of nodes; nothing was charged"
            ) from None
        raise
    source = str(nodes) if isinstance(nodes, str | Path) else "the list of nodes"
    found, rows = _numbered(listed, public, what=str(path), source=source, private=private)
    kept = {
        name: read_only(np.array(numbers_of(table, name, path))[rows])
        for name in values
        if table and has_column(table, name)
    }
    return replace(found, values=kept)


def number_edges(
    pairs: Iterable[tuple[Any, Any]],
    *,
    nodes: Sequence[str] | None = None,
    what: str = "the list",
    private: bool = False,
) -> EdgeList:
    """Number the nodes of pairs of names; loops, and edges given again or the other way, are left out.

    Args:
        pairs: The two ends of each edge, taken as text.
        nodes: All nodes; an edge to any other is refused. By default those that have an edge.
        what: What the pairs are, for messages.
        private: Whether the edges are private: messages then do not say which row is wrong.

    Returns:
        The edges, with the names of the nodes.

    Raises:
        InvalidInput: A node is given twice, or an edge has a node outside `nodes`.

    Example:
        >>> number_edges([("b", "a"), ("a", "b"), ("a", "c")]).edges.tolist()
        [[0, 1], [1, 2]]

    """
    names = None if nodes is None else [str(name) for name in nodes]
    return _numbered(pairs, names, what=what, source="the list of nodes", private=private)[0]


def _numbered(
    listed: Iterable[tuple[Any, Any]],
    public: list[str] | None,
    *,
    what: str,
    source: str,
    private: bool,
) -> tuple[EdgeList, list[int]]:
    """The edges, and the first row that has each."""
    pairs = [(str(u), str(v)) for u, v in listed]
    names = unique_names(name for pair in pairs for name in pair) if public is None else public
    number = {name: place for place, name in enumerate(names)}
    if len(number) < len(names):
        raise InvalidInput(f"{source} names a node twice; nothing was read further")
    first_row: dict[tuple[int, int], int] = {}
    loops = 0
    for row, pair in enumerate(pairs):
        if not (pair[0] in number and pair[1] in number):
            which = f"{what} has an edge to" if private else f"edge {row + 1} of {what} has"
            raise InvalidInput(f"{which} a node that {source} has not; nothing was charged")
        u, v = sorted((number[pair[0]], number[pair[1]]))
        if u == v:
            loops += 1
        else:
            first_row.setdefault((u, v), row)
    edges = sorted(first_row)
    found = EdgeList(
        tuple(names),
        read_only(np.array(edges, dtype=np.int64).reshape(-1, 2)),
        loops,
        len(pairs) - loops - len(edges),
    )
    return found, [first_row[edge] for edge in edges]


def usual_ends(names: Iterable[str], ends: tuple[str, str] | None = None) -> tuple[str, str] | None:
    """The columns of a table that hold the two ends of an edge.

    Args:
        names: All columns.
        ends: The two columns, if they are known; by default the first that are there of u,v,
            source,target, from,to and src,dst.

    Returns:
        The two columns, or None if they are not there.

    """
    there = set(names)
    pairs = ENDS if ends is None else (ends,)
    return next((pair for pair in pairs if there.issuperset(pair)), None)


def read_nodes(path: str | Path) -> list[str]:
    """Read the names of all nodes of a network.

    From a table (CSV, TSV, JSON, Parquet) with a column `node`, or with one column of any name; or from a
    plain text with one name on each line.
    """
    path = Path(path)
    if path.suffix in PLAIN:
        names = [line.strip() for line in _lines(path)]
    elif path.suffix == ".parquet":
        table = _parquet(path)
        if "node" not in table.column_names:
            raise InvalidInput(f"there is no column 'node' in {path}; nothing was charged")
        names = [str(name) for name in table.column("node").to_pylist()]
    else:
        rows = read_rows(path)
        named = next(iter(rows[0])) if len(rows[0]) == 1 else "node"
        names = [str(name) for name in column_of(rows, named, path)]
    if not names:
        raise InvalidInput(f"{path} names no node; nothing was charged")
    return names


def _pairs(
    path: Path, ends: tuple[str, str] | None, *, empty: bool
) -> tuple[Sequence[tuple[Any, Any]], Rows]:
    """The two ends of every row, and the rows themselves where the file is a table."""
    if path.suffix == ".parquet":
        table = _parquet(path)
        chosen = _chosen(table.column_names, ends, path)
        pairs = list(zip(*(table.column(name).to_pylist() for name in chosen), strict=True))
        return pairs, table.to_pylist()
    if path.suffix not in PLAIN:
        if (listed := _listed(path)) is not None:
            return listed, []
        rows = read_rows(path, empty=empty)
        if not rows:
            return [], []
        chosen = _chosen(rows[0], ends, path)
        try:
            return list(zip(*(column_of(rows, name, path) for name in chosen), strict=True)), rows
        except InvalidInput as problem:
            raise BadRow(str(problem)) from None
    found = []
    for number, line in enumerate(_lines(path), 1):
        words = line.replace(",", " ").split()
        if len(words) < 2:
            raise BadRow(
                f"edge {number} of {path} must be two names on a line; nothing was charged"
            )
        found.append((words[0], words[1]))
    if not found and not empty:
        raise InvalidInput(f"{path} has no edges; nothing was charged")
    return found, []


def _listed(path: Path) -> list[tuple[Any, Any]] | None:
    """A JSON list of lists of two, as most programs write pairs; None if it is something else."""
    if path.suffix != ".json":
        return None
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        return None
    if not all(len(row) == 2 for row in rows):
        raise BadRow(f"{path} has a row that is no pair of nodes; nothing was charged")
    return [(u, v) for u, v in rows]


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}; nothing was charged") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text in UTF-8; nothing was charged") from None
    return [line for line in text.splitlines() if line.strip() and line.strip()[0] not in "#%"]


def _chosen(names: Iterable[str], ends: tuple[str, str] | None, path: Path) -> tuple[str, str]:
    """The columns of the two ends: those named, or the first usual ones that are there."""
    found = usual_ends(names, ends)
    if found is None:
        # Names of columns are not repeated: a table without a header has an edge in its first line.
        usual = " or ".join(",".join(pair) for pair in (ENDS if ends is None else (ends,)))
        hint = "" if ends else ": name yours by `columns`"
        raise InvalidInput(
            f"{path} has no columns {usual} in its first line{hint}; nothing was charged"
        )
    return found


def _parquet(path: Path) -> Any:
    import pyarrow as arrow
    from pyarrow import parquet

    try:
        return parquet.read_table(path)
    except OSError as problem:
        reason = problem.strerror or problem
        raise InvalidInput(f"cannot read {path}: {reason}; nothing was charged") from None
    except arrow.ArrowException:
        raise InvalidInput(f"{path} is not a Parquet table; nothing was charged") from None
