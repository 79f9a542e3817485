from .design import AXES, CURVE_TRIALS, Axis, Curve, Design
from .forecast import (
    ESTIMATORS,
    MAX_TRIALS,
    ErrorForecast,
    RecoveryForecast,
    Scene,
    SyntheticMasses,
    draw_trials,
    error_of,
    forecast_recovery,
)
from .limits import (
    LowerBound,
    RecoveryBound,
    papers_radius_coverage,
    private_recovery_bound,
    recovery_bound,
    recovery_lower_bound,
    two_point_lower_bound,
)
from .noise_choice import NoiseChoice, choose_noise
from .noise_weights import NoiseEach, noise_each
from .papers_bounds import PapersBounds
from .placement import Placement, PlacementGain
from .ratio import ErrorRatio, Ratio
from .requirement import TARGET_TRIALS, Requirement, required
from .synthetic import (
    Ground,
    SyntheticOptions,
    block_graph,
    synthetic_site,
    synthetic_sources,
)

__all__ = [
    "AXES",
    "CURVE_TRIALS",
    "ESTIMATORS",
    "MAX_TRIALS",
    "TARGET_TRIALS",
    "Axis",
    "Curve",
    "Design",
    "ErrorForecast",
    "ErrorRatio",
    "Ground",
    "LowerBound",
    "NoiseChoice",
    "NoiseEach",
    "PapersBounds",
    "Placement",
    "PlacementGain",
    "Ratio",
    "RecoveryBound",
    "RecoveryForecast",
    "Requirement",
    "Scene",
    "SyntheticMasses",
    "SyntheticOptions",
    "block_graph",
    "choose_noise",
    "draw_trials",
    "error_of",
    "forecast_recovery",
    "noise_each",
    "papers_radius_coverage",
    "private_recovery_bound",
    "recovery_bound",
    "recovery_lower_bound",
    "required",
    "synthetic_site",
    "synthetic_sources",
    "two_point_lower_bound",
]
