from .plan import PlacementResult, SensorPlan, SharedCost
from .release import (
    KeyResult,
    LedgerResult,
    ReleasePrice,
    ReleaseResult,
    SimulationResult,
    SiteResult,
    UnsealedResult,
)

__all__ = [
    "KeyResult",
    "LedgerResult",
    "PlacementResult",
    "ReleasePrice",
    "ReleaseResult",
    "SensorPlan",
    "SharedCost",
    "SimulationResult",
    "SiteResult",
    "UnsealedResult",
]
