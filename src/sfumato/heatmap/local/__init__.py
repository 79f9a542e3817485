"""Local maps: every device randomises before it sends, nobody is trusted, and it is still a map."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
