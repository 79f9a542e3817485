"""What can be done with a map that is paid for, or with its saved .json: all of it is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from sfumato.errors import InvalidParameter
from sfumato.files import write_file
from sfumato.heatmap.accuracy.nearby import nearby_distance, shares_nearby
from sfumato.heatmap.accuracy.uncertainty import Mark, in_a_ring
from sfumato.heatmap.analysis.zone_shapes import Zone, read_zones
from sfumato.heatmap.analysis.zones import totals_csv, totals_geojson, zone_totals
from sfumato.heatmap.export.archive import read_heatmap
from sfumato.heatmap.export.formats import WriteOptions
from sfumato.heatmap.export.geojson import check_geojson
from sfumato.heatmap.export.legend import LegendKind
from sfumato.heatmap.export.output_names import Outputs, check_output, paths_of
from sfumato.heatmap.export.tables import hotspots_csv, hotspots_geojson
from sfumato.heatmap.export.timelapse import write_timelapse
from sfumato.heatmap.hotspot_results import HotspotsResult
from sfumato.heatmap.inference.prior import Prior, declared_prior
from sfumato.heatmap.measure import one_of
from sfumato.heatmap.pipeline.outputs import Watch, plan_outputs, write_maps
from sfumato.heatmap.results import DrawResult, HeatmapRelease, TotalsResult

Map: TypeAlias = HeatmapRelease | str | Path


def draw_map(
    saved: Map,
    outputs: Outputs,
    *,
    title: str = "",
    prior: Prior | str | Path | None = None,
    over: str | Path | None = None,
    outline: str | Path | None = None,
    legend: LegendKind = "density",
    h3_resolution: int | None = None,
    every_cell: bool = False,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> DrawResult:
    """Write a map that is paid for in other formats: it costs nothing.

    Args:
        saved: A map, or the path of one saved as .json.
        outputs: Files to write; the suffix names the format.
        title: What the map is called from now on; as it was, if empty.
        prior: A file declared public that the map follows within its tiles.
        over: The public image under pictures and pages: of the size of a map in pixels, or
            georeferenced; {by} in its name stands for the map's group.
        outline: A public GeoJSON file whose lines and areas are drawn on them.
        legend: What the numbers of legends are: "density" or "share".
        h3_resolution: Resolution of H3 tables, 0 to 15.
        every_cell: Whether .geojson has every cell as it was released.
        overwrite: Whether files that exist are replaced.
        watch: Told of each step.

    Returns:
        The files that were written.

    Raises:
        InvalidParameter: An output could not be written; nothing was.
        InvalidInput: The map or the prior could not be read.

    """
    one = opened(saved)
    if title:
        one = replace(one, title=title)
    targets = plan_outputs(
        outputs,
        None,
        options=WriteOptions(None, over, h3_resolution, outline, legend, every_cell),
        overwrite=overwrite,
    )
    targets = replace(targets, files={one.group: targets.files[""]})
    targets.check(one.area, others=(), rows=None)
    if isinstance(prior, str | Path) and Path(prior).resolve() in {
        path.resolve() for path in targets.every
    }:
        raise InvalidParameter(
            f"{prior} must not replace the prior it is drawn by; nothing was written"
        )
    if (public := declared_prior(prior, one.area)) is not None:
        one = one.sharpened(public)
    return DrawResult(one.statement, write_maps((one,), targets, watch=watch))


def map_hotspots(
    saved: Map,
    k: int = 5,
    *,
    output: str | Path | None = None,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> HotspotsResult:
    """The k places that best stand for a map (k-median), and which shares of its mass are near each.

    Args:
        saved: A map, or the path of one saved as .json.
        k: How many places, at least 1.
        output: A file to write: .csv or .geojson.
        overwrite: Whether a file that exists is replaced.
        watch: Told of the file.

    Returns:
        The places, how far mass is from them, and a bound on that: for each the share of the mass
        that is nearer to it than to the others, and the share within a stated distance. Where the
        map knows how sure it is, `real` says which lie in a ring of its picture: there is over
        twice the map's average in every ring, all at once with a chance of 95 %.

    Raises:
        InvalidParameter: k is below 1, or the output could not be written.
        InvalidInput: The map could not be read.

    """
    target = None if output is None else Path(output)
    if target is not None:
        read = [saved] if isinstance(saved, str | Path) else []
        check_output(target, (".csv", ".geojson"), read, what="hotspots", overwrite=overwrite)
    one = opened(saved)
    if target is not None and target.suffix.lower() == ".geojson":
        check_geojson(one.area)
    found = one.find_hotspots(k)
    real = marks = tested = None
    if one.posterior is not None or one.known_marks is not None:
        marks = one.marks()
        grid = one.area.grid
        rings = tuple(Mark(x, y, 0.0, 0.0, 0.0) for x, y in one.untested())
        real = tuple(in_a_ring(spot.x, spot.y, marks=marks, grid=grid) for spot in found.spots)
        tested = tuple(
            sure or not in_a_ring(spot.x, spot.y, marks=rings, grid=grid)
            for spot, sure in zip(found.spots, real, strict=True)
        )
    distance = nearby_distance(one.area)
    result = HotspotsResult(
        one.statement,
        found.spots,
        found.distance,
        found.lower,
        real,
        marks,
        k,
        tested,
        one.empty,
        (one.area.cell_size[0] * one.area.grid.side, one.area.unit) if one.area.unit else None,
        one.area.kind == "degrees",
        shares_nearby(one, [(spot.x, spot.y) for spot in found.spots], distance),
        (distance, one.area.unit),
        () if target is None else (str(target),),
    )
    if target is not None:
        as_table = target.suffix.lower() == ".csv"
        data = hotspots_csv(result) if as_table else hotspots_geojson(one, result)
        write_file(target, data, overwrite=overwrite)
        if watch is not None:
            watch(f"wrote {target}")
    return result


def map_totals(
    saved: Map,
    zones: str | Path | dict[str, Any] | Sequence[Zone],
    *,
    name: str = "name",
    coverage: float = 0.9,
    output: Outputs | None = None,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> TotalsResult:
    """How many people a map has in each zone: districts, parks, areas of interest. It costs nothing.

    Args:
        saved: A map, or the path of one saved as .json.
        zones: A GeoJSON file of polygons, a mapping from names to polygons, or zones.
        name: The property of the file that names a zone; polygons of one name are one zone.
        coverage: The chance that the interval of a zone holds, at most 0.95.
        output: A file to write, .csv or .geojson, or several.
        overwrite: Whether files that exist are replaced.
        watch: Told of each file.

    Returns:
        A total for each zone, with an interval for methods that know how sure their map is.

    Raises:
        InvalidParameter: The coverage is out of range, or the output could not be written.
        InvalidInput: The map or the zones could not be read.

    """
    targets = () if output is None else tuple(dict.fromkeys(paths_of(output)))
    read = [one for one in (saved, zones) if isinstance(one, str | Path)]
    for target in targets:
        check_output(target, (".csv", ".geojson"), read, what="totals", overwrite=overwrite)
    one = opened(saved)
    places = read_zones(zones, name=name) if isinstance(zones, str | Path | dict) else tuple(zones)
    found = zone_totals(one, places, coverage=coverage)
    for target in targets:
        as_table = target.suffix.lower() == ".csv"
        data = totals_csv(found) if as_table else totals_geojson(one, places, found)
        write_file(target, data, overwrite=overwrite)
        if watch is not None:
            watch(f"wrote {target}")
    written = tuple(map(str, targets))
    unit = one_of(one.measure.name)
    return TotalsResult(one.statement, coverage, found, unit, one.method, written, one.empty)


def map_timelapse(
    saved: Iterable[Map],
    output: str | Path,
    *,
    title: str = "",
    over: str | Path | None = None,
    outline: str | Path | None = None,
    overwrite: bool = False,
) -> DrawResult:
    """Write maps of periods as one page that plays them in order: it costs nothing.

    Args:
        saved: Maps of one release, or paths of them saved as .json, in any order.
        output: The page, .html.
        title: What the page is called; as the maps are, if empty.
        over: The public image under every frame.
        outline: A public GeoJSON file whose lines and areas are drawn on every frame.
        overwrite: Whether a file that exists is replaced.

    Returns:
        The file that was written.

    Raises:
        InvalidParameter: The maps are not of one release, or the page could not be written.
        InvalidInput: A map could not be read.

    """
    maps = [opened(one) for one in saved]
    maps = [replace(one, title=title) for one in maps] if title else maps
    maps.sort(key=when)
    write_timelapse(maps, output, over=over, outline=outline, overwrite=overwrite)
    return DrawResult(maps[0].statement, (str(output),))


def when(one: HeatmapRelease) -> tuple[str, int]:
    """When its period begins, and which it is of those that come again."""
    period = one.counted.get("period", {})
    return period.get("start", one.group), period.get("number", 0)


def opened(saved: Map) -> HeatmapRelease:
    """A map, read if it is a file."""
    return read_heatmap(saved) if isinstance(saved, str | Path) else saved
