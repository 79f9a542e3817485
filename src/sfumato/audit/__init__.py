"""Audit somebody's privacy claim, by runs alone: refute it, bound it, certify it, or say why nobody can."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
