"""What is computed once for an operator, and goes when it goes: no part of it, so no pickle carries it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from sfumato.sensing.model.operators.protocol import Operator

T = TypeVar("T")

# By identity: to compare two operators may take longer than to compute anew.
_CACHE: dict[int, tuple[weakref.ref[Operator], dict[str, object]]] = {}


def cached(operator: Operator, name: str, make: Callable[[], T]) -> T:
    """What was made under this name for this very operator, made now if it was not."""
    key = id(operator)
    entry = _CACHE.get(key)
    if entry is None or entry[0]() is not operator:
        entry = weakref.ref(operator, lambda gone: _forget(key, gone)), {}
        _CACHE[key] = entry
    held = entry[1]
    if name not in held:
        held[name] = make()
    return cast(T, held[name])


def cached_by_key(
    operator: Operator, name: str, key: Hashable, make: Callable[[], T], *, most: int
) -> T:
    """What was made under this name for this operator and this key; the last so many keys are kept.

    Nothing is of a map that only its owner knows.
    """
    if not operator.constant:
        return make()
    held: dict[Hashable, T] = cached(operator, name, dict)
    if key not in held:
        if len(held) >= most:
            del held[next(iter(held))]
        held[key] = make()
    return held[key]


def afresh(operator: Operator) -> None:
    """Forget what was made for a map that only its owner knows: its data may have changed since."""
    if not operator.constant:
        _CACHE.pop(id(operator), None)


def _forget(key: int, gone: weakref.ref[Operator]) -> None:
    entry = _CACHE.get(key)
    if entry is not None and entry[0] is gone:  # the number may be another's by now
        del _CACHE[key]
