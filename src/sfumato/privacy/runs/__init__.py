"""Requests that pay for one release or several: what was paid is found again, finished, and delivered once."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
