"""What a distance comes with: bounds that anyone can check, and the flow if asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato._types import FloatArray


@dataclass(frozen=True, slots=True)
class GridFlow:
    """Mass that crosses each border of a grid: eastward [row, column], northward [row, column]; signed."""

    east: FloatArray
    north: FloatArray


@dataclass(frozen=True, slots=True)
class Plan:
    """Mass moved from one point to another, one entry per pair that moves any."""

    origin: Any
    target: Any
    mass: FloatArray


@dataclass(frozen=True, slots=True)
class Transport:
    """An earth mover's distance between proven bounds: lower <= true value <= upper, and value between them.

    `lower` comes from potentials that were checked to be 1-Lipschitz, `upper` from a flow that was
    checked to turn one mass into the other; both allow for the rounding of masses to the lattice.
    `flow`, on request, is signed mass across the gaps of a line, along the edges of a graph (in
    their order), a GridFlow, or a Plan between points.
    """

    value: float
    lower: float
    upper: float
    flow: FloatArray | GridFlow | Plan | None = None
