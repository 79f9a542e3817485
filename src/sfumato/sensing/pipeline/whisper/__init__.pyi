from .locate import find_whisper, simulate_whisper
from .plan import plan_whisper
from .release import release_whisper, whisper_cost

__all__ = [
    "find_whisper",
    "plan_whisper",
    "release_whisper",
    "simulate_whisper",
    "whisper_cost",
]
