"""Arrays become pictures here; this room knows nothing of privacy."""

from sfumato.figures.maps import draw_maps

__all__ = ["draw_maps"]
