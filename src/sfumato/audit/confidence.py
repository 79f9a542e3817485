"""The check of a confidence, before anything heavy is read or run."""

from __future__ import annotations

from sfumato.errors import InvalidParameter


def check_confidence(confidence: float, *, above: float = 0.0) -> None:
    """Refuse what is no confidence, before anything is run.

    Args:
        confidence: The chance asked for.
        above: What it must exceed; testers by majority need more than one half.

    Raises:
        InvalidParameter: It is not between `above` and 1.

    """
    if not above < float(confidence) < 1:
        raise InvalidParameter(
            f"confidence must be between {above:g} and 1, got {confidence}; nothing was run"
        )
