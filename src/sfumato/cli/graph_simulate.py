"""`sfumato graph simulate`: a network with blocks, made up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.chance import chance
from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.graph_files import write_labels
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import write_table


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
    import numpy as np

    from sfumato.graphon import BlockGraphon, sample_graph

    if not 0 <= rho <= 1:
        raise InvalidParameter(
            f"--rho must be at least 0 and at most 1, got {rho}; nothing was made"
        )
    drawn = sample_graph(BlockGraphon(rho * (between + (1 - between) * np.eye(k))), n, chance(seed))
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InvalidInput(f"{folder} exists already and is kept; choose a new folder") from None
    files = {name: folder / f"{name}.csv" for name in ("edges", "blocks")}
    write_table(files["edges"], ["u", "v"], drawn.network.edges.tolist())
    write_labels(
        files["blocks"], [str(node) for node in range(n)], drawn.labels.tolist(), overwrite=False
    )
    say(f"made up {n:,} nodes and {len(drawn.network.edges):,} edges", quiet=quiet or json)
    paths = {name: str(path) for name, path in files.items()}
    show(paths, "\n".join(paths.values()), json=json)
