from ._apart import Norm
from .area import DEGREE, Area, Bounds, area_in_degrees, area_of_image, area_of_plane, part_of
from .clusters import (
    kmeans,
    leading_eigenvectors,
    numbered_by_first,
    regularised_laplacian,
)
from .codec import register_space, space_from_json
from .graph import Graph
from .grid import MAX_LEVELS, Grid
from .hashes import hashed
from .line import Line
from .points import Points
from .space import Space

__all__ = [
    "DEGREE",
    "MAX_LEVELS",
    "Area",
    "Bounds",
    "Graph",
    "Grid",
    "Line",
    "Norm",
    "Points",
    "Space",
    "area_in_degrees",
    "area_of_image",
    "area_of_plane",
    "hashed",
    "kmeans",
    "leading_eigenvectors",
    "numbered_by_first",
    "part_of",
    "register_space",
    "regularised_laplacian",
    "space_from_json",
]
