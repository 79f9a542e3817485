from .build import even_nodes, even_places, graph_diffusion, heat_line, part_of, time_of
from .kinds import GraphDiffusion, HeatLine, HeatPlane, Matrix, Operator

__all__ = [
    "GraphDiffusion",
    "HeatLine",
    "HeatPlane",
    "Matrix",
    "Operator",
    "even_nodes",
    "even_places",
    "graph_diffusion",
    "heat_line",
    "part_of",
    "time_of",
]
