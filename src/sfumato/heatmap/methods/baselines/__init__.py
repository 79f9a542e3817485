"""Every other way to make a private map, through the same ledger, noise and user-level bound."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
