"""From a table to private maps: sum, pay, sample, estimate; the ledger opens what was paid for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.heatmap.method import Method
from sfumato.heatmap.pyramid import PyramidMethod
from sfumato.heatmap.result import HeatmapRelease
from sfumato.heatmap.tiles import public_tiles
from sfumato.privacy import Guarded, Ledger, Loss, Noise, PureDP
from sfumato.privacy.codec import parameters
from sfumato.privacy.exact import Number, exact
from sfumato.records import (
    CellSums,
    Columns,
    bound_of_sums,
    guard_sums,
    open_table,
    sum_cells,
    sum_public_cells,
)
from sfumato.spaces import Area

FloatArray = npt.NDArray[np.float64]

DEFAULT = PyramidMethod()


def release(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    ledger: Ledger,
    epsilon: Number,
    method: Method[Any] = DEFAULT,
    note: str = "",
) -> HeatmapRelease:
    """A private map of a table: everything `open_table` takes, or a table of Ibis.

    Every user has mass 1 over all cells, however many rows they have. Reading comes first and costs nothing;
    then the ledger charges at most epsilon, and only then is anything sampled.

    Privacy: the cost of the method's mechanism, for each `unit` of the ledger added or removed.
    """
    ledger.afford(price(method, epsilon, area))
    guarded = sum_cells(
        open_table(source, columns=columns),
        columns,
        area,
        source=ledger.header.source,
        unit=ledger.header.unit,
    )
    return release_sums(guarded, area, ledger=ledger, epsilon=epsilon, method=method, note=note)[0]


def release_each(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    groups: Sequence[str],
    ledger: Ledger,
    epsilon: Number,
    method: Method[Any] = DEFAULT,
    note: str = "",
) -> dict[str, HeatmapRelease]:
    """One private map for each public value of the column `by`, all of them together at one epsilon.

    A user's mass 1 is shared over all groups by where their rows lie, so the maps are one release.
    """
    ledger.afford(price(method, epsilon, area, groups=len(groups)))
    guarded = sum_cells(
        open_table(source, columns=columns),
        columns,
        area,
        source=ledger.header.source,
        unit=ledger.header.unit,
        groups=groups,
    )
    maps = release_sums(
        guarded, area, ledger=ledger, epsilon=epsilon, method=method, groups=groups, note=note
    )
    return dict(zip(groups, maps, strict=True))


def rehearse(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    epsilon: Number,
    method: Method[Any] = DEFAULT,
    noise: Noise | None = None,
) -> HeatmapRelease:
    """What a release would look like, on public or made-up data only: marked, stamped, charged to nobody.

    With `noise` of a known key the same map comes again; a ledger of real data would refuse it.
    """
    return rehearse_exactly(source, columns, area, epsilon=epsilon, method=method, noise=noise)[0]


def rehearse_exactly(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    epsilon: Number,
    method: Method[Any] = DEFAULT,
    noise: Noise | None = None,
) -> tuple[HeatmapRelease, FloatArray]:
    """A rehearsal and beside it the exact picture, shares adding up to 1: for public or made-up data only."""
    sums = sum_public_cells(open_table(source, columns=columns), columns, area)
    ledger = Ledger.rehearsal(PureDP(exact(epsilon)))
    guarded = guard_sums(sums, source=ledger.header.source)
    (rehearsed,) = release_sums(guarded, area, ledger=ledger, epsilon=epsilon, method=method, noise=noise)
    return rehearsed, public_tiles(sums).normalized().image()


def release_sums(
    guarded: Guarded[CellSums],
    area: Area,
    *,
    ledger: Ledger,
    epsilon: Number,
    method: Method[Any] = DEFAULT,
    groups: Sequence[str] = ("",),
    noise: Noise | None = None,
    area_cost: PureDP | None = None,
    note: str = "",
) -> tuple[HeatmapRelease, ...]:
    """One private map for each group of guarded sums, as one release that costs at most epsilon.

    `area_cost` is what `find_area` was paid for the area, if it was asked: the maps say so.
    """
    if guarded.bound.size != len(groups) * area.grid.size:
        raise InvalidParameter(
            f"sums of {len(groups)} group(s) on {area.grid.side} x {area.grid.side} cells are wanted, "
            f"got {guarded.bound.size} entries; nothing was charged"
        )
    meant = exact(epsilon, name="epsilon")
    mechanism = method.mechanism(meant, guarded.bound, area.grid)
    pay = PureDP(meant) if isinstance(mechanism.cost(guarded.bound), PureDP) else None
    receipt = ledger.release(mechanism, guarded, noise=noise, pay=pay, note=note)
    # From here on everything is made of what was released: it costs nothing.
    return tuple(
        HeatmapRelease(tiles, area, method.name, parameters(method), receipt, group, area_cost)
        for tiles, group in zip(method.estimate(receipt.value, area.grid), groups, strict=True)
    )


def price(method: Method[Any], epsilon: Number, area: Area, *, groups: int = 1) -> Loss:
    """What a release will be charged, known before any row is read."""
    bound, meant = bound_of_sums(area.grid, groups), exact(epsilon, name="epsilon")
    loss = method.mechanism(meant, bound, area.grid).cost(bound)
    return PureDP(meant) if isinstance(loss, PureDP) else loss
