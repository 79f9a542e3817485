"""Maps of counts in one pass of the posterior, for simulations that compare many of them."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.heatmap.inference.bounded import inside_bounds
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.posterior import rough_maps
from sfumato.heatmap.tiles import Tiles, dense_tiles
from sfumato.spaces import Area

# Sketches are compared with each other by how far mass has to move: on cells of this level.
SKETCH = 5


def sketches(counts: Sequence[NoisyCounts], area: Area) -> tuple[Tiles, ...]:
    """The maps of some counts as one pass finds each, on cells of level SKETCH."""
    level = min(area.grid.levels, SKETCH)
    found = zip(counts, rough_maps(counts, level, area), strict=True)
    return tuple(
        dense_tiles(area.grid, level, inside_bounds(masses, one, area)) for one, masses in found
    )
