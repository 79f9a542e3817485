from .answer import (
    Answer,
    CredibleRegion,
    Estimate,
    SourceBeliefs,
    SourceFit,
)
from .community import CommunityAnswer, communities, community_of
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
    "merge",
]
