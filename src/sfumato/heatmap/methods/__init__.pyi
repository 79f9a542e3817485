from .budget_split import split_epsilon
from .joint import InRounds, JointMechanism, JointMethod, MethodInShares
from .noisy_sums import NoisySums
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
from .shuffled import ShuffledMechanism, ShuffledMethod, method_for
from .zoom import Zoom, ZoomMethod
from .zoom_tree import ZoomTree

__all__ = [
    "InRounds",
    "JointMechanism",
    "JointMethod",
    "MapEstimate",
    "MapMethod",
    "Method",
    "MethodEntry",
    "MethodInShares",
    "NoiseAwareMethod",
    "NoisyLevel",
    "NoisySums",
    "NoisyTree",
    "PrivateBounds",
    "Pyramid",
    "PyramidMethod",
    "ShuffledMechanism",
    "ShuffledMethod",
    "Zoom",
    "ZoomMethod",
    "ZoomTree",
    "area_prices",
    "check_method_name",
    "find_area",
    "method_for",
    "method_named",
    "register_method",
    "registered_methods",
    "split_epsilon",
    "unregister_method",
]
