from .array_cache import cached_array
from .atomic import (
    check_private,
    check_writable,
    draft_beside,
    drafts_beside,
    remove_drafts,
    sync_folder,
    whole_file,
    write_file,
)
from .edge_lists import EdgeList, number_edges, read_edge_list, usual_ends
from .floor_plan import NO_PLAN, FloorPlan, read_floor_plan
from .geojson import (
    MAX_BYTES,
    MAX_POSITIONS,
    Feature,
    Polygon,
    features_of,
    named_system,
    number_of,
    polygons_of,
    read_bytes,
)
from .json_codec import decoding, indented, parse_json, read_json, write_json
from .leftovers import end_by_signal, scratch_folder
from .line_log import LineLog
from .outputs import check_outputs, holds, new_folder, write_outputs
from .rasters import flat_raster, raster_size
from .tables import Rows, column_of, has_column, numbers_of, read_rows, write_table

__all__ = [
    "MAX_BYTES",
    "MAX_POSITIONS",
    "NO_PLAN",
    "EdgeList",
    "Feature",
    "FloorPlan",
    "LineLog",
    "Polygon",
    "Rows",
    "cached_array",
    "check_outputs",
    "check_private",
    "check_writable",
    "column_of",
    "decoding",
    "draft_beside",
    "drafts_beside",
    "end_by_signal",
    "features_of",
    "flat_raster",
    "has_column",
    "holds",
    "indented",
    "named_system",
    "new_folder",
    "number_edges",
    "number_of",
    "numbers_of",
    "parse_json",
    "polygons_of",
    "raster_size",
    "read_bytes",
    "read_edge_list",
    "read_floor_plan",
    "read_json",
    "read_rows",
    "remove_drafts",
    "scratch_folder",
    "sync_folder",
    "usual_ends",
    "whole_file",
    "write_file",
    "write_json",
    "write_outputs",
    "write_table",
]
