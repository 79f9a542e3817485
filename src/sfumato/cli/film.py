"""`sfumato heatmap film`: maps of periods that are paid for, played one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, sentences, show
from sfumato.cli.map_options import Overwrite, Title


@sentences
def film(
    files: Annotated[
        list[Path], typer.Argument(help="Maps of one release, saved as .json.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The page that plays them, .html.", show_default=False)],
    title: Title = "",
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write saved maps of periods as one page that plays them in order: it costs nothing."""
    from dataclasses import replace

    from sfumato.heatmap import read_heatmap, write_timelapse

    maps = [read_heatmap(file) for file in files]
    maps = [replace(one, title=title) for one in maps] if title else maps
    maps.sort(key=lambda one: one.counted.get("period", {}).get("start", one.group))
    write_timelapse(maps, out, overwrite=overwrite)
    show({"statement": maps[0].statement, "written": [str(out)]}, str(out), json=json)
