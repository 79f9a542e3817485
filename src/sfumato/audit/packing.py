"""Values of a verdict as JSON that says of which kind they are: data of known kinds, never code.

Reading a file runs nothing, and a kind that is not known is refused.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import fields
from typing import Any

import numpy as np

from sfumato.audit.fixed.events import Candidate
from sfumato.audit.fixed.features import Features
from sfumato.audit.fixed.scorers import Column, ColumnTable, Logistic, RowTable
from sfumato.errors import InvalidInput

KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Candidate, Column, RowTable, ColumnTable, Logistic, Features)
}
"""What an event may be made of."""
SMALL = 64
"""Arrays up to this size are written as numbers that people can read, larger ones as their bytes."""


def pack(value: Any) -> Any:
    """A value as JSON that says of which kind it is: numbers, text, lists, arrays, and parts of events.

    >>> pack((1, [0.5, float("inf")]))
    {'tuple': [1, [0.5, {'float': 'inf'}]]}
    """
    match value:
        case np.ndarray() | np.generic():
            return _array(np.asarray(value))
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case list():
            return [pack(part) for part in value]
        case tuple():
            return {"tuple": [pack(part) for part in value]}
        case dict():
            return {"dict": [[pack(key), pack(part)] for key, part in value.items()]}
        case _ if KINDS.get(type(value).__name__) is type(value):
            inside = {field.name: pack(getattr(value, field.name)) for field in fields(value)}
            return {"kind": type(value).__name__, "fields": inside}
        case _:
            raise InvalidInput(
                f"a verdict holds numbers, text, lists, arrays and events of known kinds, got a "
                f"{type(value).__name__}; nothing was written"
            )


def unpack(data: Any) -> Any:
    """The value that was packed; a kind that is not known is refused.

    >>> unpack(pack((1, [0.5, float("inf")])))
    (1, [0.5, inf])
    """
    match data:
        case None | bool() | int() | float() | str():
            return data
        case list():
            return [unpack(part) for part in data]
        case {"float": text}:
            return float(text)
        case {"tuple": parts}:
            return tuple(unpack(part) for part in parts)
        case {"dict": parts}:
            return {unpack(key): unpack(part) for key, part in parts}
        case {"array": dtype, "shape": shape}:
            return _read_array(dtype, shape, data)
        case {"kind": str(name), "fields": dict(inside)}:
            if name not in KINDS:
                raise InvalidInput(
                    f"this version knows no {name!r}, only {', '.join(KINDS)}; nothing was run"
                )
            if set(inside) != {field.name for field in fields(KINDS[name])}:
                raise InvalidInput(
                    f"a {name} has other parts than {', '.join(inside)}; nothing was run"
                )
            return KINDS[name](**{part: unpack(packed) for part, packed in inside.items()})
        case _:
            raise InvalidInput(
                f"this is of no known kind: {json.dumps(data)[:80]}; nothing was run"
            )


def _array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.dtype.kind not in "biufU":
        raise InvalidInput(
            f"arrays of a verdict hold numbers or text, got {array.dtype}; nothing was written"
        )
    head = {"array": array.dtype.str, "shape": list(array.shape)}
    if array.size <= SMALL and (array.dtype.kind != "f" or np.isfinite(array).all()):
        return {**head, "values": array.ravel().tolist()}
    return {**head, "bytes": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def _read_array(dtype: Any, shape: Any, held: dict[str, Any]) -> Any:
    kind = np.dtype(str(dtype))
    if kind.kind not in "biufU":
        raise InvalidInput(f"arrays of a verdict hold numbers or text, got {kind}; nothing was run")
    if "values" in held:
        flat = np.array(held["values"], dtype=kind)
    else:
        flat = np.frombuffer(base64.b64decode(held["bytes"], validate=True), dtype=kind)
    found = flat.reshape(shape)
    return found[()] if found.ndim == 0 else found
