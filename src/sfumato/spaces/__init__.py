"""Where mass lives: Line, Grid, Graph, Points, each a metric with neighbors; Area sets a grid on earth."""

from sfumato.spaces.area import Area, area_in_degrees, area_of_image, area_of_plane, part_of
from sfumato.spaces.graph import Graph
from sfumato.spaces.grid import Grid
from sfumato.spaces.line import Line
from sfumato.spaces.points import Points
from sfumato.spaces.space import Space

__all__ = [
    "Area",
    "Graph",
    "Grid",
    "Line",
    "Points",
    "Space",
    "area_in_degrees",
    "area_of_image",
    "area_of_plane",
    "part_of",
]
