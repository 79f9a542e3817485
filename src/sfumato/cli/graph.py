"""`sfumato graph`: blocks of a network, how far two networks are apart, and what a network can tell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import graph_limits, graph_simulate
from sfumato.cli.console import Json, Quiet, say, sentences, show, working
from sfumato.cli.graph_files import (
    Columns,
    Edges,
    Overwrite,
    ends_of,
    number_of,
    read_blocks,
    read_edges,
    read_words,
    signals_line,
    write_blocks,
    write_labels,
)
from sfumato.cli.sense_outputs import check_outputs
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import check_writable, write_file

if TYPE_CHECKING:
    from rich.table import Table

    from sfumato.graphon import BlockGraphon, Blocks
    from sfumato.privacy import Ledger

app = typer.Typer(
    help="Blocks of a network (groups of nodes that are joined alike), and the limits of what a network can "
    "tell about them.",
    no_args_is_help=True,
)

app.command("limits")(graph_limits.limits)
app.command("simulate")(graph_simulate.simulate)

SHOWN = 12
"""Blocks whose matrix is printed; more are in --out."""

EdgesArgument = Annotated[
    Path,
    typer.Argument(
        help="Edge list: .csv, .tsv, .json or .parquet with columns u and v, or .txt with two names on a "
        "line.",
        show_default=False,
    ),
]


@app.command()
@sentences
def blocks(
    edges: EdgesArgument,
    k: Annotated[str, typer.Option(help="How many blocks; auto finds the number.")] = "auto",
    columns: Columns = "",
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="All nodes: a table with a column node, or .txt with one on each line; else those that have "
            "an edge. Needed with --epsilon: the nodes are public, who has an edge is not.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        str,
        typer.Option(
            help="Hide every edge, at this cost: 2 or 3 is usual; less hides the blocks too.",
            show_default=False,
        ),
    ] = "",
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="The ledger that pays, with --epsilon; of neighbors flipped-edge, unit edge."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the matrix of blocks: .png.", show_default=False)
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Write the block of each node: .csv.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the blocks for `graph distance`: .json.", show_default=False),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find groups of nodes that are joined alike, or say that there is nothing to be found.

    Blocks are believed only if they foretell edges that were kept from them. With --epsilon and
    --ledger nobody can tell from the answer whether two given nodes are joined; nothing else of the
    edges is printed.
    """
    from sfumato.graphon import Blocks

    hush = quiet or json
    reads = [edges, nodes, ledger]
    for path, suffix in ((plot, ".png"), (labels, ".csv"), (out, ".json")):
        check_outputs([path] if path else [], {suffix}, reads=reads, overwrite=overwrite)
    private = bool(epsilon) or ledger is not None
    if private and nodes is None:
        raise InvalidParameter(
            "with --epsilon say which nodes there are by --nodes: who has an edge is private; nothing was "
            "read"
        )
    for file in filter(None, (plot, labels, out)):
        check_writable(file, overwrite=overwrite, lost="nothing was run")
    found = Blocks(
        number_of(k), epsilon=epsilon or None, ledger=None if ledger is None else _pays(ledger)
    )
    given = read_edges(edges, ends=ends_of(columns), nodes=nodes, private=private)
    if not private:
        say(read_words(given), quiet=hush)
    with working(f"looking for {'blocks' if k == 'auto' else f'{k} blocks'}", quiet=hush):
        found.fit(given.network)
    result = _result(found, given)
    # Said first: what was paid for is not lost with a file that cannot be written.
    show(result, _table(found, _words(found, given, result, private=private)), json=json)
    sys.stdout.flush()
    written = _written(out, labels, found, given, result, overwrite=overwrite)
    if plot is not None:
        write_file(plot, _picture(found, edges.name), overwrite=overwrite)
        written.append(str(plot))
    if written:
        say(f"written: {', '.join(written)}", quiet=hush)


