from .average import combine
from .rounds import Track, track

__all__ = [
    "Track",
    "combine",
    "track",
]
