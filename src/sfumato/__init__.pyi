from .audit import assert_private, audit_claim
from .graphon import Blocks, find_blocks
from .heatmap import compare_maps, plan_heatmap, read_heatmap, rehearse_heatmap, release_heatmap
from .online import Chooser
from .privacy import Ledger
from .records import Columns, Periods, Values
from .sensing.pipeline import (
    check_recovery,
    describe_site,
    plan_sensors,
    recover_sources,
    release_readings,
    track_sources,
)
from .spaces import area_in_degrees
from .transport import emd

__version__: str

__all__ = [
    "Blocks",
    "Chooser",
    "Columns",
    "Ledger",
    "Periods",
    "Values",
    "area_in_degrees",
    "assert_private",
    "audit_claim",
    "check_recovery",
    "compare_maps",
    "describe_site",
    "emd",
    "find_blocks",
    "plan_heatmap",
    "plan_sensors",
    "read_heatmap",
    "recover_sources",
    "rehearse_heatmap",
    "release_heatmap",
    "release_readings",
    "track_sources",
]
