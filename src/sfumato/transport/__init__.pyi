from .bounds import normalized_error, tree_bound
from .distance import emd, emd_norm
from .points import emd_apart, emd_euclidean
from .result import GridFlow, Plan, Transport

__all__ = [
    "GridFlow",
    "Plan",
    "Transport",
    "emd",
    "emd_apart",
    "emd_euclidean",
    "emd_norm",
    "normalized_error",
    "tree_bound",
]
