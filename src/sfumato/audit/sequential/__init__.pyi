from .bet import Budget, Look
from .refutation import refute

__all__ = [
    "Budget",
    "Look",
    "refute",
]
