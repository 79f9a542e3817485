"""`sfumato heatmap draw` and `hotspots`: what can be done with a map that is paid for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, sentences, show
from sfumato.cli.map_options import H3, Out, Over, Overwrite, Title, write_maps

File = Annotated[Path, typer.Argument(help="A map saved as .json.", show_default=False)]


@sentences
def draw(
    file: File,
    out: Out,
    over: Over = None,
    h3_resolution: H3 = None,
    title: Title = "",
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a saved map in other formats: it is paid for, so this costs nothing."""
    from sfumato.heatmap import check_outputs, read_heatmap

    saved = read_heatmap(file)
    if title:
        saved = replace(saved, title=title)
    check_outputs(out, saved.area, over=over, h3_resolution=h3_resolution, overwrite=overwrite)
    written = write_maps(
        (saved,),
        {saved.group: out},
        over=over,
        h3_resolution=h3_resolution,
        overwrite=overwrite,
        hush=quiet or json,
    )
    show({"statement": saved.statement, "written": written}, "\n".join(written), json=json)


@sentences
def hotspots(
    file: File,
    count: Annotated[int, typer.Option("-k", help="How many places.", min=1)] = 5,
    json: Json = False,
) -> None:
    """The k places that best stand for a saved map (k-median), and the share of mass near each."""
    from sfumato.heatmap import read_heatmap

    saved = read_heatmap(file)
    found = saved.hotspots(count)
    lines = [f"{spot.x:.6g}  {spot.y:.6g}  {spot.share:.1%}" for spot in found]
    rows = [{"x": spot.x, "y": spot.y, "share": spot.share} for spot in found]
    show({"statement": saved.statement, "hotspots": rows}, "\n".join(lines), json=json)
