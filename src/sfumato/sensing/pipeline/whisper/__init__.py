"""Whispers: release who has heard one, find where it began, and simulate one."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
