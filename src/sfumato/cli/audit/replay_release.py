"""`sfumato audit replay-release`: take users out of a public table, and see what a ledger would open."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato._random import generator
from sfumato.cli.audit.live import live
from sfumato.cli.console import (
    Json,
    Quiet,
    no_verdict_by_accident,
    sentences,
    show,
)
from sfumato.cli.endings import DONE, FAILED, INCONCLUSIVE
from sfumato.cli.heatmap.grouped_options import AreaOptions, ColumnOptions, GroupOptions
from sfumato.cli.option_groups import grouped


@grouped
@no_verdict_by_accident
@sentences
def replay_release(
    input: Annotated[  # noqa: A002
        str,
        typer.Argument(
            help="A CSV, NDJSON or Parquet file, or file::table of SQLite or DuckDB.",
            show_default=False,
        ),
    ],
    rows: ColumnOptions,
    area: AreaOptions,
    maps: GroupOptions,
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="The rows are public or made up; exact numbers may be shown."
        ),
    ] = False,
    neighbors: Annotated[
        int, typer.Option(help="How many users are taken out, at most.", min=1)
    ] = 20,
    seed: Annotated[
        int | None, typer.Option(help="The same users again; otherwise others each time.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check how a table is read: take users out of PUBLIC rows, one at a time, and compare the sums.

    Copies of the file without a user are made by Python alone; one user may move the sums by one
    mass. Exit 0 if all held, 1 if one did not, 5 if nobody taken out had been counted. Never run it
    on private rows.
    """
    from sfumato.heatmap import as_text
    from sfumato.heatmap import replay_release as replay

    with live(f"replaying {input}", quiet=quiet or json) as tell:
        found = replay(
            input,
            public=public,
            rng=generator(seed),
            neighbors=neighbors,
            groups=maps.named(),
            by=maps.column,
            **rows.keywords(),
            **area.keywords(),
            watch=None if tell is None else lambda who: tell(f"without {who}"),
        )
    show(found.to_json(), as_text(found), json=json)
    raise typer.Exit(INCONCLUSIVE if not found.compared else DONE if found.held else FAILED)
