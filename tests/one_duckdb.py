"""One DuckDB in a process: to start one takes as long as ten of a test's queries of a few rows."""

from __future__ import annotations

import functools
import os
from typing import Any

_anew = [False]


def always_anew(anew: bool) -> None:
    """Whether each connection starts its own after all: where engines are what is tested."""
    _anew[0] = anew


def start_once(backend: Any) -> None:
    """Let connections of Ibis to an empty DuckDB be further ones to the same, which see nothing of each other.

    What they hold are views that only their own connection sees. The folder to spill to is that of
    the first, which is made anew where it was removed.
    """
    if hasattr(backend.do_connect, "__wrapped__"):
        return
    connect_anew, kept = backend.do_connect, dict[Any, Any]()

    @functools.wraps(connect_anew)
    def connected(self: Any, database: Any = ":memory:", **more: Any) -> None:
        if _anew[0] or database != ":memory:" or more.get("read_only") or more.get("extensions"):
            connect_anew(self, database, **more)
            return
        # A fork has none of the threads of its parent's.
        settings = {name: value for name, value in more.items() if name != "temp_directory"}
        key = (os.getpid(), tuple(sorted(settings.items())))
        if key not in kept:
            connect_anew(self, database, **more)
            kept[key] = self.con
        self.con = kept[key].cursor()
        self._post_connect()

    backend.do_connect = connected
