"""Sensors that add noise before they send: operators, sensitivity, release, recovery, unsealing, limits."""

from sfumato.sensing.build import graph_diffusion, heat_line, heat_plane, linear
from sfumato.sensing.operators import (
    GraphDiffusion,
    HeatLine,
    HeatPlane,
    Matrix,
    Operator,
)
from sfumato.sensing.recovery import Recovery
from sfumato.sensing.sensors import Sensors

__all__ = [
    "GraphDiffusion",
    "HeatLine",
    "HeatPlane",
    "Matrix",
    "Operator",
    "Recovery",
    "Sensors",
    "graph_diffusion",
    "heat_line",
    "heat_plane",
    "linear",
]
