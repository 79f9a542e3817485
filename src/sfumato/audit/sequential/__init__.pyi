from .bet import Look
from .budget import Budget
from .refutation import refute

__all__ = [
    "Budget",
    "Look",
    "refute",
]
