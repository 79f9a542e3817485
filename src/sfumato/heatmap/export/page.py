"""The map as one page that works offline: pan, zoom, read off shares, and see what was promised."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import asdict
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.figures import (
    TOPS,
    Overlay,
    filled_page,
    glow,
    page_style,
    palette,
    round_number,
    shade_script,
)
from sfumato.heatmap.accuracy.noise_floor import noise_share
from sfumato.heatmap.analysis.map_total import map_total
from sfumato.heatmap.export.ground import Ground
from sfumato.heatmap.export.legend import LegendKind, cell_text
from sfumato.heatmap.export.picture import (
    NOTHING_UNDER,
    drawn,
    encoded,
    extent_of,
    overlay,
    plain_image,
)
from sfumato.heatmap.export.shapes import Cells, cells_of
from sfumato.heatmap.measure import one_of
from sfumato.heatmap.render.error import error_facts
from sfumato.heatmap.render.release import empty_text
from sfumato.privacy.accounting import model_name
from sfumato.spaces import DEGREE

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

READ_OUT = 6  # the level at which the page reads the band: a cell is narrower than the blur
ENDS = ("low", "middle", "high")
MOST_TILES = 4**9  # 2.3 MB in the page; beyond, the finest cells are taken together


def html(
    release: HeatmapRelease,
    level: int | None = None,
    *,
    ground: Ground = NOTHING_UNDER,
    legend: LegendKind = "density",
) -> bytes:
    """One HTML file with the map, its tiles, and a script that draws them; it fetches nothing.

    Its policy lets the browser run exactly this script and this style, and load nothing at all.
    """
    place = files("sfumato.heatmap.export")
    script, template = (
        (place / name).read_text(encoding="utf-8") for name in ("page.js", "page.html")
    )
    stamp = release.receipt.rehearsal
    words = {
        "TITLE": escape(release.name),
        "TOTAL": escape(_sentence(str(map_total(release)))),
        "STAMP": '<span class="stamp">REHEARSAL</span>' if stamp else "",
        "WATERMARK": '<div class="watermark" aria-hidden="true">REHEARSAL</div>' if stamp else "",
        "STATEMENT": escape(release.statement),
        "PLAINLY": escape(release.plainly),
        "HINT": escape(
            _sentence(empty_text()) if release.empty else "Below the mark: may be noise."
        ),
        "DESCRIPTION": escape(f"Heatmap: {release.name}. Arrow keys move, + and - zoom."),
        "ROWS": "".join(
            f"<tr><th scope=row>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in (
                *facts(release, ground),
                *error_facts(release.error()),
                *_sure(release),
            )
        ),
    }
    return filled_page(
        template,
        style=page_style("page"),
        script=shade_script() + script,
        words=words,
        data=_data(release, level, ground, legend),
    )


def facts(release: HeatmapRelease, ground: Ground = NOTHING_UNDER) -> list[tuple[str, str]]:
    """What a reader should know of how a map was made, as names and values."""
    area, promised, entry = release.area, release.guarantee, release.receipt.entry
    side = area.grid.side
    told = [
        ("guarantee", str(promised.loss)),
        ("for each", promised.unit),
        ("neighbors", promised.step),
        ("trust", model_name(promised.model)),
        ("method", release.method),
        *((f"method: {name}", _plain(value)) for name, value in release.parameters.items()),
        (
            "area",
            f"{', '.join(f'{bound:.10g}' for bound in area.bounds)} ({area.crs or area.kind})",
        ),
        ("resolution", f"{side:,} × {side:,} cells of {cell_text(area, area.grid.levels)}"),
        ("mechanism", entry.mechanism),
        ("ledger", release.receipt.ledger),
        ("entry", f"{entry.number}, {entry.hash}"),
    ]
    if release.empty:
        told.insert(0, ("shows", empty_text()))
    if release.prior is not None:
        told.append(("sharpened by", str(release.prior)))
    told += ground.facts
    return [("map", release.group), *told] if release.group else told


def _sure(release: HeatmapRelease) -> list[tuple[str, str]]:
    if release.posterior is None:
        return []
    found = release.uncertainty()
    band = found.band
    return [
        (
            f"{100 * band.coverage:g}% band",
            f"of the map smoothed by {100 * band.sigma:g}% of the side: {band.width:.2f} times as wide as "
            "the map is high, where 90% of its mass is",
        ),
        ("says nothing", f"on {_percent(found.silent_share)} of the area"),
        ("places that are real", str(len(found.marks))),
    ]


def _percent(share: float) -> str:
    """A share in words that do not say 0 of what can be seen."""
    return f"{100 * share:.0f}%" if share == 0 or share >= 0.005 else "under 1%"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _data(
    release: HeatmapRelease, level: int | None, ground: Ground, legend: LegendKind
) -> dict[str, Any]:
    area = release.area
    found = drawn(release, None if level is None else min(level, 10), legend=legend)
    amount = found.legend.amount
    cells = _few(release, level)
    middle = (
        math.cos(math.radians((area.bounds[1] + area.bounds[3]) / 2))
        if area.kind == "degrees"
        else 1.0
    )
    noise = math.inf if release.empty else noise_share(release)
    densest = max(float(release.image(found.level).max()), 1e-12)
    units = release.measure.name
    return {
        "kind": area.kind,
        "bounds": area.bounds,
        "grid": area.grid.bounds,
        "levels": area.grid.levels,
        "level": found.level,
        "window": area.window(found.level),
        "extent": found.extent,
        "stretch": 1 / middle,
        "meter": DEGREE * middle if area.kind == "degrees" else area.metre or None,
        "legend": found.legend.words,
        "amount": amount,
        "units": units,
        "unit": one_of(units),
        "total": release.measure.scale * release.tiles.total,
        "noise": _finite(noise),
        "scales": {
            "smooth": {"top": found.top, "floor": _finite(found.floor)},
            "cells": {
                "top": round_number(densest * (amount or 1), TOPS) / (amount or 1),
                "floor": _finite(noise),
            },
        },
        "palettes": palettes(ground),
        "under": None if ground.under is None else ground.under.uri(),
        "outline": None if ground.outline is None else ground.outline.to_json(area),
        "picture": encoded(plain_image(release, found)),
        "uncertainty": None if release.posterior is None else _uncertainty(release),
        "tiles": {
            "levels": _text(cells.levels.astype(np.uint8)),
            "codes": _text(cells.codes.astype("<u4")),
            "shares": _text(cells.shares.astype("<f4")),
        },
    }


def _uncertainty(release: HeatmapRelease) -> dict[str, Any]:
    """What the page shows of how sure the map is; it reads the band off a coarser map than it hatches."""
    area, found = release.area, release.uncertainty()
    band = release.band(min(found.band.level, READ_OUT))
    said = overlay(release, found.shown)
    silent_window, band_window = area.window(found.band.level), area.window(band.level)
    return {
        "level": found.band.level,
        "silent": _text(np.packbits(_cut(found.silent, silent_window))),
        "silentWindow": silent_window,
        "extent": extent_of(area, found.band.level),
        "bandLevel": band.level,
        "bandWindow": band_window,
        **{name: _text(_cut(getattr(band, name), band_window).astype("<f4")) for name in ENDS},
        "coverage": band.coverage,
        "cell": cell_text(area, band.level),
        "marks": [asdict(mark) for mark in found.marks],
        "untested": said.dashed,
        "reach": said.reach,
        "hatched": _sentence(said.hatch_says),
        "ringed": _ringed(said, band.coverage),
    }


def _ringed(said: Overlay, coverage: float) -> str:
    """What rings and the numbers at them are; nothing where there are none."""
    if not said.rings:
        return ""
    labels = (
        f"The number at a ring is the share of all mass inside it, with its {100 * coverage:g}% "
        "interval where there is room."
    )
    return " ".join(filter(None, (_sentence(said.rings_say), labels, _sentence(said.dashed_say))))


def _cut(image: npt.NDArray[Any], window: tuple[int, int, int, int]) -> npt.NDArray[Any]:
    first_column, first_row, last_column, last_row = window
    return image[first_row:last_row, first_column:last_column]


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}." if said else ""


def palettes(ground: Ground) -> dict[str, str]:
    """The colors of a page by day and by night; over an image the same ones."""
    over = ground.under is not None
    return {name: _text(glow() if over else palette(name == "dark")) for name in ("light", "dark")}


def _few(release: HeatmapRelease, level: int | None) -> Cells:
    """The cells, the finest of them taken together until a page can hold them."""
    finest = release.area.grid.levels if level is None else level
    while (cells := cells_of(release.tiles, finest)).levels.size > MOST_TILES:
        finest -= 1
    return cells


def _finite(value: float) -> float:
    """A share, or 1 where there is none: JSON has no infinity, and no share is above 1."""
    return value if math.isfinite(value) else 1.0


def _text(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()
