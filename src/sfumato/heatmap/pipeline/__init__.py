"""Whole jobs as users mean them: every command, page and notebook calls these."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
