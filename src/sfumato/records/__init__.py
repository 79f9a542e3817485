"""From rows to guarded sums: one expression for every engine."""

from sfumato.records.cells import UNITS, CellSums, guard_sums

__all__ = ["UNITS", "CellSums", "guard_sums"]
