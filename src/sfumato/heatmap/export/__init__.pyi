from .archive import read_heatmap
from .formats import SUFFIXES, check_outputs, write
from .geojson import to_geodataframe
from .picture import html_repr, image_size
from .timelapse import write_timelapse

__all__ = [
    "SUFFIXES",
    "check_outputs",
    "html_repr",
    "image_size",
    "read_heatmap",
    "to_geodataframe",
    "write",
    "write_timelapse",
]
