"""Earth mover's distance on any space, with certificates; EMD norm; tree bound."""

from sfumato.transport.bounds import normalized_error, tree_bound
from sfumato.transport.distance import emd, emd_norm
from sfumato.transport.on_points import emd_euclidean
from sfumato.transport.result import GridFlow, Plan, SolverFailed, Transport

__all__ = [
    "GridFlow",
    "Plan",
    "SolverFailed",
    "Transport",
    "emd",
    "emd_euclidean",
    "emd_norm",
    "normalized_error",
    "tree_bound",
]
