"""What the numbers at a color scale are: people to a square kilometre, or shares of the map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.private_map import HeatmapRelease

LegendKind = Literal["density", "share"]
MEGA = 1_000_000  # square metres in a square kilometre, pixels in a megapixel
# A cell of a map may be so many times as large as one in its middle: then "to a square kilometre"
# is said of all of them.
UNEVEN = 1.05


@dataclass(frozen=True, slots=True)
class Legend:
    """The words at a color scale, and what a share of 1 in one cell is in its numbers.

    Attributes:
        words: What the numbers are of.
        amount: What a share of 1 is; None for shares, which are said in per cent.

    """

    words: str
    amount: float | None = None


def legend_of(release: HeatmapRelease, level: int, kind: LegendKind = "density") -> Legend:
    """The legend of a map whose cells are of a level.

    On the ground, people to a square kilometre (to a megapixel of an image); where cells of one map
    differ in size by more than a few per cent, or have no unit, people in a cell. A map of nobody
    has shares only.
    """
    measure, total = release.measure, release.tiles.total
    cell = f"in a cell of {cell_text(release.area, level)}"
    if kind == "share" or not total > 0:
        return Legend(f"share of all {measure.name} {cell}")
    per = per_unit(release.area, level)
    amount = measure.scale * total
    if per is None:
        return Legend(f"{measure.name} {cell}", amount)
    unit, size = per
    return Legend(f"{measure.name} per {unit}", amount / size)


def check_legend(kind: str) -> None:
    """Refuse a kind of legend that there is not."""
    if kind not in get_args(LegendKind):
        raise InvalidParameter(
            f"`legend` is one of {', '.join(get_args(LegendKind))}, got {kind!r}; nothing was written"
        )


def per_unit(area: Area, level: int) -> tuple[str, float] | None:
    """The unit that densities of an area are said in, and how many of it a cell is; None if there is none."""
    across, up = area.cell_size
    size = across * up * 4.0 ** (area.grid.levels - level) / MEGA
    if area.kind == "pixels":
        return "megapixel", size
    if area.unit != "m" or unevenness(area) > UNEVEN:
        return None
    return "km²", size


def unevenness(area: Area) -> float:
    """How many times as large as in the middle a cell is on the ground at an edge, or as small."""
    _, low_y, _, high_y = area.bounds
    if area.kind == "degrees":
        middle = math.cos(math.radians((low_y + high_y) / 2))
        edges = [math.cos(math.radians(y)) / middle for y in (low_y, high_y)]
    else:
        edges = [(one / area.metre) ** 2 for one in _metres(area)]
    return max(max(one, 1 / max(one, 1e-9)) for one in (1.0, *edges))


def _metres(area: Area) -> list[float]:
    """Metres to a step at the low and the high edge of a map in a reference system, as far as is known."""
    from sfumato.heatmap.reference_systems import ReferenceSystem

    low_x, low_y, high_x, high_y = area.bounds
    thin = (high_y - low_y) / 1000
    strips = ((low_x, low_y, high_x, low_y + thin), (low_x, high_y - thin, high_x, high_y))
    try:  # a map that is paid for is drawn without pyproj too
        system = ReferenceSystem.named(area.crs)
        return [] if system is None else [system.metre(strip) for strip in strips]
    except SfumatoError:
        return []


def cell_text(area: Area, level: int) -> str:
    """The size of a cell on the ground in words.

    At the middle latitude, for degrees.
    """
    unit = area.unit
    lengths = [length * 2 ** (area.grid.levels - level) for length in area.cell_size]
    if unit == "m" and max(lengths) >= 10_000:
        unit, lengths = "km", [length / 1000 for length in lengths]
    across, up = (f"{float(f'{length:.3g}'):,g}" for length in lengths)
    return f"{across} × {up} {unit}".strip()
