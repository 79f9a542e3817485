"""From rows to guarded sums: one expression for every engine."""

from sfumato.privacy import UNITS
from sfumato.records.cells import CellSums, bound_of_sums, guard_sums
from sfumato.records.columns import Columns
from sfumato.records.neighbor_files import neighbor_files
from sfumato.records.periods import Periods
from sfumato.records.sources import Engine, open_table
from sfumato.records.sums import bound_of_groups, sum_cells, sum_public_cells

__all__ = [
    "UNITS",
    "CellSums",
    "Columns",
    "Engine",
    "Periods",
    "bound_of_groups",
    "bound_of_sums",
    "guard_sums",
    "neighbor_files",
    "open_table",
    "sum_cells",
    "sum_public_cells",
]
