from .tree_fit import objective, reconstruct
from .uncertainty import HEAVY, TIMES, Uncertainty, heaviest, in_a_ring, ring

__all__ = [
    "HEAVY",
    "TIMES",
    "Uncertainty",
    "heaviest",
    "in_a_ring",
    "objective",
    "reconstruct",
    "ring",
]
