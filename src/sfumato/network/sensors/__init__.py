"""A sensor as a process: read, quantise, charge, seal, publish on a fixed schedule."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
