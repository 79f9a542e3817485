from .locate import SimulatedWhisper, find_whisper, simulate_whisper
from .release import WhisperCost, release_whisper, whisper_cost

__all__ = [
    "SimulatedWhisper",
    "WhisperCost",
    "find_whisper",
    "release_whisper",
    "simulate_whisper",
    "whisper_cost",
]
