"""Maps of periods as one page that plays them: a slider, one color scale, and people per period."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.figures import (
    TOPS,
    Frame,
    filled_page,
    page_style,
    place_marks,
    round_number,
    scale_bar,
    shade_script,
    shades,
)
from sfumato.heatmap.accuracy.map_error import some_of
from sfumato.heatmap.analysis.map_total import MapTotal, map_total
from sfumato.heatmap.export.formats import WriteOptions, check_outputs, save
from sfumato.heatmap.export.ground import Ground
from sfumato.heatmap.export.legend import cell_text, per_unit
from sfumato.heatmap.export.page import facts, palettes
from sfumato.heatmap.export.picture import NOTHING_UNDER, drawn, encoded
from sfumato.heatmap.measure import one_of
from sfumato.heatmap.render.error import errors_line
from sfumato.heatmap.render.release import empty_text
from sfumato.spaces import DEGREE, Area

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

FINEST_FRAME = 8
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Milliseconds a frame is shown: a film lasts about twelve seconds.
FASTEST, SLOWEST, LENGTH = 120, 800, 12_000


def write_timelapse(
    maps: Sequence[HeatmapRelease],
    path: str | Path,
    *,
    over: str | Path | None = None,
    outline: str | Path | None = None,
    overwrite: bool = False,
) -> None:
    """Save the maps of one release, in order, as one HTML file that plays them; it is there whole or not.

    Args:
        maps: The maps of one release, in order.
        path: The page, .html.
        over: The public image under every frame.
        outline: A public GeoJSON file whose lines and areas are drawn on every frame.
        overwrite: Whether a file that exists is replaced.

    Raises:
        InvalidParameter: The maps are not of one release, or the page cannot be written.

    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise InvalidParameter(f"a film is written to .html, got {target}; nothing was written")
    options = WriteOptions(over=over, outline=outline)
    _check(maps)
    check_outputs([target], maps[0].area, options=options, overwrite=overwrite)
    data = timelapse_html(maps, ground=options.ground(maps[0]))
    save(target, data, overwrite=overwrite)


def timelapse_html(maps: Sequence[HeatmapRelease], *, ground: Ground = NOTHING_UNDER) -> bytes:
    """One HTML file with a frame for each map and a script that plays them; it fetches nothing.

    All frames have one scale, in users or rows and not in shares, so that a quiet night looks quiet; its
    top is the densest place of all released maps. The policy is that of the page of one map.
    """
    _check(maps)
    first = maps[0]
    place = files("sfumato.heatmap.export")
    script, template = (
        (place / name).read_text(encoding="utf-8") for name in ("timelapse.js", "timelapse.html")
    )
    stamp = first.receipt.rehearsal
    title = replace(first, group="").name
    words = {
        "TITLE": escape(title),
        "STAMP": '<span class="stamp">REHEARSAL</span>' if stamp else "",
        "WATERMARK": '<div class="watermark" aria-hidden="true">REHEARSAL</div>' if stamp else "",
        "STATEMENT": escape(first.statement),
        "PLAINLY": escape(first.plainly),
        "DESCRIPTION": escape(f"Heatmap of the chosen period: {title}."),
        "ONE": "period",
        "SLIDER": "Period",
        "LAST": str(len(maps) - 1),
        "ROWS": "".join(
            f"<tr><th scope=row>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in [*_facts(maps), *ground.facts]
        ),
    }
    return filled_page(
        template,
        style=page_style("page", "timelapse"),
        script=shade_script() + script,
        words=words,
        data=_data(maps, title, ground),
    )


def _check(maps: Sequence[HeatmapRelease]) -> None:
    if not maps:
        raise InvalidParameter("a film needs at least one map, got none; nothing was written")
    first = maps[0]
    if any(one.area != first.area or one.receipt.entry != first.receipt.entry for one in maps):
        raise InvalidParameter(
            "a film shows the maps of one release, got maps of several; nothing was written"
        )


