from .credible import bands, community_beliefs
from .heat_scene import scene_of
from .least_mass import recover
from .min_radius import recover_min_radius
from .mixture import Mixture
from .off_grid import OffGrid
from .posterior_cells import MOST_CELLS, runs_needed
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
    "MOST_CELLS",
    "Estimator",
    "Mixture",
    "OffGrid",
    "RecoveryProblem",
    "SourcePosterior",
    "bands",
    "community_beliefs",
    "estimator_named",
    "estimator_names",
    "recover",
    "recover_min_radius",
    "register_estimator",
    "runs_needed",
    "scene_of",
    "unregister_estimator",
]
