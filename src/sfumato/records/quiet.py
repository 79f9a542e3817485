"""Engines speak of rows when they fail; callers hear one public sentence instead."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import TypeVar

from sfumato.errors import InvalidInput, SfumatoError

T = TypeVar("T")


class _Silence:
    """No warnings while any thread is inside.

    Filters of warnings are those of the whole process. Threads that each save and restore them by
    `warnings.catch_warnings` end one another's silence, or leave it behind for good: so the first
    to come in saves them, and the last to go restores them.
    """

    def __init__(self) -> None:
        self._guard, self._inside = threading.Lock(), 0
        self._saved = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._guard:
            if not self._inside:
                self._saved = warnings.catch_warnings()
                self._saved.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._inside -= 1
            if not self._inside:
                self._saved.__exit__(None, None, None)


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
