"""`sfumato heatmap resume`: finish maps that were paid for."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, sentences
from sfumato.cli.endings import told_of_signals
from sfumato.cli.heatmap.options import Connection, Overwrite, aloud, watching
from sfumato.cli.resuming import ListOnly, OfEntry, OtherOut, Paid, resumed


@sentences
def resume(
    ledger: Paid,
    input: Annotated[  # noqa: A002 - the name users see
        str, typer.Option(help="The rows, if they have moved since.", show_default=False)
    ] = "",
    connection: Connection = "",
    out: OtherOut = None,
    entry: OfEntry = None,
    overwrite: Overwrite = False,
    list_only: ListOnly = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Finish maps that were paid for and not delivered: after a signal, a crash, a full disk.

    Counts that were drawn are taken from beside the ledger, others are drawn now: neither costs
    anything. Parts that were asked for and not paid yet are charged. Files that are there and are
    the same are left.
    """
    from sfumato.heatmap import resume_heatmap

    with told_of_signals(), watching(quiet=quiet or json) as watch:
        result = resume_heatmap(
            ledger,
            entry=entry,
            source=input or None,
            connection=connection or None,
            outputs=out,
            overwrite=overwrite,
            list_only=list_only,
            watch=watch,
            warn=aloud,
        )
    resumed(result, list_only=list_only, json=json)