@app.command()
@sentences
def distance(
    a: Annotated[
        Path,
        typer.Argument(help="An edge list, or blocks of `graph blocks --out`.", show_default=False),
    ],
    b: Annotated[Path, typer.Argument(help="Another.", show_default=False)],
    k: Annotated[str, typer.Option(help="How many blocks to find in edge lists; auto.")] = "auto",
    columns: Columns = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how far the blocks of two networks are apart, whatever their nodes are called.

    It is the distance delta_2: the root mean square difference of chances of an edge, under the
    best matching of nodes, between proven bounds. Edge lists are replaced by the blocks found in
    them; how far those are from the truth is not in the bounds.
    """
    from sfumato.graphon import distance as between

    hush = quiet or json
    one, other = (_graphon(path, number_of(k), ends_of(columns), hush=hush) for path in (a, b))
    with working("matching blocks", quiet=hush):
        found = between(one, other)
    result = {
        "lower": found.lower,
        "upper": found.upper,
        "exact": found.exact,
        "proved_by": found.witness.name,
        "coupling": found.coupling.tolist(),
        "blocks": [one.k, other.k],
        "densities": [one.density, other.density],
    }
    text = (
        f"distance {found.upper:.4g}, exactly"
        if found.exact
        else f"distance between {found.lower:.4g} and {found.upper:.4g}"
    )
    text += f" (delta_2 of {one.k} and {other.k} blocks as found; densities "
    text += f"{one.density:.4g} and {other.density:.4g})"
    show(result, "\n".join([text, *_matched(found.coupling)]), json=json)


def _result(found: Blocks, given: Edges) -> dict[str, Any]:
    from sfumato.graphon import signals

    return {
        "nodes": given.network.size,
        "k": found.k_,
        "detectable": found.detectable_,
        "hopeless": found.hopeless_,
        "reason": found.reason_,
        "shares": found.shares_.tolist(),
        "matrix": found.matrix_.tolist(),
        "density": found.density_,
        "signals": signals(found.graphon_, given.network.size).tolist(),
        "rate": found.rate_,
        "labels": dict(zip(given.names, found.labels_.tolist(), strict=True)),
        "guarantee": [str(release.guarantee) for release in found.releases_],
        "entries": [release.entry.number for release in found.releases_],
    }


def _pays(path: Path) -> Ledger:
    """The ledger that pays for edges; one for users is refused with the line that makes the right one."""
    from sfumato.errors import LedgerMismatch
    from sfumato.privacy import FlippedEdge, Ledger

    line = f"sfumato ledger create {path} --epsilon 3 --unit edge --neighbors flipped-edge --source NAME"
    if not path.exists():
        raise InvalidInput(f"there is no ledger {path}; make one with: {line}; nothing was read")
    ledger = Ledger(path)
    if not isinstance(ledger.header.neighbors, FlippedEdge) or ledger.header.unit != "edge":
        raise LedgerMismatch(
            f"{path} accounts for '{ledger.header.neighbors}' per {ledger.header.unit}, and edges need one "
            f"made like: {line}; nothing was read"
        )
    return ledger


def _words(found: Blocks, given: Edges, result: dict[str, Any], *, private: bool) -> list[str]:
    n = given.network.size
    counted = f"{found.k_} block{'s' * (found.k_ > 1)} of {n:,} nodes"
    lines = [f"{counted}: {found.reason_}"]
    if result["signals"]:
        lines.append(signals_line(result["signals"]))
    lines.append(f"density {result['density']:.3g}")
    if found.rate_ > 0:
        lines[-1] += f"; nobody's error is below {found.rate_:.3g}, up to a constant"
    if private:
        paid = " and ".join(str(release.guarantee.loss) for release in found.releases_)
        lines.append(f"paid {paid}: {found.releases_[0].guarantee.neighbors}")
    return lines


def _table(found: Blocks, lines: Sequence[str]) -> Any:
    from rich.console import Group
    from rich.text import Text

    texts = [Text(line) for line in lines]
    return Group(*texts) if found.k_ > SHOWN else Group(*texts, _matrix(found))


def _matrix(found: Blocks) -> Table:
    import numpy as np
    from rich.table import Table

    table = Table(title="chance of an edge", title_justify="left", box=None)
    table.add_column("block", justify="right")
    table.add_column("nodes", justify="right")
    for block in range(found.k_):
        table.add_column(str(block), justify="right")
    sizes = np.bincount(found.labels_, minlength=found.k_)
    for block, (size, row) in enumerate(zip(sizes.tolist(), found.matrix_.tolist(), strict=True)):
        table.add_row(str(block), f"{size:,}", *(f"{chance:.3g}" for chance in row))
    return table


def _written(
    out: Path | None,
    labels: Path | None,
    found: Blocks,
    given: Edges,
    result: dict[str, Any],
    *,
    overwrite: bool,
) -> list[str]:
    written = []
    if out is not None:
        write_blocks(out, result, overwrite=overwrite)
        written.append(str(out))
    if labels is not None:
        write_labels(labels, given.names, found.labels_.tolist(), overwrite=overwrite)
        written.append(str(labels))
    return written


def _picture(found: Blocks, name: str) -> bytes:
    from sfumato.figures import blocks_picture

    names = [str(block) for block in range(found.k_)]
    return blocks_picture(
        found.matrix_, found.shares_, names=names, caption=f"{name}: {found.reason_}"
    )


def _graphon(path: Path, k: Any, ends: tuple[str, str] | None, *, hush: bool) -> BlockGraphon:
    from sfumato.graphon import Blocks

    if (kept := read_blocks(path)) is not None:
        return kept.graphon
    if path.suffix == ".json" and not path.exists():
        raise InvalidInput(f"cannot read {path}: there is no such file; nothing was compared")
    given = read_edges(path, ends=ends)
    with working(f"looking for blocks in {path}: {read_words(given)}", quiet=hush):
        return Blocks(k).fit(given.network).graphon_


def _matched(coupling: Any) -> list[str]:
    """Which blocks are matched, the largest shares first."""
    pairs = [
        (float(share), i, j)
        for i, row in enumerate(coupling)
        for j, share in enumerate(row)
        if share > 5e-3
    ]
    lines = [
        f"block {i} with block {j}: {share:.1%} of the nodes" for share, i, j in sorted(pairs)[::-1]
    ]
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more"]
