"""`sfumato heatmap plan`: how good a map will be, or what a good one takes, before anything is read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.heatmap.options import (
    Crs,
    Levels,
    MethodOption,
    Overwrite,
    PerPeriod,
    PerValue,
    Plane,
    PoolingOption,
    RowsPerUser,
    Shared,
)
from sfumato.errors import Mistakes


class Data(StrEnum):
    """What kind of data the map is of."""

    places = "places"
    gaze = "gaze"


@sentences
def plan(
    epsilon: Annotated[
        str,
        typer.Option(
            help="What the map may cost; left out, it is what is asked for.", show_default=False
        ),
    ] = "",
    users: Annotated[
        int | None,
        typer.Option(
            help="About how many users there are, a public guess; or left out.", show_default=False
        ),
    ] = None,
    want: Annotated[
        str,
        typer.Option(
            help="What the map should be like: similarity=0.7, pearson=0.9, kl=0.5 or emd=0.05 (of the "
            "map's side; with --bounds emd=200m).",
            show_default=False,
        ),
    ] = "",
    kind: Annotated[
        Data, typer.Option(help="People in places, or eyes on an image.")
    ] = Data.places,
    frames: Annotated[
        int,
        typer.Option(help="How many periods there are maps of, of the same users.", min=1),
    ] = 1,
    maps: Annotated[
        int,
        typer.Option(help="How many maps, e.g. images, there are of each period.", min=1),
    ] = 1,
    mass_per_period: PerPeriod = False,
    mass_per_value: PerValue = False,
    rows: Annotated[
        int | None,
        typer.Option(
            help="About how many rows there are, a public guess, with --rows-per-user.",
            show_default=False,
        ),
    ] = None,
    rows_per_user: RowsPerUser = None,
    pooling: PoolingOption = Shared.none,
    levels: Levels = 8,
    blur: Annotated[
        float, typer.Option(help="The filter the map is seen through, in sides of it.")
    ] = 0.02,
    method: MethodOption = "zoom",
    bounds: Annotated[
        str,
        typer.Option(
            help="Public area, west,south,east,north: distances are told in metres too.",
            show_default=False,
            rich_help_panel="Area",
            show_envvar=False,
        ),
    ] = "",
    plane: Plane = False,
    crs: Crs = "",
    out: Annotated[
        Path | None, typer.Option(help="A file to write: .html or .png.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Forecast how good a map will be, or the epsilon or users that a good one takes.

    It reads no data and spends nothing. Intervals are over places, from spiky to spread-out ones:
    nine of ten lie in them, or as many as it says.
    """
    from sfumato.heatmap import plan_heatmap, public_area
    from sfumato.report import check_plan_path, write_plan

    mistakes, area, planned = Mistakes(), None, None
    with mistakes.noted():
        if out is not None:
            check_plan_path(out, overwrite=overwrite)
    with mistakes.noted():
        area = public_area(bounds, plane=plane, crs=crs or None, levels=levels) if bounds else None
    with mistakes.noted():
        planned = plan_heatmap(
            epsilon=epsilon or None,
            users=users,
            target=want or None,
            kind=kind.value,
            levels=levels,
            blur=blur,
            method=method,
            area=area,
            frames=frames,
            maps=maps,
            mass_per_period=mass_per_period,
            mass_per_value=mass_per_value,
            rows=rows,
            rows_per_user=rows_per_user,
            pooling=pooling.value,
        )
    mistakes.tell()
    if planned is None:  # what stopped it was told
        return
    if out is not None:
        write_plan(planned, out, overwrite=overwrite)
        say(f"wrote {out}", quiet=quiet or json)
    show(planned.to_json(), f"{planned}\n{planned.holds_for}", json=json)
