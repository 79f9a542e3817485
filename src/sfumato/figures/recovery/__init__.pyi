from .beliefs import at_least
from .floor import Floor
from .forecast_panels import Panel, draw_recovery_forecast
from .graph_track import draw_graph_track
from .layout import graph_layout
from .line import draw_line_recovery
from .network import draw_graph_recovery
from .placement import draw_placement
from .plane import draw_plane_recovery
from .spectrum import draw_conditioning
from .track import draw_line_track, draw_plane_track

__all__ = [
    "Floor",
    "Panel",
    "at_least",
    "draw_conditioning",
    "draw_graph_recovery",
    "draw_graph_track",
    "draw_line_recovery",
    "draw_line_track",
    "draw_placement",
    "draw_plane_recovery",
    "draw_plane_track",
    "draw_recovery_forecast",
    "graph_layout",
]
