"""Compare two maps that are paid for: what changed, where for sure, and how far mass moved. It is free."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import write_file
from sfumato.heatmap.analysis.metrics import POOLED
from sfumato.heatmap.analysis.zone_shapes import Zone, placed, read_zones
from sfumato.heatmap.analysis.zones import ZoneTotal, zone_totals
from sfumato.heatmap.comparison.difference_map import map_difference, total_change
from sfumato.heatmap.comparison.differences import Found, find_changes
from sfumato.heatmap.comparison.known_cells import Counted, counted, of_shares
from sfumato.heatmap.comparison.results import CompareResult, Differences, Pictured, ZoneChange
from sfumato.heatmap.comparison.shift import shift_between
from sfumato.heatmap.export.archive import read_heatmap
from sfumato.heatmap.export.difference import comparison_file
from sfumato.heatmap.export.ground import check_ground, ground_of, lines_inside
from sfumato.heatmap.export.output_names import Outputs, paths_of
from sfumato.heatmap.measure import one_of
from sfumato.heatmap.pipeline.mistakes import check_comparison
from sfumato.heatmap.pipeline.outputs import Watch
from sfumato.heatmap.pipeline.saved_maps import Map
from sfumato.heatmap.results import HeatmapRelease
from sfumato.privacy import UNITS
from sfumato.spaces import Area
from sfumato.transport import EmdResult, GridFlow, compare_masses

if TYPE_CHECKING:
    from sfumato.figures import Frame

UNDONE = "nothing was compared"


def compare_maps(
    a: Map,
    b: Map,
    *,
    zones: str | Path | dict[str, Any] | Sequence[Zone] | None = None,
    name: str = "name",
    coverage: float = 0.9,
    mixed: bool = False,
    outputs: Outputs = (),
    as_shares: bool = False,
    over: str | Path | None = None,
    outline: str | Path | None = None,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> CompareResult:
    """What changed from map a to map b: totals, squares that differ for sure, metres shifted.

    Both were released, and paid for: comparing them costs nothing. They may be of different
    releases, budgets and methods, of one area and grid. What is said is of the people in the two
    tables. "For sure" is said of squares of all sizes at once, for users and for shares apart: of
    two releases of one and the same table, about one pair in twenty shows any square of users, and
    as many one of shares. That is measured for zoom; of a pyramid its widened posterior is believed.

    Args:
        a: The map before: one that was released, or the path of one saved as .json.
        b: The map after.
        zones: Zones to compare: a GeoJSON file of polygons, a mapping from names to polygons, or
            zones.
        name: The property of the file that names a zone.
        coverage: The chance that the interval of the total, or of one zone, holds, at most 0.95.
        mixed: Whether a rehearsal may be compared with a real release.
        outputs: Files to write: .png and .html pictures, .json, and .csv of the zones if there are
            any, else of cells.
        as_shares: Whether pictures and tables of cells show shares of the whole instead of users.
        over: The public image under the difference, in pictures and pages: of the size of maps in
            pixels, or georeferenced.
        outline: A public GeoJSON file whose lines and areas are drawn on pictures and pages.
        overwrite: Whether files that exist are replaced.
        watch: Told of each step.

    Returns:
        What changed, with intervals.

    Raises:
        InvalidParameter: The maps cannot be compared, or an output could not be written.
        InvalidInput: A map or the zones could not be read.

    Example:
        >>> import pyarrow as pa
        >>> from sfumato.heatmap import rehearse_heatmap
        >>> from sfumato.privacy import KeyedNoise
        >>> months = {"user": [*range(90)], "lon": [11.25] * 90, "lat": [43.77] * 90}
        >>> rows = pa.table({**months, "month": ["May", "June", "June"] * 30})
        >>> found = rehearse_heatmap(
        ...     rows, user="user", bounds=(11.2, 43.74, 11.32, 43.81), levels=3, by="month",
        ...     groups=["May", "June"], public=True, epsilon=10, noise=KeyedNoise(bytes(32), epoch=bytes(12)),
        ... )
        >>> change = compare_maps(*found.maps)
        >>> [round(one.change, -1) for one in change.users.changes], change.shares.changes
        ([30.0], ())

    """
    targets = paths_of(outputs)
    check_comparison(
        a, b, zones=zones, coverage=coverage, over=over, outline=outline, outputs=targets,
        overwrite=overwrite,
    )  # fmt: skip
    before, after = _pair(a, b, mixed=mixed)
    check_ground(before.area, over=over, outline=outline)
    ground = ground_of(before.area, over=over, outline=outline)
    places: tuple[Zone, ...] = ()
    if zones is not None:
        given = isinstance(zones, str | Path | dict)
        places = read_zones(zones, name=name) if given else tuple(zones)  # type: ignore[arg-type]
    _tell(watch, "comparing, and working out what noise alone would do")
    result = _compared(before, after, places, coverage=coverage, names=_names(a, b, before, after))
    if result.pictured is not None:
        result = replace(result, pictured=replace(result.pictured, ground=ground))
    result = replace(result, written=tuple(str(path) for path in targets))
    for path in targets:
        write_file(path, comparison_file(result, path, shares=as_shares), overwrite=overwrite)
        _tell(watch, f"wrote {path}")
    return result


def map_distance(
    a: Map, b: Map, *, flow: bool = False, mixed: bool = False, watch: Watch | None = None
) -> EmdResult:
    """How far mass must move to turn the shares of map a into those of map b, between proven bounds.

    On at most 64 x 64 cells: the distance of finer maps differs by less than one of these cells.

    Args:
        a: A map, or the path of one saved as .json.
        b: Another of the same area and grid.
        flow: Whether the result also says where mass moves.
        mixed: Whether a rehearsal may be compared with a real release.
        watch: Called with one sentence before the distance is computed.

    Returns:
        The distance in the area's unit: metres, pixels, or the units of a plane.

    Raises:
        InvalidParameter: The maps cannot be compared.
        InvalidInput: A map could not be read.

    """
    return _distance(*_pair(a, b, mixed=mixed), flow=flow, watch=watch)


def map_frame(saved: Map) -> Frame:
    """Where the cells of a map lie, for pictures of arrays over its grid such as `flow_field`.

    Args:
        saved: A map, or the path of one saved as .json.

    Returns:
        The frame: the grid, the bounds inside it, and which way is up.

    Raises:
        InvalidInput: The map could not be read.

    """
    from sfumato.heatmap.export.picture import frame_of

    found = read_heatmap(saved) if isinstance(saved, str | Path) else saved
    return frame_of(found.area, found.area.grid.bounds)


def _distance(
    before: HeatmapRelease, after: HeatmapRelease, *, flow: bool, watch: Watch | None = None
) -> EmdResult:
    area = before.area
    level = min(area.grid.levels, POOLED)
    width, height = (length * area.grid.side for length in area.cell_size)
    if math.isclose(width, height, rel_tol=1e-9):
        height = width  # square cells have a faster solver
    found = compare_masses(
        before.shares.image(level),
        after.shares.image(level),
        space="grid",
        bounds=(0.0, 0.0, width, height),
        normalize=True,
        flow=flow,
        watch=watch,
    )
    return replace(found, unit=area.unit)


def _pair(a: Map, b: Map, *, mixed: bool) -> tuple[HeatmapRelease, HeatmapRelease]:
    """Both maps, if there is any sense in comparing them."""
    before, after = (read_heatmap(one) if isinstance(one, str | Path) else one for one in (a, b))
    if before.area != after.area:
        raise InvalidParameter(
            "maps of one area and grid can be compared, got bounds "
            f"{_where(before)} and {_where(after)}; {UNDONE}"
        )
    if before.guarantee.unit != after.guarantee.unit or before.measure != after.measure:
        raise InvalidParameter(
            "maps that count the same thing can be compared, got "
            f"{_measured(before)} and {_measured(after)}; {UNDONE}"
        )
    if before.receipt.rehearsal != after.receipt.rehearsal and not mixed:
        raise InvalidParameter(
            "one of the maps is a rehearsal, whose rows are public or made up, and the other is not: say "
            f"`mixed` if they are to be compared all the same; {UNDONE}"
        )
    if before.prior != after.prior:
        raise InvalidParameter(
            "maps that follow one prior, or none, can be compared, got "
            f"{before.prior or 'none'} and {after.prior or 'none'}: the difference would be that of the "
            f"priors; {UNDONE}"
        )
    return before, after


def _measured(release: HeatmapRelease) -> str:
    name, scale = release.measure.name, release.measure.scale
    return name if scale == 1 else f"{name}, at most {scale} of each {release.guarantee.unit}"


def _where(release: HeatmapRelease) -> str:
    area = release.area
    bounds = ",".join(f"{bound:g}" for bound in area.bounds)
    return f"{bounds} ({area.crs or area.kind}, {area.grid.side} x {area.grid.side} cells)"


def _names(a: Map, b: Map, before: HeatmapRelease, after: HeatmapRelease) -> tuple[str, str]:
    """What the maps are called, told apart by their files or entries if they are called alike."""
    if before.name != after.name:
        return before.name, after.name
    files = [Path(one).stem if isinstance(one, str | Path) else "" for one in (a, b)]
    if all(files) and files[0] != files[1]:
        return files[0], files[1]
    first, second = (one.receipt.entry.number for one in (before, after))
    if first != second:
        return f"{before.name} (entry {first})", f"{after.name} (entry {second})"
    return f"{before.name} (first)", f"{after.name} (second)"


def _compared(
    before: HeatmapRelease,
    after: HeatmapRelease,
    places: tuple[Zone, ...],
    *,
    coverage: float,
    names: tuple[str, str],
) -> CompareResult:
    area = before.area
    totals = [zone_totals(one, places, coverage=coverage) for one in (before, after)]
    known = counted(before), counted(after, stream=int(before.posterior is after.posterior))
    in_users = _found(known[0], known[1], before)
    first, second = (None if one is None else of_shares(one) for one in known)
    in_shares = _found(first, second, before)
    distance = _distance(before, after, flow=True)
    if not isinstance(distance.flow, GridFlow):
        raise InvalidInput(f"no flow was found between the maps; {UNDONE}")
    return CompareResult(
        names,
        (before.statement, after.statement),
        (before.method, after.method),
        one_of(before.measure.name),
        _total(before, after, coverage),
        shift_between(before, after),
        None if in_users is None else Differences(in_users.changes, in_users.tested),
        None if in_shares is None else Differences(in_shares.changes, in_shares.tested),
        tuple(_zone_change(*both) for both in zip(*totals, strict=True)),
        coverage,
        _remarks(before, after, names),
        before.receipt.rehearsal or after.receipt.rehearsal,
        pictured=Pictured(
            area,
            map_difference(before, after),
            map_difference(before, after, shares=True),
            in_users,
            in_shares,
            distance.flow,
            tuple(lines_inside(_borders(places, area), area)),
        ),
    )


def _borders(places: tuple[Zone, ...], area: Area) -> Iterator[FloatArray]:
    """The rings of zones, in the units of the maps."""
    for zone in places:
        for polygon in placed(zone, area, area.grid.levels).polygons:
            yield from polygon


def _found(before: Counted | None, after: Counted | None, release: HeatmapRelease) -> Found | None:
    return None if before is None or after is None else find_changes(before, after, release.area)


def _total(before: HeatmapRelease, after: HeatmapRelease, coverage: float) -> ZoneChange:
    then, now = (one.measure.scale * one.tiles.total for one in (before, after))
    ends = total_change(before, after, coverage=coverage)
    if ends is None:
        return ZoneChange("all", then, now, now - then, None, None)
    change = now - then
    return ZoneChange("all", then, now, change, min(ends[0], change), max(ends[1], change))


def _zone_change(before: ZoneTotal, after: ZoneTotal) -> ZoneChange:
    """The change of a zone: the two errors are independent, so their squares add up."""
    change, low, high = after.users - before.users, None, None
    ends = before.low, before.high, after.low, after.high
    if not any(end is None for end in ends):
        first, last, then, now = (float(end or 0.0) for end in ends)
        middle = (then + now - first - last) / 2
        half = math.hypot(now - then, last - first) / 2
        low, high = min(middle - half, change), max(middle + half, change)
    return ZoneChange(before.name, before.users, after.users, change, low, high, before.inside)


def _remarks(
    before: HeatmapRelease, after: HeatmapRelease, names: tuple[str, str]
) -> tuple[str, ...]:
    found = []
    first, second = before.receipt, after.receipt
    unit = before.guarantee.unit
    if (first.ledger, first.entry.hash) == (second.ledger, second.entry.hash):
        moved = (first.entry.bound or {}).get("l1", UNITS)
        if before.group == after.group:
            found.append("both are one and the same map: there is nothing to compare")
        elif int(moved) <= UNITS and not _own_masses(before, after):
            found.append(
                f"both maps are of one release: their noise is independent, but each {unit} has one mass, "
                f"shared among its maps, so that a {unit} in both counts a part in each"
            )
    if (before.pooled_maps > 1) != (after.pooled_maps > 1):
        pooled, alone = names if before.pooled_maps > 1 else names[::-1]
        found.append(
            f"{pooled} is pooled with other maps and {alone} is not: the shift, the arrows and the picture "
            "show that too; intervals, and where maps differ for sure, go by each map's own counts"
        )
    for one, called in ((before, names[0]), (after, names[1])):
        if one.empty:
            found.append(f"{called} is indistinguishable from a map of nobody")
    return tuple(found)


def _own_masses(before: HeatmapRelease, after: HeatmapRelease) -> bool:
    """Whether everybody has a mass of their own in each of two maps of one release."""
    return any(
        (one.get("mass_per_period") or one.get("mass_per_value")) and one != other
        for one, other in zip(_told(before), _told(after), strict=False)
    )


def _told(release: HeatmapRelease) -> list[dict[str, Any]]:
    """What a map says of its period, value or pair."""
    said = release.counted
    return said.get("pair") or [said[name] for name in ("period", "value") if name in said]


def _tell(watch: Callable[[str], None] | None, message: str) -> None:
    if watch is not None:
        watch(message)
