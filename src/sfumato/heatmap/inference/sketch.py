"""Maps of counts in one pass of the posterior, for simulations that compare many of them."""

from __future__ import annotations

from sfumato.heatmap.inference.bounded import inside_bounds
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.posterior import rough_map
from sfumato.heatmap.tiles import Tiles, dense_tiles
from sfumato.spaces import Area

# Sketches are compared with each other by how far mass has to move: on cells of this level.
SKETCH = 5


def sketch(counts: NoisyCounts, area: Area) -> Tiles:
    """The map of some counts as one pass finds it, on cells of level SKETCH."""
    level = min(area.grid.levels, SKETCH)
    masses = inside_bounds(rough_map(counts, level, area), counts, area)
    return dense_tiles(area.grid, level, masses)
