from .bet import Budget, Look
from .betting import MOST_EPSILON
from .refutation import refute

__all__ = [
    "MOST_EPSILON",
    "Budget",
    "Look",
    "refute",
]
