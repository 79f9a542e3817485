"""Private heatmaps: rows of (user, place) in, a differentially private map out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
