from .network import UNIT, Spread, WhisperAnswers, bound_of, merged_answers

__all__ = [
    "UNIT",
    "Spread",
    "WhisperAnswers",
    "bound_of",
    "merged_answers",
]
