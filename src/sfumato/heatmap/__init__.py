"""Private heatmaps: rows of (user, place) in, a differentially private map out."""

from sfumato.heatmap import rivals as rivals
from sfumato.heatmap.city import check_ins
from sfumato.heatmap.counts import NoisyCounts
from sfumato.heatmap.find_area import Strips, area_prices, find_area
from sfumato.heatmap.forecast import Expected, Forecast, Needed, epsilon_needed, forecast, users_needed
from sfumato.heatmap.hotspots import FoundHotspots, Hotspot, find_hotspots, hotspots
from sfumato.heatmap.method import Method, NoisyLevel, NoisyTree
from sfumato.heatmap.metrics import Comparison, compare, emd_ground, emd_share, kl, pearson, similarity
from sfumato.heatmap.posterior import Posterior
from sfumato.heatmap.prior import Declared, Prior, read_prior, sharpened
from sfumato.heatmap.pyramid import Pyramid, PyramidMethod
from sfumato.heatmap.reconstruct import objective, reconstruct
from sfumato.heatmap.release import (
    price,
    rehearse,
    rehearse_exactly,
    release,
    release_each,
    release_periods,
    release_sums,
)
from sfumato.heatmap.replay import ReplayResult, replay_lines, replay_release
from sfumato.heatmap.result import HeatmapRelease
from sfumato.heatmap.smooth import smooth
from sfumato.heatmap.split import split_epsilon
from sfumato.heatmap.tiles import Tiles, public_tiles
from sfumato.heatmap.uncertainty import Band, Mark, Uncertainty
from sfumato.heatmap.writers import SUFFIXES, check_outputs, read_heatmap, write, write_film
from sfumato.heatmap.zones import Zone, ZoneTotal, read_zones, totals_csv, totals_geojson, zone_totals
from sfumato.heatmap.zoom import Zoom, ZoomMethod, ZoomTree

__all__ = [
    "SUFFIXES",
    "Band",
    "Comparison",
    "Declared",
    "Expected",
    "Forecast",
    "FoundHotspots",
    "HeatmapRelease",
    "Hotspot",
    "Mark",
    "Method",
    "Needed",
    "NoisyCounts",
    "NoisyLevel",
    "NoisyTree",
    "Posterior",
    "Prior",
    "Pyramid",
    "PyramidMethod",
    "ReplayResult",
    "Strips",
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
    "epsilon_needed",
    "find_area",
    "find_hotspots",
    "forecast",
    "hotspots",
    "kl",
    "objective",
    "pearson",
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
    "sharpened",
    "similarity",
    "smooth",
    "split_epsilon",
    "totals_csv",
    "totals_geojson",
    "users_needed",
    "write",
    "write_film",
    "zone_totals",
]
