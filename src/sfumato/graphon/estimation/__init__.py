"""Blocks of a public network: estimators, and held-out edges that decide whether to believe them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
