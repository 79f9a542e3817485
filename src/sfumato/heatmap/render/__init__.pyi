from .odds import odds_words
from .release import as_text

__all__ = ["as_text", "odds_words"]
