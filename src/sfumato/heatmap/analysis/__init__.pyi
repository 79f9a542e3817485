from .blur import smooth
from .forecasts import (
    BLUR,
    FORMAT,
    LEVELS,
    USUAL_USERS,
    Expected,
    Forecast,
    Kind,
    Line,
    Requirement,
    forecast,
    forecast_table,
    required_epsilon,
    required_users,
)
from .metrics import compare, emd_share
from .quality import GROWS, METRICS, Metric
from .theory import packing_lower_bound

__all__ = [
    "BLUR",
    "FORMAT",
    "GROWS",
    "LEVELS",
    "METRICS",
    "USUAL_USERS",
    "Expected",
    "Forecast",
    "Kind",
    "Line",
    "Metric",
    "Requirement",
    "compare",
    "emd_share",
    "forecast",
    "forecast_table",
    "packing_lower_bound",
    "required_epsilon",
    "required_users",
    "smooth",
]
