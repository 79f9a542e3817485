"""How many of a thing there are, in words."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """How many of a thing there are, as one says it.

    >>> counted(1, "round"), counted(2, "round"), counted(0, "round")
    ('1 round', '2 rounds', '0 rounds')
    """
    return f"{count} {thing}{'s' * (count != 1)}"
