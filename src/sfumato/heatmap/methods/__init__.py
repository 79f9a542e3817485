"""Methods that make a map: zoom, pyramid, and baselines; private bounds of an area."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
