"""Maps for the tests of writers: made-up tiles with a real receipt of a rehearsal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.heatmap.results import HeatmapRelease
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import (
    REHEARSAL,
    UNITS,
    AddRemoveUser,
    Bound,
    DiscreteLaplace,
    Ledger,
    PureDP,
    guard,
)
from sfumato.spaces import Area
from sfumato.spaces.area import area_in_degrees, area_of_image

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> $\\frac{ & \"' @DATA@"
CITY = area_in_degrees((-74.06, 40.57, -73.75, 40.92), 8)
PACIFIC = area_in_degrees((170, -20, -170, 0), 6)
SCENE = area_of_image(80, 60, 5)


def heatmap(
    area: Area, tiles: list[tuple[int, int, float]], *, rehearsal: bool = False, **changed: Any
) -> HeatmapRelease:
    """A map of tiles given as level, code and users."""
    ledger = Ledger.rehearsal(PureDP(1), unit=changed.pop("unit", "user"))
    bound = Bound(AddRemoveUser(), 1, l1=UNITS, unit=ledger.header.unit)
    paid = ledger.release(DiscreteLaplace(UNITS), guard([0], bound, source=REHEARSAL))
    levels, codes, users = zip(*tiles, strict=True) if tiles else ((), (), ())
    held = Tiles(
        area.grid,
        np.array(levels, dtype=np.int64),
        np.array(codes, dtype=np.int64),
        np.array(users, dtype=float),
    )
    receipt = replace(paid, rehearsal=rehearsal)
    about: dict[str, Any] = {"method": "made-up", "parameters": {"width": 20}, **changed}
    return HeatmapRelease(held, area, receipt=receipt, **about)


def tile_at(
    area: Area, x: float, y: float, *, level: int | None = None, users: float = 1000
) -> tuple[int, int, float]:
    """The tile of a level, the finest if none is given, around a point."""
    chosen = area.grid.levels if level is None else level
    return chosen, int(area.grid.at_level(chosen).cells_of([x], [y])[0]), users


def town(area: Area = CITY, **changed: Any) -> HeatmapRelease:
    """A map with tiles of several levels, two of them inside a larger one, in the middle of the area."""
    low_x, low_y, high_x, high_y = area.bounds
    x, y = low_x + 0.55 * (high_x - low_x), low_y + 0.45 * (high_y - low_y)
    some = [
        tile_at(area, x, y, level=2, users=300),
        tile_at(area, x, y, users=500),
        tile_at(area, x, y, level=4, users=200),
        tile_at(
            area, low_x + 0.8 * (high_x - low_x), low_y + 0.2 * (high_y - low_y), level=3, users=100
        ),
    ]
    return heatmap(area, some, **changed)
