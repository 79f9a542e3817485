from .area import Area, area_in_degrees, area_of_image, area_of_plane, part_of
from .graph import Graph
from .grid import Grid
from .line import Line
from .points import Points
from .space import Space

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
