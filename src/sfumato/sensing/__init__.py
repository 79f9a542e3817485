"""Sensors that add noise before they send: operators, sensitivity, release, recovery, unsealing, limits."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
