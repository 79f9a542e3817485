"""A style that QGIS finds beside a .geojson of the same name: density in the colors of our pictures."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from sfumato.figures import TOPS, palette, round_number
from sfumato.heatmap.export.geojson import DENSITY, densities, polygons_of

if TYPE_CHECKING:
    from sfumato.heatmap.private_map import HeatmapRelease

CLASSES = 8
ALPHA = 0.8
NARROWEST = 1.5  # a class ends at least so many times above its begin
# An outline in the color of the fill, in millimetres: without one, smoothed edges leave seams between cells.
OUTLINE = 0.26
HEAD = b"<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"


def qgis_style(
    release: HeatmapRelease, level: int | None = None, *, every_cell: bool = False
) -> bytes:
    """A QML file: classes of density from the noise mark on, what is below it left transparent."""
    root = Xml.Element("qgis", version="3.28.0", styleCategories="Symbology|Rendering")
    renderer = Xml.SubElement(
        root, "renderer-v2", type="graduatedSymbol", attr=DENSITY, graduatedMethod="GraduatedColor",
        symbollevels="0", enableorderby="0", forceraster="0",
    )  # fmt: skip
    ranges, symbols = Xml.SubElement(renderer, "ranges"), Xml.SubElement(renderer, "symbols")
    breaks = class_breaks(release, level, every_cell=every_cell)
    colors = palette()
    unit = f"{release.measure.name} per km²"
    for number, (low, high) in enumerate(pairwise(breaks or [0.0, 1e300])):
        label = f"{_number(low)} - {_number(high)} {unit}" if breaks else "all of it may be noise"
        Xml.SubElement(
            ranges, "range", render="true", symbol=str(number), label=label, lower=repr(low), upper=repr(high),
        )  # fmt: skip
        shade = math.sqrt((low + high) / 2 / breaks[-1]) if breaks else 0.0
        color = ",".join(map(str, [*colors[round(255 * shade)].tolist(), 255]))
        filled = "solid" if breaks else "no"
        symbol = Xml.SubElement(symbols, "symbol", type="fill", name=str(number), alpha="1")
        layer = Xml.SubElement(
            symbol, "layer", {"class": "SimpleFill", "enabled": "1", "pass": "0"}
        )
        told = Xml.SubElement(layer, "Option", type="Map")
        for name, value in (
            ("color", color), ("style", filled),
            ("outline_color", color), ("outline_style", filled),
            ("outline_width", str(OUTLINE)), ("outline_width_unit", "MM"),
        ):  # fmt: skip
            Xml.SubElement(told, "Option", type="QString", name=name, value=value)
            Xml.SubElement(layer, "prop", k=name, v=value)  # for QGIS before 3.20
    # Of the layer and not of its symbols, whose outlines overlap.
    Xml.SubElement(root, "layerOpacity").text = str(ALPHA)
    Xml.SubElement(root, "layerGeometryType").text = "2"
    Xml.indent(root)
    return HEAD + bytes(Xml.tostring(root, encoding="utf-8")) + b"\n"


def class_breaks(
    release: HeatmapRelease, level: int | None = None, *, every_cell: bool = False
) -> list[float]:
    """Where classes of density begin and end: at the noise mark, then as shades of the picture do.

    None where nothing is above the mark.
    """
    area, amount = release.area, release.measure.scale * release.tiles.total
    cells = polygons_of(release, level, every_cell=every_cell).cells
    highest = max(float(densities(cells, area).max(initial=0.0)), 1e-9)
    top = round_number(highest, TOPS)
    across, up = area.cell_size
    # The mark is the same share of a square kilometre whatever the level of a cell.
    floor = release.noise.share(area.grid.levels, release.tiles.total)
    floor = min(floor, 1.0) * amount / (across * up / 1e6)
    if not floor < highest:
        return []
    steps = [top * (number / CLASSES) ** 2 for number in range(CLASSES)]
    return [floor, *(step for step in steps if step > NARROWEST * floor), top]


def _number(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.10g}"
