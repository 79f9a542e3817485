"""The thesis' testers of privacy, certificates by them, and limits of any tester."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
