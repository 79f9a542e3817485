from .answer import on_cells, place_of
from .community import community_of
from .estimate import distances_between, places_of
from .radius import default_radius
from .verify import check

__all__ = [
    "check",
    "community_of",
    "default_radius",
    "distances_between",
    "on_cells",
    "place_of",
    "places_of",
]
