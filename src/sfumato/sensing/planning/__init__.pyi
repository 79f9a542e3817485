from .design import AXES, CURVE_TRIALS, Axis, Curve, Design, error_curve, values_on
from .forecast import (
    ESTIMATORS,
    MOST,
    ErrorForecast,
    MadeUpMasses,
    RecoveryForecast,
    Scene,
    draw_lots,
    error_of,
    forecast_recovery,
)
from .limits import papers_radius_coverage
from .papers_tables import tables
from .placement import Placement, place_sensors, simulated_gain
from .ratio import Ratio
from .requirement import WANTED_TRIALS, Requirement, required
from .synthetic import (
    Ground,
    SyntheticOptions,
    block_graph,
    synthetic_even_site,
    synthetic_site,
    synthetic_sources,
)

__all__ = [
    "AXES",
    "CURVE_TRIALS",
    "ESTIMATORS",
    "MOST",
    "WANTED_TRIALS",
    "Axis",
    "Curve",
    "Design",
    "ErrorForecast",
    "Ground",
    "MadeUpMasses",
    "Placement",
    "Ratio",
    "RecoveryForecast",
    "Requirement",
    "Scene",
    "SyntheticOptions",
    "block_graph",
    "draw_lots",
    "error_curve",
    "error_of",
    "forecast_recovery",
    "papers_radius_coverage",
    "place_sensors",
    "required",
    "simulated_gain",
    "synthetic_even_site",
    "synthetic_site",
    "synthetic_sources",
    "tables",
    "values_on",
]