def _data(maps: Sequence[HeatmapRelease], title: str, ground: Ground) -> dict[str, Any]:
    first = maps[0]
    level = min(first.area.grid.levels, FINEST_FRAME)
    totals = [one.measure.scale * one.tiles.total for one in maps]
    pictures = [drawn(one, level) for one in maps]
    # In what is counted; a map of nobody has shares, but of nothing.
    amounts = [found.shares * total for found, total in zip(pictures, totals, strict=True)]
    per, size = per_unit(first.area, level) or ("", 1.0)
    top = round_number(max(float(np.max(amounts)), 1e-12) / size, TOPS) * size
    # Each frame has the mark of its map; where that shows nothing, all of it is below.
    floors = [
        min(found.floor * total, 1e300) if total > 0 else 1e300
        for found, total in zip(pictures, totals, strict=True)
    ]
    area, units = first.area, first.measure.name
    middle = (
        math.cos(math.radians((area.bounds[1] + area.bounds[3]) / 2))
        if area.kind == "degrees"
        else 1.0
    )
    cell = area.grid.at_level(level)
    period = first.counted.get("period", {})
    high, wide = amounts[0].shape
    grey = [
        np.round(255 * shades(one, top=top, floor=floor)).astype(np.uint8)
        for one, floor in zip(amounts, floors, strict=True)
    ]
    return {
        "title": title,
        "names": [_said(one) for one in maps],
        "totals": [float(f"{total:.6g}") for total in totals],
        "about": [_about(one) for one in maps],
        "units": units,
        "unit": one_of(units),
        "said": "in this period"
        if period.get("mass_per_period") or units == "rows"
        else "in this period; one who is in several counts in part in each",
        "size": [wide, high],
        "stretch": cell.cell_height / (cell.cell_width * middle),
        "top": top,
        "floors": floors,
        "empty": [one.empty for one in maps],
        "emptySaid": f"{empty_text()[0].upper()}{empty_text()[1:]}.",
        "legend": f"smoothed {units} per {per}"
        if per
        else f"smoothed {units} in a cell of {cell_text(area, level)}",
        "amount": 1 / size,
        "pace": round(min(SLOWEST, max(FASTEST, LENGTH / len(maps)))),
        "palettes": palettes(ground),
        "under": None if ground.under is None else ground.under.uri(),
        "outline": None if ground.outline is None else ground.outline.to_json(area),
        "down": area.kind == "pixels",
        "box": _box(area, pictures[0].extent),
        **_marks(area),
        "frames": [encoded(one if area.kind == "pixels" else one[::-1]) for one in grey],
    }


def _marks(area: Area) -> dict[str, Any]:
    """What the frame of other pictures has: longitudes, latitudes and a scale bar, as parts of the bounds."""
    low_x, low_y, high_x, high_y = area.bounds
    in_degrees = area.kind == "degrees"
    middle = math.cos(math.radians((low_y + high_y) / 2)) if in_degrees else 1.0
    frame = Frame(
        area.bounds,
        area.bounds,
        meter=DEGREE * middle if in_degrees else area.metre or None,
        degrees=in_degrees,
    )
    across, up = place_marks(frame)
    return {
        "places": [
            [[round((at - low_x) / (high_x - low_x), 6), said] for at, said in across],
            [[round((high_y - at) / (high_y - low_y), 6), said] for at, said in up],
        ],
        "scale": None if frame.meter is None else scale_bar(frame),
    }


def _box(area: Area, extent: tuple[float, float, float, float]) -> list[float]:
    """Where the bounds lie in a frame: left, top, right and bottom as parts of its width and height."""
    west, south, east, north = extent
    low_x, low_y, high_x, high_y = area.bounds
    across = [(x - west) / (east - west) for x in (low_x, high_x)]
    if area.kind == "pixels":
        down = [(y - south) / (north - south) for y in (low_y, high_y)]
    else:
        down = [(north - y) / (north - south) for y in (high_y, low_y)]
    return [across[0], down[0], across[1], down[1]]


def _facts(maps: Sequence[HeatmapRelease]) -> list[tuple[str, str]]:
    first, last = maps[0], maps[-1]
    period = first.counted.get("period", {})
    most = "at most 1" if first.measure.name == "rows" else "1"
    shared = (
        f"{most} in each period"
        if period.get("mass_per_period")
        else f"{most}, shared over all periods"
    )
    told = [("maps", f"{len(maps)}, {first.group} to {last.group}"), ("mass of a user", shared)]
    if period:
        told.append(("time zone", period["time_zone"] or "as written, else UTC"))
    told.append(("how far off", _off(maps)))
    return [*told, *(fact for fact in facts(first) if fact[0] != "map")]


def _off(maps: Sequence[HeatmapRelease]) -> str:
    """How far off the maps are; a film that is paid for is made where this cannot be worked out."""
    try:
        return errors_line([one.error() for one in some_of(maps)], len(maps))
    except Exception:
        return "could not be worked out"


def _about(release: HeatmapRelease) -> str:
    """How many a frame is of, with the interval, in the words of a picture of its map.

    A film that is paid for is made where the interval cannot be worked out.
    """
    try:
        said = str(map_total(release))
    except Exception:
        measure = release.measure
        said = str(MapTotal(measure.scale * release.tiles.total, None, None, measure.name))
    return f"{said[0].upper()}{said[1:]}"


def _said(release: HeatmapRelease) -> str:
    """The period of a map as people say it: its day of the week, and the hour by the clock."""
    period = release.counted.get("period", {})
    if period.get("unit") not in ("hour", "day"):
        return release.group
    start = datetime.fromisoformat(period["start"])
    day = f"{DAYS[start.weekday()]} {start.date()}"
    return f"{day} {start:%H:%M}" if period["unit"] == "hour" else day
