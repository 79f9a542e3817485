from .budget_split import split_epsilon
from .private_bounds import PrivateBounds, area_prices, find_area
from .protocol import MapEstimate, MapMethod, Method, NoiseAwareMethod, NoisyLevel, NoisyTree
from .pyramid import Pyramid, PyramidMethod
from .registry import (
    MethodEntry,
    check_method_name,
    method_named,
    register_method,
    registered_methods,
    unregister_method,
)
from .zoom import Zoom, ZoomMethod
from .zoom_tree import ZoomTree

__all__ = [
    "MapEstimate",
    "MapMethod",
    "Method",
    "MethodEntry",
    "NoiseAwareMethod",
    "NoisyLevel",
    "NoisyTree",
    "PrivateBounds",
    "Pyramid",
    "PyramidMethod",
    "Zoom",
    "ZoomMethod",
    "ZoomTree",
    "area_prices",
    "check_method_name",
    "find_area",
    "method_named",
    "register_method",
    "registered_methods",
    "split_epsilon",
    "unregister_method",
]
