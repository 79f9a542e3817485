from .answers import UNIT, WhisperAnswers, bound_of, read_whisper, whisper_release
from .posterior import WhisperPosterior, start_loss, whisper_posterior
from .spread import Spread, whisper_cascade, whisper_spread

__all__ = [
    "UNIT",
    "Spread",
    "WhisperAnswers",
    "WhisperPosterior",
    "bound_of",
    "read_whisper",
    "start_loss",
    "whisper_cascade",
    "whisper_posterior",
    "whisper_release",
    "whisper_spread",
]
