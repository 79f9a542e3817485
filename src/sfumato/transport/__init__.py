"""Earth mover's distance on any space, with certificates; EMD norm; tree bound."""

from sfumato.transport.bounds import normalized_error, tree_bound
from sfumato.transport.distance import emd, emd_norm
from sfumato.transport.on_points import emd_apart, emd_euclidean
from sfumato.transport.result import GridFlow, Plan, Transport

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
