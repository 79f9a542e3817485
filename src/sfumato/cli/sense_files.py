"""Tables of sensors, for commands that still import them from here."""

from __future__ import annotations

from sfumato.files import column_of as column
from sfumato.files import has_column as has
from sfumato.files import numbers_of as numbers
from sfumato.files import read_rows
from sfumato.files import unique_names as in_order
from sfumato.sensing.tables import (
    AXES,
    read_graph,
    read_layout,
    read_sensors,
    read_sigma,
    read_snapshots,
    read_sources,
)

__all__ = [
    "AXES", "column", "has", "in_order", "numbers", "read_graph", "read_layout", "read_rows", "read_sensors",
    "read_sigma", "read_snapshots", "read_sources",
]  # fmt: skip
