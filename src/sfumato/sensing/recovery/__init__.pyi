from .answer import (
    Answer,
    CredibleRegion,
    Estimate,
    SourceBeliefs,
    SourceFit,
)
from .certified_error import ErrorCertificate, LaplaceNoise
from .certified_tree import TreeCertificate
from .community import CommunityAnswer, communities, community_of
from .error_bound import certify_error
from .merging import MergedReadings, merge
from .options import RecoveryOptions
from .radius import default_radius
from .verify import Check, check
from .verify_error import check_error

__all__ = [
    "Answer",
    "Check",
    "CommunityAnswer",
    "CredibleRegion",
    "ErrorCertificate",
    "Estimate",
    "LaplaceNoise",
    "MergedReadings",
    "RecoveryOptions",
    "SourceBeliefs",
    "SourceFit",
    "TreeCertificate",
    "certify_error",
    "check",
    "check_error",
    "communities",
    "community_of",
    "default_radius",
    "merge",
]
