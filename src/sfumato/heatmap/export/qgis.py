"""A style that QGIS finds beside a .geojson or .tif of the same name: density in the colors of our pictures.

QGIS looks for one name beside both, so that one file has a style of polygons and one of rasters:
each kind of layer reads its own.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from sfumato.figures import TOPS, palette, round_number
from sfumato.heatmap.export.geojson import DENSITY, densities, polygons_of
from sfumato.heatmap.tiles import FINEST_IMAGE

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
    unit = f"{release.measure.name} per km²"
    for number, (low, high) in enumerate(pairwise(breaks or [0.0, 1e300])):
        label = f"{_number(low)} - {_number(high)} {unit}" if breaks else "all of it may be noise"
        Xml.SubElement(
            ranges, "range", render="true", symbol=str(number), label=label, lower=repr(low), upper=repr(high),
        )  # fmt: skip
        color = ",".join(map(str, [*_color(low, high, breaks[-1]), 255])) if breaks else "0,0,0,0"
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
    _raster(root, release, level)
    Xml.indent(root)
    return HEAD + bytes(Xml.tostring(root, encoding="utf-8")) + b"\n"


def class_breaks(
    release: HeatmapRelease, level: int | None = None, *, every_cell: bool = False
) -> list[float]:
    """Where classes of density begin and end: at the noise mark, then as shades of the picture do.

    None where nothing is above the mark.
    """
    cells = polygons_of(release, level, every_cell=every_cell).cells
    return _breaks(release, float(densities(cells, release.area).max(initial=0.0)))


def raster_breaks(release: HeatmapRelease, level: int | None = None) -> tuple[list[float], float]:
    """The same of the shares in a GeoTIFF, and the density of a share of 1."""
    area = release.area
    chosen = min(area.grid.levels, FINEST_IMAGE) if level is None else level
    across, up = (length * 2.0 ** (area.grid.levels - chosen) for length in area.cell_size)
    amount = release.measure.scale * release.tiles.total
    times = amount / (across * up / 1e6)
    return _breaks(release, float(release.image(chosen).max(initial=0.0)) * times), times


def _breaks(release: HeatmapRelease, highest: float) -> list[float]:
    area, amount = release.area, release.measure.scale * release.tiles.total
    top = round_number(max(highest, 1e-9), TOPS)
    across, up = area.cell_size
    # The mark is the same share of a square kilometre whatever the level of a cell.
    floor = release.noise.share(area.grid.levels, release.tiles.total)
    floor = min(floor, 1.0) * amount / (across * up / 1e6)
    if not floor < highest:
        return []
    steps = [top * (number / CLASSES) ** 2 for number in range(CLASSES)]
    return [floor, *(step for step in steps if step > NARROWEST * floor), top]


def _raster(root: Xml.Element, release: HeatmapRelease, level: int | None) -> None:
    """The style of a GeoTIFF: its shares, where QGIS would take three rasters for red, green, blue."""
    breaks, times = raster_breaks(release, level)
    renderer = Xml.SubElement(
        Xml.SubElement(root, "pipe"), "rasterrenderer", type="singlebandpseudocolor", band="1",
        opacity=str(ALPHA), alphaBand="-1", nodataColor="",
    )  # fmt: skip
    shader = Xml.SubElement(
        Xml.SubElement(renderer, "rastershader"), "colorrampshader", colorRampType="DISCRETE",
        classificationMode="1", clip="0",
    )  # fmt: skip
    unit = f"{release.measure.name} per km²"
    none = repr(breaks[0] / times) if breaks else "inf"
    said = "may be noise" if breaks else "all of it may be noise"
    Xml.SubElement(shader, "item", value=none, color="#ffffff", alpha="0", label=said)
    for low, high in pairwise(breaks):
        color = "#{:02x}{:02x}{:02x}".format(*_color(low, high, breaks[-1]))
        label = f"{_number(low)} - {_number(high)} {unit}"
        Xml.SubElement(
            shader, "item", value=repr(high / times), color=color, alpha="255", label=label
        )


def _color(low: float, high: float, top: float) -> list[int]:
    return [int(part) for part in palette()[round(255 * math.sqrt((low + high) / 2 / top))]]


def _number(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.10g}"
