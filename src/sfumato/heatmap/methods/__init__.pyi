from .protocol import Method, NoisyTree
from .pyramid import PyramidMethod
from .zoom import ZoomMethod

__all__ = [
    "Method",
    "NoisyTree",
    "PyramidMethod",
    "ZoomMethod",
]
