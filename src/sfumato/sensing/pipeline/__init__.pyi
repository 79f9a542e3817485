from .check import check_recovery
from .inputs import true_sources
from .recover import RecoveryOptions, recover_sources
from .track import track_sources
from .whisper import (
    SimulatedWhisper,
    WhisperCost,
    find_whisper,
    release_whisper,
    simulate_whisper,
    whisper_cost,
)

__all__ = [
    "RecoveryOptions",
    "SimulatedWhisper",
    "WhisperCost",
    "check_recovery",
    "find_whisper",
    "recover_sources",
    "release_whisper",
    "simulate_whisper",
    "track_sources",
    "true_sources",
    "whisper_cost",
]
