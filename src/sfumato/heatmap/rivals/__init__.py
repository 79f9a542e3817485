"""Every other way to make a private map, through the same ledger, noise and user-level bound."""

from sfumato.heatmap.rivals.adaptive_grid import AdaptiveGrid, AdaptiveGridMethod
from sfumato.heatmap.rivals.coarse import CoarseMethod
from sfumato.heatmap.rivals.flat import FlatGaussian, FlatLaplace, FlatMethod, GaussianMethod, TopMethod
from sfumato.heatmap.rivals.hierarchy import HierarchyLaplace, HierarchyMethod
from sfumato.heatmap.rivals.privtree import PrivTree, PrivTreeMethod

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
