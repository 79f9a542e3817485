"""Two maps: what differs for sure, and how far mass moved beside what noise alone would give."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
