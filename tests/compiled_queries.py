"""Queries that were compiled before in this process: the same expression is the same text."""

from __future__ import annotations

import functools
from typing import Any

KEPT = 512
_anew = [False]


def always_anew(anew: bool) -> None:
    """Whether queries are compiled each time after all: where engines are what is tested."""
    _anew[0] = anew


def compile_once(backend: Any) -> None:
    """Let a class of SQL backends keep the text of each expression, whatever table it is bound to."""
    if hasattr(backend.compile, "__wrapped__"):
        return
    compile_anew, kept = backend.compile, dict[Any, str]()

    @functools.wraps(compile_anew)
    def compiled(self: Any, expr: Any, /, **more: Any) -> str:
        if _anew[0]:
            return str(compile_anew(self, expr, **more))
        # Another database with the same names and types: its connection says nothing of the text.
        key = (type(self), type(self.compiler), expr.unbind().op(), tuple(sorted(more.items())))
        try:
            found = kept.get(key)
        except TypeError:  # a parameter that cannot be hashed
            return str(compile_anew(self, expr, **more))
        if found is None:
            if len(kept) >= KEPT:
                kept.clear()
            found = kept[key] = compile_anew(self, expr, **more)
        return found

    backend.compile = compiled
