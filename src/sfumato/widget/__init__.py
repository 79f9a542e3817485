"""Widgets for notebooks: maps, plans and recoveries; they show what pipelines computed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
