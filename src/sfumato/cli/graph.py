"""`sfumato graph`: blocks of a network, how far two networks are apart, and what a network can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sfumato._random import generator
from sfumato.cli.console import Json, Overwrite, Quiet, say, sentences, show, watching
from sfumato.cli.endings import MADE_BEFORE, told_of_signals
from sfumato.cli.missing import tell_with_files
from sfumato.cli.resuming import Anew, ListOnly, OfEntry, Once, OtherOut, Paid, resumed
from sfumato.errors import InvalidParameter, Mistakes
from sfumato.files import check_outputs, check_writable, write_file

app = typer.Typer(
    help="Blocks of a network (groups of nodes that are joined alike), and the limits of what a network can "
    "tell about them.",
    no_args_is_help=True,
)

EdgesArgument = Annotated[
    Path,
    typer.Argument(
        help="Edge list: .csv, .tsv, .json or .parquet with columns u and v, or .txt with two names on a "
        "line.",
        show_default=False,
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        help="Columns of the two ends of an edge, with a comma; else u,v, source,target, from,to or src,dst.",
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
    once: Once = "",
    anew: Anew = False,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find groups of nodes that are joined alike, or say that there is nothing to be found.

    Blocks are believed only if they foretell edges that were kept from them. With --epsilon and
    --ledger nobody can tell from the answer whether two given nodes are joined; nothing else of the
    edges is printed.
    """
    quiet = quiet or json
    again = overwrite or bool(once)  # what was released once is compared with what is there
    number: int | Literal["auto"] = "auto"
    mistakes, ends = Mistakes(), None
    for path, suffix in ((plot, ".png"), (labels, ".csv"), (out, ".json")):
        with mistakes.noted():
            check_outputs(
                [path] if path else [], {suffix}, reads=[edges, nodes, ledger], overwrite=again
            )
    with mistakes.noted():
        if (once or anew) and not epsilon:
            raise InvalidParameter(
                f"--{'once' if once else 'anew'} is for what is paid for, with --epsilon; nothing was read"
            )
    with mistakes.noted():
        if bool(epsilon) != (ledger is not None):
            missing = "ledger" if epsilon else "epsilon"
            raise InvalidParameter(
                f"private blocks need both --epsilon and --ledger, got no {missing}; nothing was read"
            )
    with mistakes.noted():
        number = _number(k)
    with mistakes.noted():
        ends = _ends(columns)
    tell_with_files(mistakes, edges, nodes, ledger)
    files = [path for path in (out, labels, plot) if path is not None]
    for path in files:
        check_writable(path, overwrite=again, lost="nothing was run")

    from sfumato.graphon import find_blocks, release_blocks, render_blocks, write_blocks

    with told_of_signals(), watching(quiet=quiet) as watch:
        if epsilon and ledger is not None:
            found = release_blocks(
                edges, number, epsilon=epsilon, ledger=ledger, nodes=nodes, columns=ends, once=once,
                anew=anew, out=files, overwrite=overwrite, watch=watch,
            )  # fmt: skip
        else:
            found = find_blocks(edges, number, nodes=nodes, columns=ends, watch=watch)
            for path in files:
                write_blocks(found, path, caption=edges.name, overwrite=overwrite)
    if files:
        say(f"written: {', '.join(map(str, files))}", quiet=quiet)
    show(found.to_json(), render_blocks(found), json=json)
    if found.made_before:
        raise typer.Exit(MADE_BEFORE)


