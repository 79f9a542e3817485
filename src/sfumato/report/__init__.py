"""One HTML report from any results: a single file, no scripts, nothing fetched."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
