"""Shuffled maps: devices send sealed messages through a shuffler, and whoever adds them up sees no device."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
