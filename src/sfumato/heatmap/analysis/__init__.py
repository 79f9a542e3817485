"""What is done with a map: compare, read places and zones off it, forecast it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
