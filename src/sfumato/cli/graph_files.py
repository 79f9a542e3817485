"""Edge lists as people have them: CSV, TSV, JSON, Parquet, or two words on a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.sense_files import column, in_order, read_rows
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import write_file, write_table

if TYPE_CHECKING:
    from sfumato.graphon import BlockGraphon, Network

PLAIN = {"", ".txt", ".edges", ".edgelist"}
"""Suffixes of edge lists without a header: two words on a line; lines that begin with # or % are remarks."""
FORMAT = "sfumato-blocks/1"


ENDS = (("u", "v"), ("source", "target"), ("from", "to"), ("src", "dst"))
"""Columns that hold the two ends of an edge, unless others are named."""

Columns = Annotated[
    str,
    typer.Option(
        help="Columns of the two ends of an edge, with a comma; else u,v, source,target, from,to or src,dst.",
        show_default=False,
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]


@dataclass(frozen=True, slots=True)
class Edges:
    """A network with the names of its nodes, and how many rows were no edge of it."""

    network: Network
    names: tuple[str, ...]
    loops: int
    repeats: int


def read_edges(
    path: Path,
    *,
    ends: tuple[str, str] | None = None,
    nodes: Path | None = None,
    private: bool = False,
) -> Edges:
    """An undirected network from an edge list; loops, and edges given again or the other way, are left out.

    With `nodes`, a table with a column `node` or a line for each, these are the nodes, and an edge
    to any other is refused; else they are those that have an edge. What is wrong with a `private`
    list is said, not where.
    """
    from sfumato.graphon import Network

    public = None if nodes is None else read_nodes(nodes)
    # Whether there is any edge at all is private where nodes are public: a list without one is a
    # network too.
    try:
        pairs = [(str(u), str(v)) for u, v in _pairs(path, ends, empty=public is not None)]
    except BadRow:
        if private:
            raise InvalidInput(
                f"{path} has a row that is no pair of nodes; nothing was charged"
            ) from None
        raise
    names = in_order(name for pair in pairs for name in pair) if public is None else public
    number = {name: place for place, name in enumerate(names)}
    if len(number) < len(names):
        raise InvalidInput(f"{nodes} names a node twice; nothing was read further")
    kept: set[tuple[int, int]] = set()
    loops = 0
    for row, pair in enumerate(pairs, 1):
        if not (pair[0] in number and pair[1] in number):
            which = f"{path} has an edge to" if private else f"edge {row} of {path} has"
            raise InvalidInput(f"{which} a node that {nodes} has not; nothing was charged")
        u, v = sorted((number[pair[0]], number[pair[1]]))
        if u == v:
            loops += 1
        else:
            kept.add((u, v))
    network = Network(len(names), sorted(kept))
    return Edges(network, tuple(names), loops, len(pairs) - loops - len(kept))


def read_words(given: Edges) -> str:
    """What was read, and what of it was left out."""
    left_out = [
        f"{count:,} {name}{'s' * (count > 1)} left out"
        for count, name in ((given.loops, "loop"), (given.repeats, "repeated edge"))
        if count
    ]
    network = given.network
    return ", ".join([f"{network.size:,} nodes, {len(network.edges):,} edges", *left_out])


def signals_line(strong: Sequence[float]) -> str:
    """How clear the directions of some blocks are, the clearest first."""
    if len(strong) < 2:
        return "".join(
            f"signal {one:.3g}; above 1 fast methods find blocks in large networks"
            for one in strong
        )
    clear = sum(one > 1 for one in strong)
    return (
        f"signals {strong[0]:.3g} down to {strong[-1]:.3g}: {clear} of {len(strong)} directions above 1, "
        "which fast methods need in large networks"
    )


def read_nodes(path: Path) -> list[str]:
    """The public names of all nodes: a table with a column `node`, or one name on each line."""
    if path.suffix in PLAIN:
        names = [line.strip() for line in _lines(path)]
    elif path.suffix == ".parquet":
        table = _parquet(path)
        if "node" not in table.column_names:
            raise InvalidInput(f"there is no column 'node' in {path}; nothing was charged")
        names = [str(name) for name in table.column("node").to_pylist()]
    else:
        rows = read_rows(path)
        named = (
            next(iter(rows[0])) if len(rows[0]) == 1 else "node"
        )  # one column holds what it may be called
        names = [str(name) for name in column(rows, named, path)]
    if not names:
        raise InvalidInput(f"{path} names no node; nothing was charged")
    return names


def write_blocks(path: Path, found: dict[str, Any], *, overwrite: bool) -> None:
    """Keep blocks that were found, for `graph distance` and others."""
    write_file(path, json.dumps({"format": FORMAT, **found}, indent=1) + "\n", overwrite=overwrite)


@dataclass(frozen=True, slots=True)
class Kept:
    """Blocks that `graph blocks --out` wrote: of how many nodes, and why they were believed."""

    graphon: BlockGraphon
    nodes: int
    reason: str


def read_blocks(path: Path) -> Kept | None:
    """Blocks kept by `graph blocks --out`, or None if the file is something else."""
    from sfumato.graphon import BlockGraphon

    if path.suffix != ".json":
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        return None
    try:
        graphon = BlockGraphon(found["matrix"], found["shares"])
        return Kept(graphon, int(found["nodes"]), str(found["reason"]))
    except KeyError as missing:
        raise InvalidInput(f"{path} has no {missing}; nothing was computed") from None
    except (TypeError, ValueError):
        raise InvalidInput(f"{path} holds no blocks; nothing was computed") from None


def ends_of(columns: str) -> tuple[str, str] | None:
    """The two columns that were named; None where none were."""
    if not columns:
        return None
    names = tuple(name.strip() for name in columns.split(","))
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise InvalidParameter(
            f"--columns must be two names with a comma, got {columns!r}; nothing was read"
        )
    return names[0], names[1]


def number_of(k: str) -> Any:
    """A number of blocks, or auto."""
    if k == "auto":
        return k
    if not k.isdecimal() or int(k) < 1:
        raise InvalidParameter(
            f"--k must be auto or a whole number from 1, got {k!r}; nothing was read"
        )
    return int(k)


class BadRow(InvalidInput):
    """One row of an edge list is no edge."""


def _pairs(path: Path, ends: tuple[str, str] | None, *, empty: bool) -> Sequence[tuple[Any, Any]]:
    if path.suffix == ".parquet":
        table = _parquet(path)
        chosen = _chosen(table.column_names, ends, path)
        return list(zip(*(table.column(name).to_pylist() for name in chosen), strict=True))
    if path.suffix not in PLAIN:
        if (listed := _listed(path)) is not None:
            return listed
        rows = read_rows(path, empty=empty)
        if not rows:
            return []
        chosen = _chosen(rows[0], ends, path)
        try:
            return list(zip(*(column(rows, name, path) for name in chosen), strict=True))
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
    return found


def _listed(path: Path) -> list[tuple[Any, Any]] | None:
    """A JSON list of lists of two, as most programs write pairs; None if it is something else."""
    if path.suffix != ".json":
        return None
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
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
    there = set(names)
    found = [pair for pair in (ENDS if ends is None else (ends,)) if there.issuperset(pair)]
    if not found:
        # Names of columns are not repeated: a table without a header has an edge in its first line.
        wanted = " or ".join(",".join(pair) for pair in (ENDS if ends is None else (ends,)))
        said = "" if ends else ": name yours by --columns"
        raise InvalidInput(
            f"{path} has no columns {wanted} in its first line{said}; nothing was charged"
        )
    return found[0]


def _parquet(path: Path) -> Any:
    import pyarrow as arrow
    from pyarrow import parquet

    try:
        return parquet.read_table(path)
    except OSError as problem:
        said = problem.strerror or problem
        raise InvalidInput(f"cannot read {path}: {said}; nothing was charged") from None
    except arrow.ArrowException:
        raise InvalidInput(f"{path} is not a Parquet table; nothing was charged") from None


def write_labels(
    path: Path, names: Sequence[str], labels: Sequence[int], *, overwrite: bool
) -> None:
    """The block of each node, as a table."""
    write_table(path, ["node", "block"], zip(names, labels, strict=True), overwrite=overwrite)
