"""One map of one table: `release_heatmap` without groups, files or words for options."""

from __future__ import annotations

from typing import Any

from sfumato.heatmap.pipeline.charging import DEFAULT, Method
from sfumato.heatmap.pipeline.release import release_heatmap
from sfumato.heatmap.results import HeatmapRelease
from sfumato.privacy import Ledger
from sfumato.privacy.accounting import Number
from sfumato.records import Columns
from sfumato.spaces import Area


def release(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    ledger: Ledger,
    epsilon: Number,
    method: Method = DEFAULT,
    note: str = "",
    public: bool = False,
) -> HeatmapRelease:
    """The one map of `release_heatmap` without groups.

    Args:
        source: Everything `open_table` takes.
        columns: What its columns mean.
        area: The public area.
        ledger: The ledger that pays.
        epsilon: What the map may cost, above 0.
        method: A method, or its name.
        note: A line for the ledger.
        public: Whether rows are public or made up: True with a `Ledger.rehearsal`, and only then.

    Returns:
        The map.

    Raises:
        BudgetExceeded: The ledger has not enough left; nothing was read or charged.
        InvalidParameter: A parameter is out of range; nothing was charged.
        InvalidInput: The rows could not be read; nothing was charged.

    """
    found = release_heatmap(
        source,
        columns,
        area,
        ledger=ledger,
        epsilon=epsilon,
        method=method,
        note=note,
        public=public,
    )
    return found.maps[0]
