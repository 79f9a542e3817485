"""Where mass lives: Line, Grid and Graph, each a metric with neighbors; Area puts a grid in the world."""

from sfumato.spaces.area import Area, area_in_degrees, area_of_image, area_of_plane, part_of
from sfumato.spaces.graph import Graph
from sfumato.spaces.grid import Grid
from sfumato.spaces.line import Line
from sfumato.spaces.space import Space

__all__ = [
    "Area",
    "Graph",
    "Grid",
    "Line",
    "Space",
    "area_in_degrees",
    "area_of_image",
    "area_of_plane",
    "part_of",
]
