"""Arrays become pictures here; this room knows nothing of privacy."""

from sfumato.figures.flows import Arrows, arrows, flow_field
from sfumato.figures.intervals import Series, draw_intervals
from sfumato.figures.layout import graph_layout
from sfumato.figures.maps import draw_maps
from sfumato.figures.network import draw_graph_recovery
from sfumato.figures.recovery import draw_line_recovery, draw_plane_recovery

__all__ = [
    "Arrows",
    "Series",
    "arrows",
    "draw_graph_recovery",
    "draw_intervals",
    "draw_line_recovery",
    "draw_maps",
    "draw_plane_recovery",
    "flow_field",
    "graph_layout",
]
