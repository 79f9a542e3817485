from .blur import smooth
from .forecasts import (
    BLUR,
    FORMAT,
    LEVELS,
    TABLE,
    USUAL_USERS,
    Expected,
    Forecast,
    Kind,
    Line,
    Requirement,
    forecast,
    forecast_table,
    required_epsilon,
    required_users,
)
from .many_maps import CountedRows, ManyMaps, Shares, forecast_maps
from .metrics import Comparison, compare, emd_ground, emd_share, kl, pearson, similarity
from .places import FoundHotspots, Hotspot, find_hotspots, hotspots
from .quality import GROWS, METRICS, Metric
from .theory import packing_lower_bound
from .zone_shapes import Zone, read_zones
from .zones import ZoneTotal, totals_csv, totals_geojson, zone_totals

__all__ = [
    "BLUR",
    "FORMAT",
    "GROWS",
    "LEVELS",
    "METRICS",
    "TABLE",
    "USUAL_USERS",
    "Comparison",
    "CountedRows",
    "Expected",
    "Forecast",
    "FoundHotspots",
    "Hotspot",
    "Kind",
    "Line",
    "ManyMaps",
    "Metric",
    "Requirement",
    "Shares",
    "Zone",
    "ZoneTotal",
    "compare",
    "emd_ground",
    "emd_share",
    "find_hotspots",
    "forecast",
    "forecast_maps",
    "forecast_table",
    "hotspots",
    "kl",
    "packing_lower_bound",
    "pearson",
    "read_zones",
    "required_epsilon",
    "required_users",
    "similarity",
    "smooth",
    "totals_csv",
    "totals_geojson",
    "zone_totals",
]
