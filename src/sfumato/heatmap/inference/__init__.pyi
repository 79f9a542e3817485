from .counts import NoisyCounts
from .map_posterior import MapPosterior
from .posterior import CountsPosterior
from .prior import Declared, Prior, read_prior, sharpened
from .tree_fit import objective, reconstruct

__all__ = [
    "CountsPosterior",
    "Declared",
    "MapPosterior",
    "NoisyCounts",
    "Prior",
    "objective",
    "read_prior",
    "reconstruct",
    "sharpened",
]
