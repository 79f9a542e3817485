"""Operators by their kind in site files: ours, those a program registers, and those of installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato import spaces
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.sensors import Sensors

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

    from sfumato.sensing.model.operators.protocol import SourceSpace

GROUP = "sfumato.operators"
"""The entry point group in which installed packages name their operators."""

OWN = ("graph-diffusion", "heat", "matrix")

_registered: dict[str, type[Operator]] = {}


def register_operator(operator: type[Operator]) -> type[Operator]:
    """Make an operator known under its `kind`, so that site files with it open; also a class decorator.

    Args:
        operator: A class with the protocol `Operator`, whose `kind` is none of ours ("graph-diffusion",
            "heat", "matrix").

    Returns:
        The class itself.

    Raises:
        InvalidParameter: The kind is missing, one of ours, or that of another class.
    """
    kind = getattr(operator, "kind", "")
    if not isinstance(kind, str) or not kind or not kind.isprintable():
        raise InvalidParameter(
            f"an operator needs a printable kind, got {kind!r}; nothing was registered"
        )
    if kind in OWN or _registered.get(kind, operator) is not operator:
        raise InvalidParameter(f"there is an operator {kind!r} already; nothing was registered")
    _registered[kind] = operator
    return operator


def operator_kinds() -> tuple[str, ...]:
    """The kinds of operators that a site file may name.

    Returns:
        Our own kinds, those that were registered and those of installed packages, sorted.
    """
    installed = {point.name for point in _installed()}
    return tuple(sorted({*OWN, *_registered, *installed}))


def operator_from_json(data: dict[str, Any], space: SourceSpace, sensors: Sensors) -> Operator:
    """The operator that a site file describes, on its space and with its sensors."""
    return _class_of(data["kind"], space).from_json(data, space, sensors)


def _class_of(kind: str, space: SourceSpace) -> type[Operator]:
    # Kinds and spaces are loaded when they are met: a device on a line needs no graphs.
    match kind, space:
        case "heat", spaces.Line():
            from sfumato.sensing.model.operators.heat_line import HeatLine

            return HeatLine
        case "heat", spaces.Grid() | spaces.Points():
            from sfumato.sensing.model.operators.heat_plane import HeatPlane

            return HeatPlane
        case "graph-diffusion", spaces.Graph():
            from sfumato.sensing.model.operators.graph_diffusion import GraphDiffusion

            return GraphDiffusion
        case "matrix", _:
            from sfumato.sensing.model.operators.matrix import Matrix

            return Matrix
        case _:
            return _registered_class(kind, space)


def _registered_class(kind: str, space: SourceSpace) -> type[Operator]:
    if kind not in _registered and kind not in OWN:
        for point in _installed():
            if point.name == kind:
                return register_operator(point.load())
    if kind not in _registered:
        raise ValueError(f"no operator {kind!r} on {type(space).__name__}")
    return _registered[kind]


def _installed() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)
