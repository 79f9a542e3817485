"""`sfumato heatmap`: from rows of (user, place) to a private map, and what can be done with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli import demo
from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.endings import MADE_BEFORE, told_of_signals
from sfumato.cli.heatmap import compare as heatmap_compare
from sfumato.cli.heatmap import plan as heatmap_plan
from sfumato.cli.heatmap import resume as heatmap_resume
from sfumato.cli.heatmap.grouped_options import (
    AreaOptions,
    FileOptions,
    GroupOptions,
    MethodOptions,
    RowOptions,
)
from sfumato.cli.heatmap.options import (
    BoundsShare,
    Epsilon,
    Input,
    Out,
    Outer,
    OutlineFile,
    Over,
    Overwrite,
    PriorFile,
    Public,
    SavedMap,
    SomeOut,
    Title,
    aloud,
    watching,
)
from sfumato.cli.missing import ToldTogether, check_given
from sfumato.cli.option_groups import grouped
from sfumato.cli.resuming import Anew, Note, Once, OtherTable, Team
from sfumato.errors import Mistakes

app = typer.Typer(
    help="Private heatmaps: rows of (user, place) in, a private map out.", no_args_is_help=True
)


@app.callback()
def one_thread() -> None:
    """Let BLAS use one thread, unless somebody said otherwise: matrices of maps are small.

    On 200 maps of 128 x 128 cells a second thread waits ten times as long as the work takes.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@app.command(cls=ToldTogether)
