"""Earth mover's distance on any space, with certificates; EMD norm; tree bound."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
