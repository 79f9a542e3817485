from .common_map import common_counts
from .counts import NoisyCounts
from .map_posterior import MapPosterior
from .partial_pooling import PooledPosterior, pool_counts
from .posterior import CountsPosterior
from .prior import Declared, Prior, read_prior, sharpened
from .tree_fit import objective, reconstruct

__all__ = [
    "CountsPosterior",
    "Declared",
    "MapPosterior",
    "NoisyCounts",
    "PooledPosterior",
    "Prior",
    "common_counts",
    "objective",
    "pool_counts",
    "read_prior",
    "reconstruct",
    "sharpened",
]
