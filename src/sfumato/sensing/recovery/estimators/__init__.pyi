from .credible import bands
from .least_mass import recover
from .min_radius import recover_min_radius
from .mixture import Mixture
from .off_grid import OffGrid
from .posterior_cells import MAX_CELLS
from .registry import (
    Estimator,
    RecoveryProblem,
    estimator_named,
    estimator_names,
    register_estimator,
    unregister_estimator,
)
from .source_posterior import SourcePosterior

__all__ = [
    "MAX_CELLS",
    "Estimator",
    "Mixture",
    "OffGrid",
    "RecoveryProblem",
    "SourcePosterior",
    "bands",
    "estimator_named",
    "estimator_names",
    "recover",
    "recover_min_radius",
    "register_estimator",
    "unregister_estimator",
]
