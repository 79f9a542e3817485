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
HEAD = b"<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"


def qgis_style(
    release: HeatmapRelease, level: int | None = None, *, every_cell: bool = False
) -> bytes:
    """A QML file: classes of density from the noise mark on, what is below it left transparent."""
    root = Xml.Element("qgis", version="3.28.0", styleCategories="Symbology")
    renderer = Xml.SubElement(
        root, "renderer-v2", type="graduatedSymbol", attr=DENSITY, graduatedMethod="GraduatedColor",
        symbollevels="0", enableorderby="0", forceraster="0",
    )  # fmt: skip
    ranges, symbols = Xml.SubElement(renderer, "ranges"), Xml.SubElement(renderer, "symbols")
    breaks = class_breaks(release, level, every_cell=every_cell)
    colors = palette()
    for number, (low, high) in enumerate(pairwise(breaks)):
        label = f"{_number(low)} - {_number(high)}"
        Xml.SubElement(
            ranges, "range", render="true", symbol=str(number), label=label, lower=repr(low), upper=repr(high),
        )  # fmt: skip
        shade = math.sqrt(min((low + high) / 2 / breaks[-1], 1.0))
        red, green, blue = colors[round(255 * shade)].tolist()
        symbol = Xml.SubElement(symbols, "symbol", type="fill", name=str(number), alpha=str(ALPHA))
        layer = Xml.SubElement(
            symbol, "layer", {"class": "SimpleFill", "enabled": "1", "pass": "0"}
        )
        told = Xml.SubElement(layer, "Option", type="Map")
        for name, value in (
            ("color", f"{red},{green},{blue},255"), ("style", "solid"), ("outline_style", "no"),
        ):  # fmt: skip
            Xml.SubElement(told, "Option", type="QString", name=name, value=value)
            Xml.SubElement(layer, "prop", k=name, v=value)  # for QGIS before 3.20
    Xml.SubElement(root, "layerGeometryType").text = "2"
    Xml.indent(root)
    return HEAD + bytes(Xml.tostring(root, encoding="utf-8")) + b"\n"


def class_breaks(
    release: HeatmapRelease, level: int | None = None, *, every_cell: bool = False
) -> list[float]:
    """Where classes of density begin and end: at the noise mark, then as shades of the picture do."""
    area, amount = release.area, release.measure.scale * release.tiles.total
    cells = polygons_of(release, level, every_cell=every_cell).cells
    top = round_number(max(float(densities(cells, area).max(initial=0.0)), 1e-9), TOPS)
    across, up = area.cell_size
    # The mark is the same share of a square kilometre whatever the level of a cell.
    floor = release.noise.share(area.grid.levels, release.tiles.total)
    floor = min(floor, 1.0) * amount / (across * up / 1e6)
    if not floor < top:  # nothing is above the mark
        return [top, 2 * top]
    steps = [top * (number / CLASSES) ** 2 for number in range(CLASSES + 1)]
    return [floor, *(step for step in steps if step > 1.05 * floor)]


def _number(value: float) -> str:
    return f"{float(f'{value:.3g}'):,g}"
