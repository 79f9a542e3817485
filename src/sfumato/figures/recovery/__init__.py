"""Pictures of sensors: what was recovered, what one can be sure of, and what a plan would buy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
