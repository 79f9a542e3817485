from .answer import Answer, CredibleRegion, SourceBeliefs, SourceFit, on_cells, place_of
from .certificate import Recovery
from .community import CommunityAnswer, communities, community_of
from .distance import emd_of
from .estimate import Estimate, distances_between, places_of
from .estimators.credible import bands, community_beliefs
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
    "Recovery",
    "SourceBeliefs",
    "SourceFit",
    "bands",
    "check",
    "communities",
    "community_beliefs",
    "community_of",
    "default_radius",
    "distances_between",
    "emd_of",
    "merge",
    "on_cells",
    "place_of",
    "places_of",
]
