from .audit import draw_band, draw_wealth, draw_witness
from .difference import DifferenceLayers, draw_difference
from .flows import Arrows, arrows, flow_field
from .forecast import Highlight, draw_forecast
from .graphon import blocks_picture, phase_picture
from .heatmap import heatmap_figure
from .intervals import Series, draw_intervals
from .map_sheet import Frame, Words, place_marks, png_of, scale_bar
from .maps import draw_maps, draw_small_maps
from .online import regret_picture
from .overlay import Overlay
from .pages.fill import filled_page, page_style
from .pages.rounds import PageRound, RoundsPage, rounds_page
from .recovery.beliefs import at_least
from .recovery.floor import Floor
from .recovery.forecast_panels import Panel, draw_recovery_forecast
from .recovery.graph_track import draw_graph_track
from .recovery.layout import graph_layout
from .recovery.line import draw_line_recovery
from .recovery.network import draw_graph_recovery
from .recovery.placement import draw_placement
from .recovery.plane import draw_plane_recovery
from .recovery.spectrum import draw_conditioning
from .recovery.track import draw_line_track, draw_plane_track
from .style import TOPS, glow, palette, round_number, shade_script, shades

__all__ = [
    "TOPS",
    "Arrows",
    "DifferenceLayers",
    "Floor",
    "Frame",
    "Highlight",
    "Overlay",
    "PageRound",
    "Panel",
    "RoundsPage",
    "Series",
    "Words",
    "arrows",
    "at_least",
    "blocks_picture",
    "draw_band",
    "draw_conditioning",
    "draw_difference",
    "draw_forecast",
    "draw_graph_recovery",
    "draw_graph_track",
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
    "filled_page",
    "flow_field",
    "glow",
    "graph_layout",
    "heatmap_figure",
    "page_style",
    "palette",
    "phase_picture",
    "place_marks",
    "png_of",
    "regret_picture",
    "round_number",
    "rounds_page",
    "scale_bar",
    "shade_script",
    "shades",
]
