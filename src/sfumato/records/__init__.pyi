from .aggregate import sum_cells, sum_public_cells
from .cells import CellSums, bound_of_groups, bound_of_sums, guard_sums
from .columns import Columns, check_columns
from .connections import public_connection
from .engines.protocol import RowEngine
from .engines.registry import engine_names, register_engine
from .fields import as_double
from .file_names import check_source, is_file_list, named_files, table_identity
from .groups import Groups, Pairs, Values, about_group, count_of, in_table, names_of, whole_parts
from .periods import PERIOD_UNITS, Periods
from .quiet import quietly
from .sources import Engine, open_table
from .without_user import neighbor_files

__all__ = [
    "PERIOD_UNITS",
    "CellSums",
    "Columns",
    "Engine",
    "Groups",
    "Pairs",
    "Periods",
    "RowEngine",
    "Values",
    "about_group",
    "as_double",
    "bound_of_groups",
    "bound_of_sums",
    "check_columns",
    "check_source",
    "count_of",
    "engine_names",
    "guard_sums",
    "in_table",
    "is_file_list",
    "named_files",
    "names_of",
    "neighbor_files",
    "open_table",
    "public_connection",
    "quietly",
    "register_engine",
    "sum_cells",
    "sum_public_cells",
    "table_identity",
    "whole_parts",
]
