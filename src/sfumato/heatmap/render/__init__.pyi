from .release import as_text

__all__ = ["as_text"]
