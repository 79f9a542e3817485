from .charging import price, release_sums
from .compare import compare_maps, map_distance, map_frame
from .options import HeatmapOptions
from .plan import plan_heatmap
from .pooling import pool_maps
from .rehearsal import rehearse_heatmap
from .release import plan_release, release_heatmap
from .replay import replay_release
from .resume import resume_heatmap
from .saved_maps import draw_map, map_hotspots, map_timelapse, map_totals

__all__ = [
    "HeatmapOptions",
    "compare_maps",
    "draw_map",
    "map_distance",
    "map_frame",
    "map_hotspots",
    "map_timelapse",
    "map_totals",
    "plan_heatmap",
    "plan_release",
    "pool_maps",
    "price",
    "rehearse_heatmap",
    "release_heatmap",
    "release_sums",
    "replay_release",
    "resume_heatmap",
]
