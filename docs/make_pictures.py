"""Draw the pictures of the explanations: `python docs/make_pictures.py`. Same code, same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato.figures import arrows, flow_field
from sfumato.spaces import Grid
from sfumato.transport import GridFlow, emd

HERE = Path(__file__).parent / "pictures"
PEOPLE = 10_000
LEVELS = 6


def town(quarters: list[tuple[float, float, float, float]]) -> npt.NDArray[np.float64]:
    """People per cell of a made-up town; each quarter has a share of them, a place and a width."""
    at = (np.arange(1 << LEVELS) + 0.5) / (1 << LEVELS)
    spread = sum(
        share / width**2 * np.exp(-((at[None, :] - x) ** 2 + (at[:, None] - y) ** 2) / (2 * width**2))
        for share, x, y, width in quarters
    )
    return np.asarray(PEOPLE * spread / np.sum(spread))


def flow() -> bytes:
    """A town by night and by day: most go to work in the east, some to the market in the south."""
    night = town([(0.45, 0.25, 0.70, 0.09), (0.30, 0.30, 0.30, 0.07), (0.25, 0.75, 0.60, 0.10)])
    day = town([(0.15, 0.25, 0.70, 0.09), (0.30, 0.50, 0.20, 0.06), (0.55, 0.75, 0.60, 0.08)])
    found = emd(night, day, Grid(LEVELS), flow=True)
    if not isinstance(found.flow, GridFlow):
        raise TypeError("a grid has a grid flow")
    field = arrows(found.flow.east, found.flow.north, night.shape)
    return flow_field(
        night,
        day,
        found.flow.east,
        found.flow.north,
        caption=f"{PEOPLE:,} made-up people move {found.value / PEOPLE:.3f} of the town's side on average: "
        "no plan can do with less",
        unit="people per cell",
        top=32,
        longest=float(field.mass.max()),
        names=("by night", "by day"),
    )


PICTURES = {"flow.png": flow}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / name).write_bytes(draw())
