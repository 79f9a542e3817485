from .analysis.blur import smooth
from .analysis.forecasts import forecast
from .analysis.metrics import compare
from .analysis.zone_shapes import read_zones
from .areas import public_area
from .benchmark.synthetic_city import check_ins
from .comparison.results import CompareResult
from .export.archive import read_heatmap
from .export.formats import register_format
from .export.ground_view import ground_view
from .export.timelapse import write_timelapse
from .export.view import map_view
from .hotspot_results import HotspotsResult
from .inference.prior import read_prior
from .methods.protocol import MapMethod
from .methods.pyramid import PyramidMethod
from .methods.registry import register_method
from .methods.zoom import ZoomMethod
from .pipeline.charging import price, release_sums
from .pipeline.compare import compare_maps, map_distance, map_frame
from .pipeline.mistakes import check_comparison, check_rehearsal, check_release
from .pipeline.one_map import release
from .pipeline.options import HeatmapOptions
from .pipeline.plan import plan_heatmap
from .pipeline.pooling import pool_maps
from .pipeline.rehearsal import rehearse, rehearse_exactly, rehearse_heatmap
from .pipeline.release import plan_release, release_heatmap
from .pipeline.replay import replay_release
from .pipeline.resume import resume_heatmap
from .pipeline.saved_maps import draw_map, map_hotspots, map_timelapse, map_totals
from .planning_results import HeatmapPlan
from .private_map import FORMAT, HeatmapRelease
from .render.release import as_text
from .results import (
    DrawResult,
    PlannedRelease,
    PoolResult,
    RehearsalResult,
    ReleaseResult,
    TotalsResult,
)
from .tiles import Tiles, public_tiles

__all__ = [
    "FORMAT",
    "CompareResult",
    "DrawResult",
    "HeatmapOptions",
    "HeatmapPlan",
    "HeatmapRelease",
    "HotspotsResult",
    "MapMethod",
    "PlannedRelease",
    "PoolResult",
    "PyramidMethod",
    "RehearsalResult",
    "ReleaseResult",
    "Tiles",
    "TotalsResult",
    "ZoomMethod",
    "as_text",
    "check_comparison",
    "check_ins",
    "check_rehearsal",
    "check_release",
    "compare",
    "compare_maps",
    "draw_map",
    "forecast",
    "ground_view",
    "map_distance",
    "map_frame",
    "map_hotspots",
    "map_timelapse",
    "map_totals",
    "map_view",
    "plan_heatmap",
    "plan_release",
    "pool_maps",
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
    "resume_heatmap",
    "smooth",
    "write_timelapse",
]
