"""Mechanisms, one file each: frozen values that know their parameters, their cost and how they sample.

Each is named with a version that a ledger keeps; its meaning never changes once released.
Parameters that are not doubles are rounded up, towards more noise.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
