"""The collector: packets checked, grouped into rounds, kept, recovered, followed and told."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