@grouped
@sentences
def release(
    input: Input,  # noqa: A002 - the name users see
    epsilon: Epsilon,
    ledger: Annotated[Path, typer.Option(help="The ledger that pays.", show_default=False)],
    out: Out,
    rows: RowOptions,
    area: AreaOptions,
    method: MethodOptions,
    maps: GroupOptions,
    files: FileOptions,
    outer: Outer = "",
    bounds_share: BoundsShare = "1/10",
    prior: PriorFile = None,
    title: Title = "",
    note: Note = "",
    once: Once = "",
    anew: Anew = False,
    team: Team = "",
    other_table: OtherTable = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check everything but the data, say the cost, read nothing."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release a private map of a table.

    Every user has mass 1, however many rows, or with --rows-per-user at most 1; the area, the
    resolution and the colors are public. The ledger pays first. Nothing printed or written depends
    on the rows, except through what was paid for.
    """
    from sfumato.heatmap import check_release
    from sfumato.records import check_source

    words: dict[str, Any] = {
        "by": maps.column,
        "pooling": maps.pooling.value,
        "outer": outer,
        "bounds_share": bounds_share,
        "team": team,
        "other_table": other_table,
        "users": method.users,
        **rows.keywords(),
        **area.keywords(),
        **files.keywords(),
    }
    asked: dict[str, Any] = {"outputs": out or (), "note": note, "once": once, **words}
    mistakes, groups = Mistakes(), None
    with mistakes.noted():
        check_given()
    with mistakes.noted():
        groups = maps.named()
    with mistakes.noted():
        method.check()
    with mistakes.noted():
        check_release(input, ledger=ledger, epsilon=epsilon, groups=groups, **asked)
    if not once:
        with mistakes.noted():
            check_source(input, connection=rows.connection)
    mistakes.tell()

    from sfumato.heatmap import as_text, plan_release

    planned = plan_release(
        input,
        ledger=ledger,
        epsilon=epsilon,
        method=method.named(),
        groups=groups,
        prior=prior,
        title=title,
        anew=anew,
        **asked,
    )
    if dry_run:
        show(planned.result.to_json(), as_text(planned.result), json=json)
        return
    with told_of_signals(), watching(quiet=quiet or json) as watch:
        result = planned.run(watch=watch, warn=aloud)
    show(result.to_json(), as_text(result), json=json)
    if result.made_before:
        raise typer.Exit(MADE_BEFORE)


@app.command(cls=ToldTogether)
@grouped
@sentences
def rehearse(
    input: Input,  # noqa: A002
    epsilon: Epsilon,
    rows: RowOptions,
    area: AreaOptions,
    method: MethodOptions,
    maps: GroupOptions,
    files: FileOptions,
    out: SomeOut = None,
    public: Public = False,
    prior: PriorFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try a release on PUBLIC data: the map is stamped, and its true errors are printed. No ledger pays.

    Never run it on private data: the errors it prints are exact numbers about the rows.
    """
    from sfumato.heatmap import check_rehearsal
    from sfumato.records import check_source

    asked: dict[str, Any] = {
        "public": public,
        "by": maps.column,
        "pooling": maps.pooling.value,
        "outputs": out or (),
        **rows.keywords(),
        **area.keywords(),
        **files.keywords(),
    }
    mistakes, groups = Mistakes(), None
    with mistakes.noted():
        check_given()
    with mistakes.noted():
        groups = maps.named()
    with mistakes.noted():
        method.check()
    with mistakes.noted():
        check_rehearsal(input, epsilon=epsilon, groups=groups, **asked)
    with mistakes.noted():
        check_source(input, connection=rows.connection)
    mistakes.tell()

    from sfumato.heatmap import as_text, rehearse_heatmap

    with watching(quiet=quiet or json) as watch:
        result = rehearse_heatmap(
            input,
            epsilon=epsilon,
            method=method.named(),
            groups=groups,
            prior=prior,
            watch=watch,
            warn=aloud,
            **asked,
        )
    show(result.to_json(), as_text(result), json=json)


@app.command()
@grouped
@sentences
def draw(
    file: SavedMap,
    out: Out,
    written: FileOptions,
    title: Title = "",
    prior: PriorFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a saved map in other formats: it is paid for, so this costs nothing."""
    from sfumato.heatmap import as_text, draw_map

    with watching(quiet=quiet or json) as watch:
        result = draw_map(
            file,
            out,
            title=title,
            prior=prior,
            watch=watch,
            **written.keywords(),
        )
    show(result.to_json(), as_text(result), json=json)


@app.command()
@sentences
def hotspots(
    file: SavedMap,
    count: Annotated[int, typer.Option("-k", help="How many places.", min=1)] = 5,
    out: Annotated[
        Path | None, typer.Option(help="A file to write: .csv or .geojson.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The k places that best stand for a saved map (k-median), and which shares of its mass are near each.

    "nearest to it" is the share that is nearer to a place than to the others, however far: the
    column adds up to 100%. "within" is the share within a stated distance, with its interval. How
    far the mass is from the places on average is said beside what no k places can be below.

    Where the map knows how sure it is, "real" is said of those within a ring of its picture: there
    is over twice the map's average in every ring, all at once with a chance of 95%.
    """
    from sfumato.heatmap import as_text, map_hotspots

    with watching(quiet=quiet or json) as watch:
        result = map_hotspots(file, count, output=out, overwrite=overwrite, watch=watch)
    say(result.remark, quiet=quiet or json)
    show(result.to_json(), as_text(result), json=json)


@app.command()
@sentences
def film(
    files: Annotated[
        list[Path], typer.Argument(help="Maps of one release, saved as .json.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The page that plays them, .html.", show_default=False)],
    title: Title = "",
    over: Over = None,
    outline: OutlineFile = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write saved maps of periods as one page that plays them in order: it costs nothing."""
    from sfumato.heatmap import as_text, map_timelapse

    with watching(quiet=quiet or json) as watch:
        watch("drawing every frame")
        result = map_timelapse(
            files, out, title=title, over=over, outline=outline, overwrite=overwrite
        )
    show(result.to_json(), as_text(result), json=json)


@app.command()
@grouped
@sentences
def pool(
    files: Annotated[
        list[Path], typer.Argument(help="Maps of one release, saved as .json.", show_default=False)
    ],
    out: Out,
    written: FileOptions,
    title: Title = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Share strength between saved maps of one release (partial pooling): they are paid for, it costs nothing.

    Each map follows what all have in common as far as its own counts say; its total stays what it
    was. {by} in a name of --out is the map. One unlike the others may be drawn towards them.
    """
    from sfumato.heatmap import as_text, pool_maps

    with watching(quiet=quiet or json) as watch:
        result = pool_maps(files, out, title=title, watch=watch, **written.keywords())
    show(result.to_json(), as_text(result), json=json)


@app.command()
@sentences
def totals(
    file: SavedMap,
    zones: Annotated[Path, typer.Argument(help="A GeoJSON file of polygons.", show_default=False)],
    name: Annotated[str, typer.Option(help="The property that names a zone.")] = "name",
    coverage: Annotated[
        float,
        typer.Option(help="The chance that a zone's interval holds, at most 0.95."),
    ] = 0.9,
    out: Annotated[
        list[Path] | None,
        typer.Option(help="File(s) to write: .csv or .geojson.", show_default=False),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How many people a saved map has in each zone: districts, parks, areas of interest.

    People are estimated mass: each has mass 1, shared over all the places they were at. Zones may
    overlap; polygons of one name are one zone. The map is paid for, so this costs nothing.
    """
    from sfumato.heatmap import as_text, map_totals

    with watching(quiet=quiet or json) as watch:
        result = map_totals(
            file,
            zones,
            name=name,
            coverage=coverage,
            output=out,
            overwrite=overwrite,
            watch=watch,
        )
    show(result.to_json(), as_text(result), json=json)


app.command("compare")(heatmap_compare.compare)
app.command("resume")(heatmap_resume.resume)
app.command("plan")(heatmap_plan.plan)
app.command("city")(demo.city)
