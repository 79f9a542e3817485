from .graph_diffusion import GraphDiffusion
from .heat_line import HeatLine
from .heat_plane import HeatPlane
from .matrix import Matrix
from .places import begin_of, even_nodes, even_places
from .protocol import CHUNK, Diffusion, Operator, is_operator, part_of
from .registry import operator_kinds, register_operator

__all__ = [
    "CHUNK",
    "Diffusion",
    "GraphDiffusion",
    "HeatLine",
    "HeatPlane",
    "Matrix",
    "Operator",
    "begin_of",
    "even_nodes",
    "even_places",
    "is_operator",
    "operator_kinds",
    "part_of",
    "register_operator",
]