@app.command()
@sentences
def resume(
    ledger: Paid,
    edges: Annotated[
        Path | None, typer.Option(help="The edge list, if it has moved since.", show_default=False)
    ] = None,
    out: OtherOut = None,
    entry: OfEntry = None,
    overwrite: Overwrite = False,
    list_only: ListOnly = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Finish private blocks that were paid for and not delivered: after a signal, a crash, a full disk.

    What was drawn is taken from beside the ledger, what was paid for and not drawn is drawn now:
    neither costs anything. Where the first of two releases was paid for alone, the second is charged.
    """
    from sfumato.graphon import resume_blocks

    with told_of_signals(), watching(quiet=quiet or json) as watch:
        result = resume_blocks(
            ledger,
            entry=entry,
            graph=edges,
            out=out,
            overwrite=overwrite,
            list_only=list_only,
            watch=watch,
        )
    resumed(result, list_only=list_only, json=json)


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
    number: int | Literal["auto"] = "auto"
    mistakes, ends = Mistakes(), None
    with mistakes.noted():
        number = _number(k)
    with mistakes.noted():
        ends = _ends(columns)
    tell_with_files(mistakes, a, b)

    from sfumato.graphon import compare_networks, render_comparison

    with watching(quiet=quiet or json) as watch:
        found = compare_networks(a, b, number, columns=ends, watch=watch)
    show(found.to_json(), "\n".join(render_comparison(found)), json=json)


@app.command()
@sentences
def limits(
    graph: Annotated[
        Path | None,
        typer.Argument(
            help="An edge list, or blocks of `graph blocks --out`, whose nodes, blocks and chances are taken "
            "where they are not given.",
            show_default=False,
        ),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Nodes.", min=2, show_default=False)] = None,
    k: Annotated[int | None, typer.Option("--k", help="Blocks.", min=2, show_default=False)] = None,
    rho: Annotated[
        float | None,
        typer.Option(
            "--rho", help="The largest chance of an edge: that within blocks.", show_default=False
        ),
    ] = None,
    between: Annotated[
        float | None,
        typer.Option(
            help="The chance of an edge between blocks, as a share of --rho; 0.2 if not known.",
            min=0,
            max=1,
            show_default=False,
        ),
    ] = None,
    columns: Columns = "",
    plot: Annotated[
        Path | None, typer.Option(help="Draw the phase diagram: .png.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a network of n nodes can tell about k blocks: before anyone collects it, or of one you have.

    Blocks of even size, an edge within one with chance rho and between two with a share of that.
    """
    mistakes, ends = Mistakes(), None
    with mistakes.noted():
        check_outputs([plot] if plot else [], {".png"}, reads=[graph], overwrite=overwrite)
    with mistakes.noted():
        ends = _ends(columns)
    tell_with_files(mistakes, graph)

    from sfumato.graphon import network_limits, render_limits

    with watching(quiet=quiet or json) as watch:
        found = network_limits(graph, n=n, k=k, rho=rho, between=between, columns=ends, watch=watch)
    show(found.to_json(), "\n".join(render_limits(found)), json=json)
    if plot is not None:
        write_file(plot, found.picture(), overwrite=overwrite)
        say(f"written: {plot}", quiet=quiet or json)


@app.command()
@sentences
def simulate(
    folder: Annotated[Path, typer.Argument(help="A new folder for the files.", show_default=False)],
    n: Annotated[int, typer.Option("--n", help="Nodes.", min=2)] = 600,
    k: Annotated[int, typer.Option("--k", help="Blocks, of about even size.", min=1)] = 3,
    rho: Annotated[
        float, typer.Option("--rho", help="The chance of an edge within a block.")
    ] = 0.1,
    between: Annotated[
        float,
        typer.Option(
            help="The chance of an edge between blocks, as a share of --rho.", min=0, max=1
        ),
    ] = 0.2,
    seed: Annotated[int | None, typer.Option(help="The same network again.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make up a network of even blocks: to try everything on, or to see what one like yours would tell."""
    from sfumato.graphon import simulate_network, write_network

    drawn = simulate_network(n, k, rho=rho, between=between, rng=generator(seed))
    paths = write_network(drawn, folder).to_json()
    say(f"made up {n:,} nodes and {len(drawn.network.edges):,} edges", quiet=quiet or json)
    show(paths, "\n".join(paths.values()), json=json)


def _ends(columns: str) -> tuple[str, str] | None:
    """The two columns that were named; None where none were."""
    if not columns:
        return None
    names = tuple(name.strip() for name in columns.split(","))
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise InvalidParameter(
            f"--columns must be two names with a comma, got {columns!r}; nothing was read"
        )
    return names[0], names[1]


def _number(k: str) -> int | Literal["auto"]:
    if k == "auto":
        return "auto"
    if not k.isdecimal() or int(k) < 1:
        raise InvalidParameter(
            f"--k must be auto or a whole number from 1, got {k!r}; nothing was read"
        )
    return int(k)
