from .atomic import (
    check_writable,
    draft_beside,
    drafted,
    drafts_beside,
    remove_drafts,
    sync_folder,
    whole_file,
    write_file,
)
from .geojson import (
    MOST_BYTES,
    MOST_POSITIONS,
    Feature,
    Polygon,
    features_of,
    number_of,
    polygons_of,
    read_bytes,
)
from .leftovers import scratch_folder
from .tables import write_table

__all__ = [
    "MOST_BYTES",
    "MOST_POSITIONS",
    "Feature",
    "Polygon",
    "check_writable",
    "draft_beside",
    "drafted",
    "drafts_beside",
    "features_of",
    "number_of",
    "polygons_of",
    "read_bytes",
    "remove_drafts",
    "scratch_folder",
    "sync_folder",
    "whole_file",
    "write_file",
    "write_table",
]
