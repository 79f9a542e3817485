from .estimators import (
    Estimate,
    constant,
    estimation_error,
    from_labels,
    least_squares,
    spectral,
    usvt,
)
from .holdout import guarded_fit

__all__ = [
    "Estimate",
    "constant",
    "estimation_error",
    "from_labels",
    "guarded_fit",
    "least_squares",
    "spectral",
    "usvt",
]
