from .analysis.blur import smooth
from .analysis.forecasts import forecast
from .analysis.metrics import compare
from .analysis.replay import replay_release
from .analysis.zone_shapes import read_zones
from .areas import public_area
from .benchmark.synthetic_city import check_ins
from .charging import price, release_sums
from .export.archive import read_heatmap
from .export.formats import register_format
from .export.timelapse import write_timelapse
from .inference.prior import read_prior
from .methods.protocol import MapMethod
from .methods.pyramid import PyramidMethod
from .methods.registry import register_method
from .methods.zoom import ZoomMethod
from .options import HeatmapOptions
from .pipeline import plan_release, release, release_heatmap
from .planning import plan_heatmap
from .planning_results import HeatmapPlan
from .private_map import FORMAT, HeatmapRelease
from .rehearsal import rehearse, rehearse_exactly, rehearse_heatmap
from .render import as_text
from .results import (
    DrawResult,
    HotspotsResult,
    PlannedRelease,
    RehearsalResult,
    ReleaseResult,
    TotalsResult,
)
from .saved_maps import draw_map, map_hotspots, map_timelapse, map_totals
from .tiles import Tiles, public_tiles

__all__ = [
    "FORMAT",
    "DrawResult",
    "HeatmapOptions",
    "HeatmapPlan",
    "HeatmapRelease",
    "HotspotsResult",
    "MapMethod",
    "PlannedRelease",
    "PyramidMethod",
    "RehearsalResult",
    "ReleaseResult",
    "Tiles",
    "TotalsResult",
    "ZoomMethod",
    "as_text",
    "check_ins",
    "compare",
    "draw_map",
    "forecast",
    "map_hotspots",
    "map_timelapse",
    "map_totals",
    "plan_heatmap",
    "plan_release",
    "price",
    "public_area",
    "public_tiles",
    "read_heatmap",
    "read_prior",
    "read_zones",
    "register_format",
    "register_method",
    "rehearse",
    "rehearse_exactly",
    "rehearse_heatmap",
    "release",
    "release_heatmap",
    "release_sums",
    "replay_release",
    "smooth",
    "write_timelapse",
]
