"""`sfumato heatmap compare`: what changed between two saved maps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, sentences, show
from sfumato.cli.heatmap.options import OutlineFile, Over, Overwrite, watching
from sfumato.cli.missing import tell_with_files
from sfumato.errors import Mistakes


@sentences
def compare(
    a: Annotated[Path, typer.Argument(help="The map before, saved as .json.", show_default=False)],
    b: Annotated[Path, typer.Argument(help="The map after, of the same area.", show_default=False)],
    zones: Annotated[
        Path | None,
        typer.Option(help="A GeoJSON file of polygons: totals then and now.", show_default=False),
    ] = None,
    name: Annotated[str, typer.Option(help="The property that names a zone.")] = "name",
    coverage: Annotated[
        float,
        typer.Option(help="The chance that the interval of a total holds, at most 0.95."),
    ] = 0.9,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file to write: .png, .html, .json, or .csv of the zones, else of cells; repeatable.",
            show_default=False,
        ),
    ] = None,
    as_shares: Annotated[
        bool, typer.Option("--as-shares", help="Draw shares of the whole instead of users.")
    ] = False,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Compare a rehearsal with a real release.")
    ] = False,
    over: Over = None,
    outline: OutlineFile = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What changed from map A to map B: users, squares that differ for sure, and how far mass moved.

    Maps may be of different releases, budgets and methods. Of two releases of one and the same
    table, about one pair in twenty shows a square whose users differ, and as many one whose share
    does. Both maps are paid for, so this costs nothing.
    """
    from sfumato.heatmap import check_comparison

    mistakes = Mistakes()
    with mistakes.noted():
        check_comparison(
            a, b, zones=zones, coverage=coverage, over=over, outline=outline, outputs=out or (),
            overwrite=overwrite,
        )  # fmt: skip
    tell_with_files(mistakes, a, b, zones, over, outline)

    from sfumato.heatmap import as_text, compare_maps

    with watching(quiet=quiet or json) as watch:
        result = compare_maps(
            a,
            b,
            zones=zones,
            name=name,
            coverage=coverage,
            mixed=mixed,
            outputs=out or (),
            as_shares=as_shares,
            over=over,
            outline=outline,
            overwrite=overwrite,
            watch=watch,
        )
    show(result.to_json(), as_text(result), json=json)
