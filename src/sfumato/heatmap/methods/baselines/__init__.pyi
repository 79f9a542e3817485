from .adaptive_grid import AdaptiveGrid, AdaptiveGridMethod
from .coarse import CoarseMethod
from .flat import FlatGaussian, FlatLaplace, FlatMethod, GaussianMethod, TopMethod
from .hierarchy import HierarchyLaplace, HierarchyMethod
from .privtree import PrivTree, PrivTreeMethod

__all__ = [
    "AdaptiveGrid",
    "AdaptiveGridMethod",
    "CoarseMethod",
    "FlatGaussian",
    "FlatLaplace",
    "FlatMethod",
    "GaussianMethod",
    "HierarchyLaplace",
    "HierarchyMethod",
    "PrivTree",
    "PrivTreeMethod",
    "TopMethod",
]
