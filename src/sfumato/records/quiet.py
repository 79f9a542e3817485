"""Engines speak of rows when they fail; callers hear one public sentence instead."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from sfumato.errors import InvalidInput, SfumatoError

T = TypeVar("T")


EVERY = ("ignore", re.compile("(?s:.*)"), Warning, None, 0)
"""A filter of any text of a warning; nobody else's is written so."""


class _Silence:
    """No warnings while any thread is inside.

    Filters of warnings are those of the whole process. Threads that each save and restore them by
    `warnings.catch_warnings` end one another's silence, or leave it behind for good: so the first
    to come in adds one filter, and the last to go takes it away, from the list that it was added
    to and from the one that is in force: other code may have put that in its place, and will put
    the first one back.
    """

    def __init__(self) -> None:
        self._guard, self._inside = threading.Lock(), 0
        self._filters: Any = []

    def __enter__(self) -> None:
        with self._guard:
            if not self._inside:
                # Into the list itself: by `filterwarnings` it might be another one by then.
                self._filters = warnings.filters
                self._filters.insert(0, EVERY)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._inside -= 1
            if not self._inside:
                now: Any = warnings.filters
                for held in (self._filters, now):
                    if EVERY in held:
                        held.remove(EVERY)


_SILENCE = _Silence()


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
        with _SILENCE:
            return work()
    except SfumatoError:
        raise
    except Exception:  # noqa: S110 - whatever an engine raises; the error below is raised outside, without a trace
        pass
    raise InvalidInput(message)
