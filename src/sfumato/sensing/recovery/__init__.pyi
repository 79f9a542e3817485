from .answer import Answer, CredibleRegion, SourceBeliefs, SourceFit, on_cells, place_of
from .community import CommunityAnswer, communities, community_of
from .estimate import Estimate, distances_between, places_of
from .merging import MergedReadings, merge
from .radius import default_radius
from .verify import Check, check

__all__ = [
    "Answer",
    "Check",
    "CommunityAnswer",
    "CredibleRegion",
    "Estimate",
    "MergedReadings",
    "SourceBeliefs",
    "SourceFit",
    "check",
    "communities",
    "community_of",
    "default_radius",
    "distances_between",
    "merge",
    "on_cells",
    "place_of",
    "places_of",
]
