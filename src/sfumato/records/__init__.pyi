from .aggregate import bound_of_groups, sum_cells, sum_public_cells
from .cells import CellSums, bound_of_sums, guard_sums
from .columns import Columns
from .periods import Periods
from .sources import Engine, open_table
from .without_user import neighbor_files

__all__ = [
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
