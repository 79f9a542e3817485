from .locate import SimulatedWhisper, find_whisper, simulate_whisper
from .plan import plan_whisper
from .release import WhisperCost, release_whisper, whisper_cost

__all__ = [
    "SimulatedWhisper",
    "WhisperCost",
    "find_whisper",
    "plan_whisper",
    "release_whisper",
    "simulate_whisper",
    "whisper_cost",
]
