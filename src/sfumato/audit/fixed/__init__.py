"""Tests of a fixed number of runs: events, exact ratio tests, lower bounds, delta profiles."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
