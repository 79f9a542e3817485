"""Where the demonstration's network is, and the source that walks through it: nobody in it exists."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.files import write_table
from sfumato.sensing import Sensors, Site, describe_site

SENSORS = 30
ROADS = (10, 6)  # streets from west to east and from south to north
PACE = 0.5  # metres a second, or half a street


@dataclass(slots=True)
class Walker:
    """A source that goes to and fro, at places that follow from the clock: nobody in it exists."""

    site: Site
    cells: tuple[int, ...]
    period_ms: int
    start_ms: int
    _read: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def cell_at(self, moment_ms: int) -> int:
        """The cell of the source in the round that holds a moment."""
        steps = moment_ms // self.period_ms - self.start_ms // self.period_ms
        there = 2 * (len(self.cells) - 1)
        at = steps % there
        return self.cells[min(at, there - at)]

    def truth(self, time: str) -> tuple[int, str]:
        """Where the source was at a time as rounds have it: its cell, and in words."""
        moment = datetime.fromisoformat(time).timestamp()
        cell = self.cell_at(round(moment * 1000))
        place = self.site.operator.space.places(np.array([cell]))[0]
        named = self.site.cells is not None
        return cell, self.site.cell(cell) if named else ", ".join(f"{one:.3g}" for one in place)

    def reading(self, place: int, moment_ms: int) -> float:
        """What a sensor reads: what it reads where nobody is, and what the source adds."""
        cell = self.cell_at(moment_ms)
        if cell not in self._read:
            column = self.site.operator.columns([cell])[:, 0]
            level = self.site.level
            base = [0.0] * len(column)
            if level is not None:
                base = [float(one) for one in level.of(self.site.sensors.names, None)]
            gain = float(self.site.per_source or 1)
            self._read[cell] = tuple(
                low + gain * float(one) for low, one in zip(base, column, strict=True)
            )
        return self._read[cell][place]


def demo_site(folder: Path, *, roads: bool = False) -> tuple[Site, tuple[int, ...], dict[str, Any]]:
    """The site of the demonstration, the cells that its source walks over, and where to draw nodes.

    Args:
        folder: Where its tables are written.
        roads: Streets instead of a corridor.

    Returns:
        The site, its cells in the order of the walk, and a layout for a graph.
    """
    common: dict[str, Any] = {"beside": "1C", "ambient": "20C", "step": "0.01"}
    if not roads:
        names = [f"s{number:02}" for number in range(1, SENSORS + 1)]
        places = Sensors([0.5 + number for number in range(SENSORS)], names)
        site = describe_site(
            "corridor", line=120, length=30.0, sensors=places, diffusion_time=2.0, radius="0.3",
            **common,
        ).site  # fmt: skip
        return site, tuple(range(6, 114, int(4 * PACE))), {}
    wide, high = ROADS
    node = {(x, y): f"{chr(65 + x)}{y + 1}" for x in range(wide) for y in range(high)}
    edges = [
        (node[x, y], node[other])
        for x, y in node
        for other in ((x + 1, y), (x, y + 1))
        if other in node
    ]
    write_table(folder / "roads.csv", ["u", "v"], edges)
    read = [name for (x, y), name in node.items() if (x + y) % 2 == 0]
    write_table(folder / "sensors.csv", ["sensor", "x"], [(name, name) for name in read])
    site = describe_site(
        "roads", graph=folder / "roads.csv", sensors=folder / "sensors.csv", rate=0.5, radius="1/20",
        **common,
    ).site  # fmt: skip
    cells = {site.cell(number): number for number in range(site.operator.space.size)}
    streets = [node[x, 2] for x in range(wide)] + [node[wide - 1, y] for y in range(3, high)]
    # Two rounds at every crossing.
    walk = tuple(cells[name] for name in streets for _ in range(2))
    return site, walk, {name: (float(x), float(y)) for (x, y), name in node.items()}
