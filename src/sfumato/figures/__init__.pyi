from .flows import Arrows, arrows, flow_field
from .intervals import Series, draw_intervals
from .layout import graph_layout
from .maps import draw_maps
from .network import draw_graph_recovery
from .recovery import draw_line_recovery, draw_plane_recovery

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
