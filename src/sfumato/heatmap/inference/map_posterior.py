"""What a posterior of a map is: maps that could have led to what was released."""

from __future__ import annotations

from typing import Protocol

from sfumato._types import FloatArray
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Area


class MapPosterior(Protocol):
    """Maps that could have led to what was released, in users; the same ones every time.

    A class of one's own inherits from this one and has `maps`; it is compared by identity. The rest
    has defaults for a posterior that was not made of noisy counts.
    """

    @property
    def counts(self) -> NoisyCounts | None:
        """The noisy counts it was made of: a saved map keeps them."""
        return None

    @property
    def mean_is_map(self) -> bool:
        """Whether the map shown is the mean of this posterior."""
        return False

    @property
    def noise_scale(self) -> float | None:
        """The usual scale of the noise on a count, in users; None where the method says it."""
        return None

    @property
    def pooled_maps(self) -> int:
        """How many maps share strength with this one, itself among them; 1 for a map by itself."""
        return 1

    def counted(self, tiles: Tiles) -> Tiles:
        """The masses of the map on the finest cells that were counted."""
        return tiles

    def maps(self, count: int, level: int) -> FloatArray:
        """So many maps of a level [draw, row, column]."""

    def totals_inside(self, area: Area, count: int) -> FloatArray | None:
        """The totals of so many maps inside the bounds, in order; None where the maps are added up."""
        del area, count
        return None

    def __hash__(self) -> int:
        """By identity: what was worked out of it once need not be again."""
        return object.__hash__(self)
