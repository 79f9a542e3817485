"""What a ledger is on the disk: its bytes, its lock, files of format 1, and what is kept beside it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
