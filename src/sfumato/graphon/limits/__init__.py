"""What a network can tell about its blocks, and what no estimator can do better."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
