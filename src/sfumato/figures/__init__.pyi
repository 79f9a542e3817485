from .audit import draw_band, draw_wealth, draw_witness
from .beliefs import at_least
from .flows import Arrows, arrows, flow_field
from .forecast import Highlight, draw_forecast
from .graphon import blocks_picture, phase_picture
from .heatmap import TOPS, Frame, Words, draw_heatmap, palette, round_number, shades
from .intervals import Series, draw_intervals
from .layout import graph_layout
from .leaderboard import draw_small_maps
from .maps import draw_maps
from .network import draw_graph_recovery
from .online import regret_picture
from .overlay import Overlay
from .recovery import draw_line_recovery, draw_plane_recovery
from .recovery_forecast import Panel, draw_placement, draw_recovery_forecast
from .spectrum import draw_conditioning
from .track import draw_line_track, draw_plane_track

__all__ = [
    "TOPS",
    "Arrows",
    "Frame",
    "Highlight",
    "Overlay",
    "Panel",
    "Series",
    "Words",
    "arrows",
    "at_least",
    "blocks_picture",
    "draw_band",
    "draw_conditioning",
    "draw_forecast",
    "draw_graph_recovery",
    "draw_heatmap",
    "draw_intervals",
    "draw_line_recovery",
    "draw_line_track",
    "draw_maps",
    "draw_placement",
    "draw_plane_recovery",
    "draw_plane_track",
    "draw_recovery_forecast",
    "draw_small_maps",
    "draw_wealth",
    "draw_witness",
    "flow_field",
    "graph_layout",
    "palette",
    "phase_picture",
    "regret_picture",
    "round_number",
    "shades",
]
