from .check import CheckResult
from .diagnostics import CommunityReport, FieldReport, MisfitReport, RecoveryDiagnostics
from .plan import PlacementResult, SensorPlan, SharedCost
from .recovery import RecoveryResult, read_recovery
from .release import (
    KeyResult,
    LedgerResult,
    ReleasePrice,
    ReleaseResult,
    SimulationResult,
    SiteResult,
    UnsealedResult,
)
from .track import TrackedRound, TrackedSource, TrackResult, read_track
from .verdict import Verdict
from .whisper import WhisperCommunity, WhisperResult, WhisperStart

__all__ = [
    "CheckResult",
    "CommunityReport",
    "FieldReport",
    "KeyResult",
    "LedgerResult",
    "MisfitReport",
    "PlacementResult",
    "RecoveryDiagnostics",
    "RecoveryResult",
    "ReleasePrice",
    "ReleaseResult",
    "SensorPlan",
    "SharedCost",
    "SimulationResult",
    "SiteResult",
    "TrackResult",
    "TrackedRound",
    "TrackedSource",
    "UnsealedResult",
    "Verdict",
    "WhisperCommunity",
    "WhisperResult",
    "WhisperStart",
    "read_recovery",
    "read_track",
]
