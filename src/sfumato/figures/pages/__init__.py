"""Pages that work offline: one file each, with a policy that lets the browser fetch nothing."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
