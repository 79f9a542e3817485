from .analysis.blur import smooth
from .analysis.forecasts import (
    Expected,
    Forecast,
    Requirement,
    forecast,
    required_epsilon,
    required_users,
)
from .analysis.metrics import Comparison, compare, emd_ground, emd_share, kl, pearson, similarity
from .analysis.places import FoundHotspots, Hotspot, find_hotspots, hotspots
from .analysis.replay import ReplayResult, replay_lines, replay_release
from .analysis.zones import Zone, ZoneTotal, read_zones, totals_csv, totals_geojson, zone_totals
from .benchmark.synthetic_city import check_ins
from .export import SUFFIXES, check_outputs, read_heatmap, write, write_timelapse
from .inference.counts import NoisyCounts
from .inference.posterior import CountsPosterior
from .inference.prior import Declared, Prior, read_prior, sharpened
from .inference.tree_fit import objective, reconstruct
from .inference.uncertainty import MapBand, Mark, Uncertainty
from .methods.budget_split import split_epsilon
from .methods.private_bounds import PrivateBounds, area_prices, find_area
from .methods.protocol import Method, NoisyLevel, NoisyTree
from .methods.pyramid import Pyramid, PyramidMethod
from .methods.zoom import Zoom, ZoomMethod, ZoomTree
from .pipeline import (
    price,
    rehearse,
    rehearse_exactly,
    release,
    release_each,
    release_periods,
    release_sums,
)
from .planning import plan_heatmap
from .planning_results import HeatmapPlan
from .render_plan import plan_caption, plan_picture
from .results import FORMAT, HeatmapRelease
from .tiles import Tiles, public_tiles

__all__ = [
    "FORMAT",
    "SUFFIXES",
    "Comparison",
    "CountsPosterior",
    "Declared",
    "Expected",
    "Forecast",
    "FoundHotspots",
    "HeatmapPlan",
    "HeatmapRelease",
    "Hotspot",
    "MapBand",
    "Mark",
    "Method",
    "NoisyCounts",
    "NoisyLevel",
    "NoisyTree",
    "Prior",
    "PrivateBounds",
    "Pyramid",
    "PyramidMethod",
    "ReplayResult",
    "Requirement",
    "Tiles",
    "Uncertainty",
    "Zone",
    "ZoneTotal",
    "Zoom",
    "ZoomMethod",
    "ZoomTree",
    "area_prices",
    "check_ins",
    "check_outputs",
    "compare",
    "emd_ground",
    "emd_share",
    "find_area",
    "find_hotspots",
    "forecast",
    "hotspots",
    "kl",
    "objective",
    "pearson",
    "plan_caption",
    "plan_heatmap",
    "plan_picture",
    "price",
    "public_tiles",
    "read_heatmap",
    "read_prior",
    "read_zones",
    "reconstruct",
    "rehearse",
    "rehearse_exactly",
    "release",
    "release_each",
    "release_periods",
    "release_sums",
    "replay_lines",
    "replay_release",
    "required_epsilon",
    "required_users",
    "sharpened",
    "similarity",
    "smooth",
    "split_epsilon",
    "totals_csv",
    "totals_geojson",
    "write",
    "write_timelapse",
    "zone_totals",
]
