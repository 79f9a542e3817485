from .check import CheckResult
from .diagnostics import CommunityReport, FieldReport, MisfitReport, RecoveryDiagnostics
from .recovery import RecoveryResult, read_recovery
from .track import TrackedRound, TrackedSource, TrackResult, read_track
from .whisper import WhisperCommunity, WhisperResult, WhisperStart

__all__ = [
    "CheckResult",
    "CommunityReport",
    "FieldReport",
    "MisfitReport",
    "RecoveryDiagnostics",
    "RecoveryResult",
    "TrackResult",
    "TrackedRound",
    "TrackedSource",
    "WhisperCommunity",
    "WhisperResult",
    "WhisperStart",
    "read_recovery",
    "read_track",
]
