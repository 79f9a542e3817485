from .archive import read_heatmap
from .formats import (
    SUFFIXES,
    MapFormat,
    WriteOptions,
    check_outputs,
    keep_apart,
    register_format,
    registered_formats,
    unregister_format,
    write,
)
from .geojson import to_geodataframe
from .ground import image_size
from .output_names import of_group
from .picture import html_repr
from .tables import to_dataframe
from .timelapse import write_timelapse
from .view import VIEW, map_view

__all__ = [
    "SUFFIXES",
    "VIEW",
    "MapFormat",
    "WriteOptions",
    "check_outputs",
    "html_repr",
    "image_size",
    "keep_apart",
    "map_view",
    "of_group",
    "read_heatmap",
    "register_format",
    "registered_formats",
    "to_dataframe",
    "to_geodataframe",
    "unregister_format",
    "write",
    "write_timelapse",
]
