"""`sfumato serve`: the local page. It parses, calls the pipelines and shows; it computes nothing."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
