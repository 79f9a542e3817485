from .answer import Answer, CredibleRegion, on_cells, place_of
from .community import CommunityAnswer, communities, community_of
from .estimate import Estimate, distances_between, places_of
from .radius import default_radius
from .verify import Check, check

__all__ = [
    "Answer",
    "Check",
    "CommunityAnswer",
    "CredibleRegion",
    "Estimate",
    "check",
    "communities",
    "community_of",
    "default_radius",
    "distances_between",
    "on_cells",
    "place_of",
    "places_of",
]
