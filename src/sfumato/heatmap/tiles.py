"""Maps as tiles: mass on quadtree cells of any level, so that a fine grid costs no memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy import UNITS
from sfumato.records import CellSums
from sfumato.spaces import Area, Grid

# A picture of 4096 x 4096 doubles is 128 MB; finer ones are looked at in parts.
FINEST_IMAGE = 12
# Tiles are cut along the bounds of an area in pieces no finer than this.
FINEST_EDGE = 10


@dataclass(frozen=True, slots=True, eq=False)
class Tiles:
    """Non-negative mass, in users, on cells of several levels; each cell's mass is spread evenly over it.

    Cells may lie inside one another: masses add.
    """

    grid: Grid
    levels: IntArray
    codes: IntArray
    masses: FloatArray

    def __post_init__(self) -> None:
        if not (self.levels.shape == self.codes.shape == self.masses.shape):
            raise InvalidParameter(
                "tiles need one level, one code and one mass each; no map was made"
            )
        if np.any(self.masses < 0) or not np.all(np.isfinite(self.masses)):
            raise InvalidParameter(
                "the masses of tiles must be finite and at least 0; no map was made"
            )

    @property
    def total(self) -> float:
        """The mass of the whole map."""
        return float(self.masses.sum())

    def values(self, level: int) -> FloatArray:
        """The mass of every cell of a level, by Z-order code."""
        grid = self.grid.at_level(level)
        if level > FINEST_IMAGE:
            raise InvalidParameter(
                f"a whole level can be at most {FINEST_IMAGE}, got {level}; nothing was drawn"
            )
        out = np.zeros(grid.size)
        for tile_level in np.flatnonzero(np.bincount(self.levels)):
            here = self.levels == tile_level
            codes, masses = self.codes[here], self.masses[here]
            if tile_level >= level:
                out += np.bincount(
                    codes >> 2 * (int(tile_level) - level), masses, minlength=grid.size
                )
            else:
                below = 2 * (level - int(tile_level))
                sums = np.bincount(codes, masses, minlength=1 << 2 * int(tile_level))
                out += np.repeat(sums, 1 << below) / (1 << below)
        return out

    def image(self, level: int | None = None) -> FloatArray:
        """The mass of every cell of a level as a picture [row, column], row 0 at the lowest y."""
        chosen = min(self.grid.levels, FINEST_IMAGE) if level is None else level
        return self.grid.at_level(chosen).image(self.values(chosen))

    def normalized(self) -> Tiles:
        """The same map with mass 1; evenly spread mass where there is none at all."""
        total = self.total
        if total > 0:
            return Tiles(self.grid, self.levels, self.codes, self.masses / total)
        return Tiles(self.grid, np.array([0]), np.array([0]), np.array([1.0]))

    def to_json(self) -> dict[str, Any]:
        """Levels, codes and masses."""
        return {
            "levels": self.levels.tolist(),
            "codes": self.codes.tolist(),
            "masses": self.masses.tolist(),
        }


def dense_tiles(grid: Grid, level: int, masses: FloatArray) -> Tiles:
    """Tiles of one whole level, from masses by Z-order code; cells without mass are left out."""
    some = np.flatnonzero(masses > 0)
    return Tiles(
        grid, np.full(some.size, level, dtype=np.int64), some.astype(np.int64), masses[some]
    )


def inside(tiles: Tiles, area: Area) -> Tiles:
    """The same map without what lies outside the bounds of its area, where nobody was counted.

    A tile outside is dropped: it was noise. One across the edge keeps its mass, spread over its
    part inside; its quarters are followed down to level FINEST_EDGE, where a cell that touches the
    bounds counts as inside. The bounds are public, so this is post-processing.
    """
    edge = min(tiles.grid.levels, FINEST_EDGE)
    window = np.array(area.window(edge)).reshape(2, 2)  # lows, then ends, of columns and rows
    levels, codes, owners = [], [], []
    pending_codes = np.zeros(0, dtype=np.int64)
    pending_owners = np.zeros(0, dtype=np.int64)
    for level in range(tiles.grid.levels + 1):
        here = np.flatnonzero(tiles.levels == level)
        now_codes = np.concatenate([pending_codes, tiles.codes[here]])
        now_owners = np.concatenate([pending_owners, here])
        places = np.stack(tiles.grid.at_level(level).decode(now_codes), axis=-1)
        shift = edge - level
        low = places << shift if shift >= 0 else places >> -shift
        high = low + (1 << max(shift, 0))
        within = np.all((low >= window[0]) & (high <= window[1]), axis=-1)
        apart = np.any((high <= window[0]) | (low >= window[1]), axis=-1)
        levels.append(np.full(int(within.sum()), level, dtype=np.int64))
        codes.append(now_codes[within])
        owners.append(now_owners[within])
        across = ~within & ~apart
        pending_codes = Grid.children(now_codes[across]).reshape(-1)
        pending_owners = np.repeat(now_owners[across], 4)
    kept, owner = np.concatenate(levels), np.concatenate(owners)
    sizes = 0.25**kept
    shares = sizes / np.bincount(owner, sizes, minlength=tiles.masses.size)[owner]
    return Tiles(tiles.grid, kept, np.concatenate(codes), tiles.masses[owner] * shares)


def public_tiles(sums: CellSums) -> Tiles:
    """The exact map of public or made-up sums of one group, in users: what a rehearsal is held to.

    Args:
        sums: Sums of one group of public or synthetic rows.

    Returns:
        The map, in users.

    """
    levels = np.full(sums.codes.size, sums.grid.levels, dtype=np.int64)
    return Tiles(sums.grid, levels, sums.codes, sums.units / UNITS)
