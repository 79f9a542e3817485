"""Arrays become pictures here; this room knows nothing of privacy."""

from sfumato.figures.flows import Arrows, arrows, flow_field
from sfumato.figures.maps import draw_maps

__all__ = ["Arrows", "arrows", "draw_maps", "flow_field"]
