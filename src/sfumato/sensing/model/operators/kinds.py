"""Operators under one name, for modules that still import them from here."""

from __future__ import annotations

from sfumato.sensing.model.operators.graph_diffusion import GraphDiffusion
from sfumato.sensing.model.operators.heat_line import HeatLine
from sfumato.sensing.model.operators.heat_plane import HeatPlane
from sfumato.sensing.model.operators.matrix import Matrix
from sfumato.sensing.model.operators.protocol import CHUNK, Operator

__all__ = ["CHUNK", "GraphDiffusion", "HeatLine", "HeatPlane", "Matrix", "Operator"]
