from .bound import MIN_RUNS, lower_bound
from .delta_profile import profile
from .ratio import epsilon_lower_box, lower_limit

__all__ = [
    "MIN_RUNS",
    "epsilon_lower_box",
    "lower_bound",
    "lower_limit",
    "profile",
]
