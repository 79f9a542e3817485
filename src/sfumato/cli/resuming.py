"""Options and words that what pays has in common: notes, teams, `--once` and `resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.console import show

if TYPE_CHECKING:
    from sfumato.privacy.runs import ResumeResult

Note = Annotated[str, typer.Option(help="A line for the ledger.")]
Team = Annotated[str, typer.Option(help="Whose sub-budget pays, if the ledger has teams.")]
OtherTable = Annotated[
    bool,
    typer.Option(
        "--other-table",
        help="Pay for a table that the ledger has not seen: the same people are in it.",
    ),
]
Once = Annotated[
    str,
    typer.Option(
        help="A key of this request: said again, it gives what was released under it, at no cost and with "
        "exit code 7; another request under it is refused.",
        show_default=False,
    ),
]
Anew = Annotated[
    bool,
    typer.Option(
        "--anew",
        help="Pay again for what was paid for and not delivered, which `resume` finishes at no cost.",
    ),
]
Paid = Annotated[Path, typer.Argument(help="The ledger that paid.", show_default=False)]
OtherOut = Annotated[
    list[Path] | None,
    typer.Option("--out", help="Other file(s) than were asked for.", show_default=False),
]
OfEntry = Annotated[
    int | None,
    typer.Option(
        help="Finish the request of this entry only; else all.", min=1, show_default=False
    ),
]
ListOnly = Annotated[
    bool, typer.Option("--list", help="Say what there is to finish, and do nothing.")
]


def resumed(result: ResumeResult[Any], *, list_only: bool, json: bool) -> None:
    """Print what was finished, and what is left."""
    from sfumato.privacy.runs import render_resumed

    show(result.to_json(), render_resumed(result, listed=list_only), json=json)
