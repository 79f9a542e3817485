from .figure import draw_recovery, draw_track, draw_whisper
from .recovery import recovery_lines, recovery_text
from .text import percent
from .track import track_lines, track_text
from .whisper import whisper_text

__all__ = [
    "draw_recovery",
    "draw_track",
    "draw_whisper",
    "percent",
    "recovery_lines",
    "recovery_text",
    "track_lines",
    "track_text",
    "whisper_text",
]
