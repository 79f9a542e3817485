from .average import combine
from .cost import losses_of
from .rounds import Track, track

__all__ = [
    "Track",
    "combine",
    "losses_of",
    "track",
]
