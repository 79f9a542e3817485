from .bound import LEAST_RUNS, LowerBound, lower_bound
from .delta_profile import DeltaBand, profile
from .ratio import epsilon_lower_box, lower_limit, upper_limit

__all__ = [
    "LEAST_RUNS",
    "DeltaBand",
    "LowerBound",
    "epsilon_lower_box",
    "lower_bound",
    "lower_limit",
    "profile",
    "upper_limit",
]
