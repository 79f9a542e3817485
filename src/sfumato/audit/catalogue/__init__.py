"""Correct and broken mechanisms to try an auditor on, and the auditor tried on them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
