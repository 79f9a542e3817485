"""How sure a map is and how far off: bands, rings, noise marks, expected and certified errors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
