from .readings import FORMAT, quantise, read_readings
from .rounds import DAY, RoundsCost, cost_after, share_of

__all__ = [
    "DAY",
    "FORMAT",
    "RoundsCost",
    "cost_after",
    "quantise",
    "read_readings",
    "share_of",
]
