from .calibration import CalibrationResult
from .check import CheckResult
from .diagnostics import CommunityReport, FieldReport, MisfitReport, RecoveryDiagnostics
from .keys import KeyListing, KeyResult
from .mass_by_place import ToldPlace, told_places
from .plan import PlacementResult, SensorPlan, SharedCost
from .recovered_rounds import RecoveredRound, RecoveredRounds, read_recovered_rounds
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
from .verdict import Verdict
from .whisper import (
    SimulatedWhisper,
    WhisperCommunity,
    WhisperCost,
    WhisperResult,
    WhisperStart,
)
from .whisper_plan import WhisperPlan

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
    "RecoveredRound",
    "RecoveredRounds",
    "RecoveryDiagnostics",
    "RecoveryResult",
    "ReleasePrice",
    "ReleaseResult",
    "SensorPlan",
    "SharedCost",
    "SimulatedWhisper",
    "SimulationResult",
    "SiteResult",
    "ToldPlace",
    "TrackResult",
    "TrackedRound",
    "TrackedSource",
    "UnsealedResult",
    "Verdict",
    "WhisperCommunity",
    "WhisperCost",
    "WhisperPlan",
    "WhisperResult",
    "WhisperStart",
    "read_recovered_rounds",
    "read_recovery",
    "read_track",
    "told_places",
]
