"""`sfumato sense calibrate`: what a source adds and how far it spreads, from a volunteer or an empty room."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, sentences, show
from sfumato.cli.sense.options import (
    SensorColumn,
    SiteFile,
    TimeColumn,
    ValueColumn,
    XColumn,
    YColumn,
)


@sentences
def calibrate(
    site: SiteFile,
    readings: Annotated[
        Path,
        typer.Argument(
            help="Readings with a volunteer's place beside each: sensor, value, x (and y), perhaps time, mass; "
            "or a column for each sensor; blank places, or none at all, for an empty room.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="A new .json file for the site.", show_default=False)],
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="The rows are public: of an empty room, or a volunteer who agrees; exact means are written.",
        ),
    ] = False,
    unit: Annotated[str, typer.Option(help="What sensors read in, if the site lacks it.")] = "",
    sensor: SensorColumn = "sensor",
    value: ValueColumn = "value",
    time: TimeColumn = "time",
    x: XColumn = "x",
    y: YColumn = "y",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit what a source adds, how far it spreads and what sensors read where nobody is, and how sure that is.

    The rows are public because the volunteer in them agrees to it, which --public says, and no ledger
    pays: nobody else may be there. Released readings need no such table.
    """
    from sfumato.sensing import Columns
    from sfumato.sensing.pipeline import calibrate_site
    from sfumato.sensing.render import calibration_lines

    columns = Columns(sensor=sensor, value=value, time=time, x=x, y=y)
    result = calibrate_site(site, readings, public=public, columns=columns, unit=unit, out=out)
    lines = [str(out)] if quiet else [*calibration_lines(result), str(out)]
    show(result.to_json(), "\n".join(lines), json=json)
