"""What parameters of the bounds and learners must be."""

from __future__ import annotations

from sfumato.errors import InvalidParameter


def require(holds: bool, rule: str, value: object) -> None:
    """Refuse a parameter that breaks a rule, before anything is computed with it."""
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}; nothing was computed")
