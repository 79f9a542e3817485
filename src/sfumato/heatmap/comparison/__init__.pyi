from .differences import find_changes
from .known_cells import counted, of_shares
from .results import CompareResult

__all__ = ["CompareResult", "counted", "find_changes", "of_shares"]
