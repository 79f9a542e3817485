"""A map as pages and widgets show it: blurred here to several degrees; scripts only color and place it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures import TOPS, palette, round_number, shades
from sfumato.heatmap.accuracy.noise_floor import noise_share
from sfumato.heatmap.accuracy.noise_mark import PICTURE_SIGMA
from sfumato.heatmap.analysis.blur import smooth_part
from sfumato.heatmap.analysis.map_total import map_total
from sfumato.heatmap.analysis.zone_shapes import Zone, in_degrees, read_zones
from sfumato.heatmap.analysis.zones import zone_totals
from sfumato.heatmap.export.ground import ground_of
from sfumato.heatmap.export.legend import cell_text, legend_of
from sfumato.heatmap.export.output_names import of_group
from sfumato.heatmap.export.picture import encoded, extent_of, overlay
from sfumato.heatmap.render.release import empty_text
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.private_map import HeatmapRelease

Zones: TypeAlias = str | Path | dict[str, Any] | Sequence[Zone]

VIEW = "sfumato-map-view/1"
# The mark "may be noise" is that of PICTURE_SIGMA. More blur leaves less noise, so there it is safe; a
# lesser one would have more, so between it and the cells as they were released there is none.
BLURS = (0.0, PICTURE_SIGMA, 2 * PICTURE_SIGMA, 4 * PICTURE_SIGMA, 8 * PICTURE_SIGMA)
FINEST, FINEST_OF_MANY = 9, 8  # levels of pictures
TICKS = (0.0, 0.1, 0.4, 1.0)  # of legends, as parts of the top
MOST_PERIODS = 200


def map_view(
    maps: HeatmapRelease | Sequence[HeatmapRelease],
    *,
    zones: Zones = (),
    zones_of: Mapping[str, Zones] | None = None,
    outline: str | Path | None = None,
    over: str | Path | None = None,
    hotspots: int = 5,
) -> dict[str, Any]:
    """What `showMap` of our pages and widgets takes: made of released and public values, so it costs nothing.

    Args:
        maps: A map, or maps of periods or groups on one area, in order.
        zones: A GeoJSON file of polygons, a mapping from names to polygons, or zones.
        zones_of: The same of single maps, by their groups: areas of interest on one of several images.
        outline: A public GeoJSON file whose lines are drawn.
        over: The public image under every map: of the size of a map in pixels, or georeferenced; {by} in its
            name stands for the map's group.
        hotspots: How many places to mark; 0 for none.

    Returns:
        A JSON object of the format VIEW.

    Raises:
        InvalidParameter: There is no map, there are too many, or they are of several areas.
        InvalidInput: Zones, outline or image could not be read.
    """
    several = tuple(maps) if isinstance(maps, Sequence) else (maps,)
    if not 1 <= len(several) <= MOST_PERIODS:
        raise InvalidParameter(
            f"a view has 1 to {MOST_PERIODS} maps, got {len(several)}; nothing is shown"
        )
    area = several[0].area
    if any(one.area.bounds != area.bounds or one.area.kind != area.kind for one in several):
        raise InvalidParameter("maps of one view have one area, these differ; nothing is shown")
    level = min(area.grid.levels, FINEST if len(several) == 1 else FINEST_OF_MANY)
    common = _zones(zones)
    own = [_zones((zones_of or {}).get(one.group, ())) for one in several]
    # One degree of blur after the other: each map is blurred once, and few arrays are held.
    layers = [_layers(several, level, sigma) for sigma in BLURS]
    images = [None if over is None else of_group(over, one.group_words) for one in several]
    # Each image once, however many maps lie over it.
    grounds = {path: _ground(path, area) for path in images if path is not None}
    return {
        "format": VIEW,
        "kind": area.kind,
        "crs": area.crs,
        "bounds": list(area.bounds),
        "grid": list(area.grid.bounds),
        "extent": list(extent_of(area, level)),
        "blurs": [f"{100 * sigma:g}% of the side" if sigma else "as released" for sigma in BLURS],
        "blur": BLURS.index(PICTURE_SIGMA),
        "palettes": {name: _text(palette(name == "dark")) for name in ("light", "dark")},
        "outline": [] if outline is None else _outline(outline, several[0]),
        "zones": [
            *(_zone(zone, several[0]) | {"map": None} for zone in common),
            *(_zone(zone, several[0]) | {"map": i} for i, some in enumerate(own) for zone in some),
        ],
        "grounds": list(grounds.values()),
        "maps": [
            _one(one, level, (*common, *some), hotspots)
            | {"layers": list(drawn)}
            | {"ground": None if path is None else list(grounds).index(path)}
            for one, path, some, drawn in zip(
                several, images, own, zip(*layers, strict=True), strict=True
            )
        ],
    }


def _blurred(release: HeatmapRelease, level: int, sigma: float) -> FloatArray:
    """Shares of the cells that the bounds touch; blurred as pictures are."""
    cut = _cut(release.shares.image(level), release, level)
    return smooth_part(cut, sigma, side=1 << level) if sigma else cut


def _cut(image: npt.NDArray[Any], release: HeatmapRelease, level: int) -> npt.NDArray[Any]:
    first_column, first_row, last_column, last_row = release.area.window(level)
    return image[first_row:last_row, first_column:last_column]


def _layers(several: Sequence[HeatmapRelease], level: int, sigma: float) -> list[dict[str, Any]]:
    """All maps through one blur, on one scale, so that their colors compare; in the legend's amounts."""
    blurred = [_blurred(one, level, sigma) for one in several]
    amounts = [legend_of(one, level).amount or 1.0 for one in several]
    highest = max(
        float(shares.max()) * amount for shares, amount in zip(blurred, amounts, strict=True)
    )
    top = round_number(max(highest, 1e-12), TOPS)
    layers = []
    for release, shares, amount in zip(several, blurred, amounts, strict=True):
        held = None
        if sigma:
            floor = release.noise.share(level, release.tiles.total)
        else:
            floor = float("inf") if release.empty else noise_share(release)
            held = _cut(_held(release, level), release, level)
        dark = np.round(255 * shades(shares, top=top / amount, floor=floor, held=held))
        layers.append(
            {
                "picture": encoded(_upright(dark.astype(np.uint8), release)),
                "ticks": [[float(np.sqrt(part)), _number(part * top)] for part in TICKS],
            }
        )
    return layers


