"""Spaces from JSON: the inverse of their `to_json`, and where another kind is made known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.spaces.graph import Graph
from sfumato.spaces.grid import Grid
from sfumato.spaces.line import Line
from sfumato.spaces.points import Points
from sfumato.spaces.space import Space

_KINDS: dict[str, Callable[[Any], Space]] = {
    one.kind: one.from_json for one in (Line, Grid, Points, Graph)
}


def space_from_json(data: Any) -> Space:
    """The space that a JSON object states.

    Args:
        data: What `Space.to_json` gave: a dictionary with "kind" and the parameters of that kind.

    Returns:
        The space.

    Raises:
        ValueError: There is no space of that kind, or a parameter breaks a rule.
        KeyError: A part is missing.

    Example:
        >>> space_from_json({"kind": "line", "cells": 4, "length": 1.0}).describe()
        'a line of 4 cells, 1/4 apart'

    """
    kind = data["kind"]
    if kind not in _KINDS:
        raise ValueError(f"no space {kind!r}")
    return _KINDS[kind](data)


def register_space(kind: str, from_json: Callable[[Any], Space]) -> None:
    """Make another kind of space known to files.

    Args:
        kind: Its name, the `kind` of its values and of their JSON.
        from_json: Makes the space of a JSON object.

    """
    _KINDS[kind] = from_json
