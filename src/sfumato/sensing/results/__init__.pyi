from .calibration import CalibrationResult
from .check import CheckResult
from .diagnostics import CommunityReport, FieldReport, MisfitReport, RecoveryDiagnostics
from .keys import KeyListing, KeyResult
from .plan import PlacementResult, SensorPlan, SharedCost
from .recovery import RecoveryResult, read_recovery
from .release import (
    LedgerResult,
    ReleasePrice,
    ReleaseResult,
    SimulationResult,
    SiteResult,
    UnsealedResult,
)
from .track import TrackedRound, TrackedSource, TrackResult, read_track
from .whisper import WhisperCommunity, WhisperResult, WhisperStart

__all__ = [
    "CalibrationResult",
    "CheckResult",
    "CommunityReport",
    "FieldReport",
    "KeyListing",
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
    "WhisperCommunity",
    "WhisperResult",
    "WhisperStart",
    "read_recovery",
    "read_track",
]
