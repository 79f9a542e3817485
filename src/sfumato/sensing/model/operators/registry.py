"""Operators by their kind in site files: ours, those a program registers, and those of installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato import spaces
from sfumato._registry import Registry
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.sensors import Sensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sfumato.sensing.model.operators.protocol import SourceSpace

_HERE = "sfumato.sensing.model.operators"
OPERATORS = Registry[type[Operator]](
    "operator",
    "sfumato.operators",
    {
        "graph-diffusion": f"{_HERE}.graph_diffusion:GraphDiffusion",
        "heat": f"{_HERE}.heat_line:HeatLine",  # in a plane it is HeatPlane
        "matrix": f"{_HERE}.matrix:Matrix",
        "weighted": f"{_HERE}.weighted:Weighted",
    },
)
OWN = tuple(OPERATORS.own)


def register_operator(operator: type[Operator]) -> type[Operator]:
    """Make an operator known under its `kind`, so that site files with it open; also a class decorator.

    Args:
        operator: A class with the protocol `Operator`, whose `kind` is none of ours ("graph-diffusion",
            "heat", "matrix", "weighted").

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
    OPERATORS.add(kind, operator)
    return operator


def operator_kinds() -> tuple[str, ...]:
    """The kinds of operators that a site file may name.

    Returns:
        Our own kinds, those that were registered and those of installed packages, sorted.
    """
    return tuple(sorted(OPERATORS.names()))


def operator_from_json(data: dict[str, Any], space: SourceSpace, sensors: Sensors) -> Operator:
    """The operator that a site file describes, on its space and with its sensors."""
    return _class_of(data["kind"], space).from_json(data, space, sensors)


def operator_of_kind(
    kind: str, parameters: Mapping[str, Any], space: SourceSpace, sensors: Sensors
) -> Operator:
    """An operator by its kind and parameters, as a site file has them.

    Args:
        kind: One of `operator_kinds`.
        parameters: What its `to_json` would say.
        space: Where sources may be.
        sensors: Where they are read.

    Returns:
        The operator.

    Raises:
        InvalidParameter: There is no such operator on this space, or its parameters are others.
    """
    if kind not in operator_kinds():
        known = ", ".join(operator_kinds())
        raise InvalidParameter(f"`operator` is one of {known}, got {kind!r}; nothing was built")
    try:
        return operator_from_json({"kind": kind, **parameters}, space, sensors)
    except KeyError as missing:
        raise InvalidParameter(
            f"the operator {kind!r} needs {missing} in `operator_options`; nothing was built"
        ) from None
    except (TypeError, ValueError) as problem:
        raise InvalidParameter(f"the operator {kind!r}: {problem}; nothing was built") from problem


def _class_of(kind: str, space: SourceSpace) -> type[Operator]:
    # Kinds and spaces are loaded when they are met: a device on a line needs no graphs.
    match kind, space:
        case "heat", spaces.Grid() | spaces.Points():
            from sfumato.sensing.model.operators.heat_plane import HeatPlane

            return HeatPlane
        case ("heat", spaces.Graph()) | (
            "graph-diffusion",
            spaces.Line() | spaces.Grid() | spaces.Points(),
        ):
            raise ValueError(f"no operator {kind!r} on {type(space).__name__}")
        case _:
            try:
                return OPERATORS.get(kind)
            except KeyError:
                raise ValueError(f"no operator {kind!r} on {type(space).__name__}") from None
