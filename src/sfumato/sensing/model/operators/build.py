"""Constructors of operators under one name, for modules that still import them from here."""

from __future__ import annotations

from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.places import even_nodes, even_places
from sfumato.sensing.model.operators.protocol import Operator, part_of


def at_time(operator: Operator, time: float) -> Operator:
    """The same operator with another diffusion time, or rate."""
    return operator.with_time(time)


def time_of(operator: Operator) -> float | None:
    """The diffusion time or rate of an operator that has one."""
    return operator.time


__all__ = [
    "at_time",
    "even_nodes",
    "even_places",
    "graph_diffusion",
    "heat_line",
    "heat_plane",
    "linear",
    "part_of",
    "time_of",
]