def _one(
    release: HeatmapRelease, level: int, zones: Sequence[Zone], hotspots: int
) -> dict[str, Any]:
    legend = legend_of(release, level)
    totals = zone_totals(release, zones) if zones else ()
    return {
        "name": release.name,
        "group": release.group,
        "rehearsal": release.receipt.rehearsal,
        "statement": f"{release.statement}.",
        "plainly": release.plainly,
        "total": str(map_total(release)),
        "hint": empty_text() if release.empty else "Pale: may be noise.",
        "legend": legend.words,
        "cell": cell_text(release.area, level),
        "zones": [one.to_json() | {"remark": one.remark} for one in totals],
        "hotspots": [asdict(one) for one in _hotspots(release, hotspots)],
        "uncertainty": None if release.posterior is None else _uncertainty(release),
    }


def _hotspots(release: HeatmapRelease, k: int) -> tuple[Any, ...]:
    return () if k == 0 or release.empty or release.tiles.total <= 0 else release.hotspots(k)


def _held(release: HeatmapRelease, level: int) -> FloatArray:
    """For each cell the share of the tiles it is part of: it is the tile that may be noise, not its parts."""
    tiles = release.shares
    parts = 4.0 ** np.maximum(level - tiles.levels, 0)
    return Tiles(tiles.grid, tiles.levels, tiles.codes, tiles.masses * parts).image(level)


def _uncertainty(release: HeatmapRelease) -> dict[str, Any]:
    found = release.shown_uncertainty()
    said = overlay(release, found)
    silent = 255 * _cut(found.silent, release, found.level).astype(np.uint8)
    return {
        "silent": encoded(_upright(silent, release)),
        "extent": list(extent_of(release.area, found.level)),
        "rings": [asdict(mark) for mark in found.marks],
        "untested": [list(place) for place in said.dashed],
        "reach": list(said.reach),
        "says": [text for text in (said.hatch_says, said.rings_say, said.dashed_say) if text],
    }


def _upright(pixels: npt.NDArray[np.uint8], release: HeatmapRelease) -> npt.NDArray[np.uint8]:
    """Row 0 on top of the screen."""
    return pixels if release.area.kind == "pixels" else pixels[::-1]


def _outline(path: str | Path, release: HeatmapRelease) -> list[list[list[float]]]:
    return [line.tolist() for line in ground_of(release.area, over=None, outline=path).lines]


def _zones(zones: Zones) -> tuple[Zone, ...]:
    return read_zones(zones) if isinstance(zones, str | Path | dict) else tuple(zones)


def _ground(path: Path, area: Area) -> str:
    under = ground_of(area, over=path, outline=None).under
    return "" if under is None else under.uri()


def _zone(zone: Zone, release: HeatmapRelease) -> dict[str, Any]:
    shown = in_degrees(zone, release.area) if release.area.kind == "degrees" else zone
    return {
        "name": zone.name,
        "polygons": [[ring.tolist() for ring in polygon] for polygon in shown.polygons],
    }


def _number(value: float) -> str:
    return f"{float(f'{value:.3g}'):,g}"


def _text(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()
