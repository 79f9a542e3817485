"""Engines speak of rows when they fail; callers hear one public sentence instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from sfumato.errors import InvalidInput, SfumatoError

T = TypeVar("T")


def quietly(work: Callable[[], T], message: str) -> T:
    """What work gives back, or InvalidInput with this message, which holds public facts only.

    An engine's own error or warning may quote a row: it is dropped, and not even kept as the cause.

    Args:
        work: What to do.
        message: What to say if it fails: public facts only.

    Returns:
        What the work gave.

    Raises:
        InvalidInput: The work failed in any way; sfumato's own errors pass as they are.

    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()
    except SfumatoError:
        raise
    except Exception:  # noqa: S110 - whatever an engine raises; the error below is raised outside, without a trace
        pass
    raise InvalidInput(message)
