from .average import combine
from .cost import cost_of, losses_of
from .rounds import Track, track

__all__ = [
    "Track",
    "combine",
    "cost_of",
    "losses_of",
    "track",
]
