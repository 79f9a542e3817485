"""What is public of a site: space, sensors, operator, and how far readings can move."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
