"""Private heatmaps: rows of (user, place) in, a differentially private map out."""

from sfumato.heatmap import rivals as rivals
from sfumato.heatmap.city import check_ins
from sfumato.heatmap.find_area import Strips, area_prices, find_area
from sfumato.heatmap.hotspots import Hotspot, hotspots
from sfumato.heatmap.method import Method, NoisyLevel, NoisyTree
from sfumato.heatmap.metrics import Comparison, compare, emd_ground, emd_share, kl, pearson, similarity
from sfumato.heatmap.pyramid import Pyramid, PyramidMethod
from sfumato.heatmap.reconstruct import objective, reconstruct
from sfumato.heatmap.release import price, rehearse, rehearse_exactly, release, release_each, release_sums
from sfumato.heatmap.result import HeatmapRelease
from sfumato.heatmap.smooth import smooth
from sfumato.heatmap.split import split_epsilon
from sfumato.heatmap.tiles import Tiles, public_tiles
from sfumato.heatmap.writers import SUFFIXES, check_outputs, read_heatmap, write

__all__ = [
    "SUFFIXES",
    "Comparison",
    "HeatmapRelease",
    "Hotspot",
    "Method",
    "NoisyLevel",
    "NoisyTree",
    "Pyramid",
    "PyramidMethod",
    "Strips",
    "Tiles",
    "area_prices",
    "check_ins",
    "check_outputs",
    "compare",
    "emd_ground",
    "emd_share",
    "find_area",
    "hotspots",
    "kl",
    "objective",
    "pearson",
    "price",
    "public_tiles",
    "read_heatmap",
    "reconstruct",
    "rehearse",
    "rehearse_exactly",
    "release",
    "release_each",
    "release_sums",
    "similarity",
    "smooth",
    "split_epsilon",
    "write",
]
