from .graph_diffusion import GraphDiffusion
from .heat_line import HeatLine
from .heat_plane import HeatPlane
from .matrix import Matrix
from .places import even_places
from .protocol import CHUNK, Diffusion, Operator, part_of
from .registry import operator_kinds, register_operator

__all__ = [
    "CHUNK",
    "Diffusion",
    "GraphDiffusion",
    "HeatLine",
    "HeatPlane",
    "Matrix",
    "Operator",
    "even_places",
    "operator_kinds",
    "part_of",
    "register_operator",
]
