"""Share strength between the maps of one release: partial pooling of what was paid for, at no cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidParameter
from sfumato.heatmap.accuracy.noise_mark import EmptyMaps, EstimatedEmptyMaps
from sfumato.heatmap.export.formats import WriteOptions
from sfumato.heatmap.export.legend import LegendKind
from sfumato.heatmap.export.output_names import Outputs
from sfumato.heatmap.inference.partial_pooling import PooledPosterior, mean_tiles, pool_counts
from sfumato.heatmap.measure import one_of
from sfumato.heatmap.methods.registry import as_method
from sfumato.heatmap.pipeline.charging import Method
from sfumato.heatmap.pipeline.options import PoolingKind, check_pooling_kind
from sfumato.heatmap.pipeline.outputs import Watch, plan_outputs, tell_of_trouble, write_maps
from sfumato.heatmap.pipeline.saved_maps import Map, opened, when
from sfumato.heatmap.private_map import HeatmapRelease
from sfumato.heatmap.results import PooledMap, PoolResult
from sfumato.records import Groups

# So many levels below the counted cells a mean is smooth: maps of nobody are as high with fewer.
OUTLINE = 3


def check_pooling(kind: PoolingKind, groups: Groups, method: Method) -> None:
    """Refuse pooling that cannot be: of one map, or of maps whose method does not release all it counts."""
    check_pooling_kind(kind, "nothing was charged")
    if kind == "none":
        return
    if groups is None:
        raise InvalidParameter(
            "`pooling` shares strength between several maps: name them by `by` or `time`; nothing was charged"
        )
    chosen = as_method(method)
    if not getattr(chosen, "mean_is_map", False):
        raise InvalidParameter(
            f"`pooling` takes maps all of whose counts are released, those of zoom, got method {chosen.name}; "
            "nothing was charged"
        )


def pooled_maps(
    maps: tuple[HeatmapRelease, ...], kind: PoolingKind, *, warn: Watch | None = None
) -> tuple[HeatmapRelease, ...]:
    """The maps, pooled if that was asked for; whatever goes wrong, they are there as they were paid for."""
    if kind == "none" or len(maps) < 2:
        return maps
    try:
        return _pooled(maps)
    except Exception as problem:
        why = str(problem) or type(problem).__name__
        tell_of_trouble(
            warn, f"could not pool the maps ({why}): they are paid for, and written one by one"
        )
        return maps


def pool_maps(
    saved: Iterable[Map],
    outputs: Outputs = (),
    *,
    title: str = "",
    over: str | Path | None = None,
    outline: str | Path | None = None,
    legend: LegendKind = "density",
    h3_resolution: int | None = None,
    every_cell: bool = False,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> PoolResult:
    """Share strength between maps of one release that were paid for: partial pooling, at no cost.

    Each map follows what all have in common as far as its own counts say (docs/explain/pooling.md). Its
    total stays what it was. Maps that are alike become clearer; one unlike the others keeps to itself
    where its counts show that, and may be drawn towards them where they do not.

    Privacy: post-processing of released counts alone; nothing is charged, and the guarantee stays.

    Args:
        saved: Maps of one release by zoom, or paths of them saved as .json, in any order.
        outputs: Files to write; {by} in a name stands for the map's group. Of periods, an .html
            without {by} plays them all.
        title: What the maps are called from now on; as they were, if empty.
        over: The public image under pictures and pages.
        outline: A public GeoJSON file whose lines and areas are drawn on them.
        legend: What the numbers of legends are: "density" or "share".
        h3_resolution: Resolution of H3 tables, 0 to 15.
        every_cell: Whether .geojson has every cell as it was released.
        overwrite: Whether files that exist are replaced.
        watch: Told of each step.

    Returns:
        The pooled maps, how much each has from the others, and the files that were written.

    Raises:
        InvalidParameter: The maps are not of one release, or of a method that cannot be pooled; or
            an output could not be written. Nothing was written.
        InvalidInput: A map could not be read.

    """
    files = list(saved)
    maps = sorted((opened(one) for one in files), key=when)
    _check(maps)
    if title:
        maps = [replace(one, title=title) for one in maps]
    targets = plan_outputs(
        outputs,
        tuple(one.group for one in maps),
        options=WriteOptions(None, over, h3_resolution, outline, legend, every_cell),
        overwrite=overwrite,
        film=all("period" in one.counted for one in maps),
    )
    read = [one for one in files if isinstance(one, str | Path)]
    targets.check(maps[0].area, others=() if overwrite else read, rows=None)
    if watch is not None:
        watch(f"pooling {len(maps)} maps")
    found = _pooled(tuple(maps))
    written = write_maps(found, targets, watch=watch)
    told = tuple(
        PooledMap(one.group, one.tiles.total * one.measure.scale, one.posterior.strength, one.empty)
        for one in found
        if isinstance(one.posterior, PooledPosterior)
    )
    unit = one_of(found[0].measure.name)
    return PoolResult(found[0].statement, told, written, found, unit)


def _check(maps: Sequence[HeatmapRelease]) -> None:
    if len(maps) < 2:
        raise InvalidParameter(
            f"pooling takes at least two maps, got {len(maps)}; nothing was written"
        )
    first = maps[0]
    if any(one.area != first.area or one.receipt.entry != first.receipt.entry for one in maps):
        raise InvalidParameter(
            "pooling takes the maps of one release, got maps of several; nothing was written"
        )
    groups = [one.group for one in maps]
    if len(set(groups)) < len(groups):
        raise InvalidParameter("pooling takes each map once, got one twice; nothing was written")
    for one in maps:
        if one.prior is not None:
            raise InvalidParameter(
                f"{one.name} follows a prior: pool maps that do not, and draw them by it then; "
                "nothing was written"
            )
        if one.posterior is None or one.posterior.counts is None or not one.posterior.mean_is_map:
            raise InvalidParameter(
                f"pooling takes maps by zoom with their counts, {one.name} by {one.method} is none; "
                "nothing was written"
            )


def _pooled(maps: tuple[HeatmapRelease, ...]) -> tuple[HeatmapRelease, ...]:
    """The maps with joint posteriors; the noise mark is that of maps of nobody pooled with these."""
    area = maps[0].area
    counts: list[Any] = [None if one.posterior is None else one.posterior.counts for one in maps]
    posteriors, model = pool_counts(counts, area)
    alone = maps[0].nothing or EmptyMaps.of(maps[0])
    nothing = EstimatedEmptyMaps(
        alone.method,
        alone.mechanism,
        area,
        lambda one: mean_tiles(model.posterior(one), area, one.finest + OUTLINE),
    )
    return tuple(
        replace(
            one,
            tiles=mean_tiles(posterior, area),
            posterior=posterior,
            nothing=nothing,
            known_error=None,
            known_total=None,
            known_marks=None,
            known_untested=None,
            known_silent=None,
            known_noise=None,
        )
        for one, posterior in zip(maps, posteriors, strict=True)
    )
