"""`sfumato heatmap totals`: how many people a saved map has in each of several zones."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.map_options import Overwrite
from sfumato.errors import InvalidParameter
from sfumato.files import write_file

if TYPE_CHECKING:
    from sfumato.heatmap import HeatmapRelease, ZoneTotal

SUFFIXES = (".csv", ".geojson")


@sentences
def totals(
    file: Annotated[Path, typer.Argument(help="A map saved as .json.", show_default=False)],
    zones: Annotated[Path, typer.Argument(help="A GeoJSON file of polygons.", show_default=False)],
    name: Annotated[str, typer.Option(help="The property that names a zone.")] = "name",
    coverage: Annotated[
        float,
        typer.Option(help="The part of zones with users whose interval should hold, at most 0.95."),
    ] = 0.9,
    out: Annotated[
        Path | None, typer.Option(help="A file to write: .csv or .geojson.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How many people a saved map has in each zone: districts, parks, areas of interest.

    People are estimated mass: each has mass 1, shared over all the places they were at. Zones may
    overlap; polygons of one name are one zone. The map is paid for, so this costs nothing.
    """
    from sfumato.heatmap import read_heatmap, read_zones, totals_csv, totals_geojson, zone_totals

    if out is not None:
        _check(out, [file, zones], overwrite=overwrite)
    saved = read_heatmap(file)
    places = read_zones(zones, name=name)
    found = zone_totals(saved, places, coverage=coverage)
    if out is not None:
        data = (
            totals_csv(found)
            if out.suffix.lower() == ".csv"
            else totals_geojson(saved, places, found)
        )
        write_file(out, data, overwrite=overwrite)
        say(f"wrote {out}", quiet=quiet or json)
    rows = [asdict(one) for one in found]
    result = {"statement": saved.statement, "coverage": coverage, "zones": rows}
    show(result, _table(saved, found, coverage), json=json)


def _check(out: Path, read: list[Path], *, overwrite: bool) -> None:
    if out.suffix.lower() not in SUFFIXES:
        raise InvalidParameter(
            f"totals end in one of {', '.join(SUFFIXES)}, got {out}; nothing was written"
        )
    if out.resolve() in {path.resolve() for path in read}:
        raise InvalidParameter(f"{out} must not replace the map or its zones; nothing was written")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InvalidParameter(
            f"the folder of {out} must be there to write to; nothing was written"
        )
    if out.is_dir() or (os.path.lexists(out) and not overwrite):
        raise InvalidParameter(f"{out} exists already and is kept; nothing was written")


def _table(saved: HeatmapRelease, totals: tuple[ZoneTotal, ...], coverage: float) -> str:
    """The totals in lines of even columns; without intervals, why there are none."""
    sure = saved.posterior is not None
    head = [
        "zone",
        f"{saved.guarantee.unit}s",
        "share",
        *([f"{coverage:.0%} interval"] if sure else []),
    ]
    rows = [head]
    for one in totals:
        row = [one.name, f"{one.users:,.0f}", f"{one.share:.1%}"]
        if one.low is not None and one.high is not None:
            row.append(f"{one.low:,.0f} to {one.high:,.0f}")
        rows.append(row)
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    remarks = ["", *(one.remark for one in totals)]
    lines = [
        "  ".join(
            [
                row[0].ljust(wide[0]),
                *(word.rjust(width) for word, width in zip(row[1:], wide[1:], strict=True)),
            ]
        )
        + (f"  {remark}" if remark else "")
        for row, remark in zip(rows, remarks, strict=True)
    ]
    if not sure:
        lines.append(
            f"no intervals: the file does not say how sure this map, by {saved.method}, is"
        )
    return "\n".join(lines)
