"""A released map in a notebook: pan and zoom, blur, uncertainty, periods, zones, and what was promised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets

from sfumato.heatmap import ReleaseResult, map_view
from sfumato.web import map_script, map_style
from sfumato.widget.shown import Shown

if TYPE_CHECKING:
    from sfumato.heatmap import HeatmapRelease

# What it imports is in the same text: widgets load one.
RENDER = re.sub(
    r"(?m)^import .*$", "", (files("sfumato.widget") / "map.js").read_text(encoding="utf-8")
)


class MapWidget(Shown):
    """A map, or maps of periods, with sliders; it costs nothing, and fetches nothing."""

    _esm = map_script() + RENDER
    _css = map_style()
    view = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        release: HeatmapRelease | ReleaseResult | Sequence[HeatmapRelease],
        *,
        zones: str | Path | dict[str, Any] | None = None,
        outline: str | Path | None = None,
        over: str | Path | None = None,
        hotspots: int = 5,
    ) -> None:
        """Show what was released.

        Args:
            release: A map, maps of one area, or what `release_heatmap` gave.
            zones: A GeoJSON file of polygons, or a mapping from names to polygons: totals of each.
            outline: A public GeoJSON file whose lines are drawn.
            over: The public image under every map; {by} in its name stands for the map's group.
            hotspots: How many places to mark; 0 for none.
        """
        maps = release.maps if isinstance(release, ReleaseResult) else release
        self._maps = tuple(maps) if isinstance(maps, Sequence) else (maps,)
        view = map_view(
            self._maps, zones=zones or (), outline=outline, over=over, hotspots=hotspots
        )
        super().__init__(view=view)

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self._maps[:12])
