"""Files and pictures of a map: everything in them was paid for, so writing costs nothing."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
