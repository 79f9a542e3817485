"""All methods on the same samples: synthetic people, scores, the leaderboard."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
