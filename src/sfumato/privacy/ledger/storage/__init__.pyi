from .store import Kept

__all__ = ["Kept"]
