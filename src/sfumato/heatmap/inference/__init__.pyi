from .counts import NoisyCounts
from .map_posterior import MapPosterior
from .noise_floor import noise_share
from .posterior import CountsPosterior
from .prior import Declared, Prior, read_prior, sharpened
from .tree_fit import objective, reconstruct
from .uncertainty import (
    HEAVY,
    TIMES,
    MapBand,
    Mark,
    Uncertainty,
    heaviest,
    in_a_ring,
    ring,
)

__all__ = [
    "HEAVY",
    "TIMES",
    "CountsPosterior",
    "Declared",
    "MapBand",
    "MapPosterior",
    "Mark",
    "NoisyCounts",
    "Prior",
    "Uncertainty",
    "heaviest",
    "in_a_ring",
    "noise_share",
    "objective",
    "read_prior",
    "reconstruct",
    "ring",
    "sharpened",
]
