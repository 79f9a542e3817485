"""Files and pictures of a map: everything in them was paid for, so writing costs nothing."""

from sfumato.heatmap.writers.archive import read_heatmap
from sfumato.heatmap.writers.files import SUFFIXES, check_outputs, write
from sfumato.heatmap.writers.film import write_film
from sfumato.heatmap.writers.geojson import to_geodataframe
from sfumato.heatmap.writers.picture import html_repr

__all__ = ["SUFFIXES", "check_outputs", "html_repr", "read_heatmap", "to_geodataframe", "write", "write_film"]
