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
    Needed,
    epsilon_needed,
    forecast,
    forecast_table,
    users_needed,
)
from .metrics import compare, emd_share

__all__ = [
    "BLUR",
    "FORMAT",
    "LEVELS",
    "USUAL_USERS",
    "Expected",
    "Forecast",
    "Kind",
    "Line",
    "Needed",
    "compare",
    "emd_share",
    "epsilon_needed",
    "forecast",
    "forecast_table",
    "smooth",
    "users_needed",
]
