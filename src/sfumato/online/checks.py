"""What parameters of the bounds and learners must be, and how many of a thing there are, in words."""

from __future__ import annotations

from sfumato.errors import InvalidParameter


def require(holds: bool, rule: str, value: object) -> None:
    """Refuse a parameter that breaks a rule, before anything is computed with it."""
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}; nothing was computed")


def counted(count: int, thing: str) -> str:
    """How many of a thing there are, as one says it.

    >>> counted(1, "round"), counted(2, "round"), counted(0, "round")
    ('1 round', '2 rounds', '0 rounds')
    """
    return f"{count} {thing}{'s' * (count != 1)}"
