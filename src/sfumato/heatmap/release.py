"""From a table to private maps: sum, pay, sample, estimate; the ledger opens what was paid for."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.heatmap.method import Method
from sfumato.heatmap.pyramid import PyramidMethod
from sfumato.heatmap.result import HeatmapRelease
from sfumato.heatmap.tiles import inside, public_tiles
from sfumato.privacy import Bound, Guarded, Ledger, Loss, Mechanism, Noise, PureDP
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

# Some gigabytes of noise and a few minutes: what a machine can be asked for once a map is paid for.
MOST_DRAWS = 2**25
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
    then the ledger charges epsilon, and only then is anything sampled.

    Privacy: epsilon (with the delta of the method, if it has one) for each `unit` of the ledger added or
    removed.
    """
    return _released(source, columns, area, ledger, epsilon, method, None, note)[0]


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
    maps = _released(source, columns, area, ledger, epsilon, method, groups, note)
    return dict(zip(groups, maps, strict=True))


def _released(
    source: Any,
    columns: Columns,
    area: Area,
    ledger: Ledger,
    epsilon: Number,
    method: Method[Any],
    groups: Sequence[str] | None,
    note: str,
) -> tuple[HeatmapRelease, ...]:
    names = ("",) if groups is None else tuple(groups)
    ledger.afford(price(method, epsilon, area, groups=len(names)))
    guarded = sum_cells(
        open_table(source, columns=columns),
        columns,
        area,
        source=ledger.header.source,
        unit=ledger.header.unit,
        groups=groups,
    )
    return release_sums(
        guarded,
        area,
        ledger=ledger,
        epsilon=epsilon,
        method=method,
        groups=names,
        columns=columns,
        note=note,
    )


def rehearse(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    public: bool,
    epsilon: Number,
    method: Method[Any] = DEFAULT,
    noise: Noise | None = None,
) -> HeatmapRelease:
    """What a release would look like, on public or made-up data only: marked, stamped, charged to nobody.

    `public` says aloud that the rows are. With `noise` of a known key the same map comes again; a ledger of
    real data would refuse it.
    """
    asked = rehearse_exactly(
        source, columns, area, public=public, epsilon=epsilon, method=method, noise=noise
    )
    return asked[0]


def rehearse_exactly(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    public: bool,
    epsilon: Number,
    method: Method[Any] = DEFAULT,
    noise: Noise | None = None,
) -> tuple[HeatmapRelease, FloatArray]:
    """A rehearsal and beside it the exact picture, shares adding up to 1: for public or made-up data only."""
    if not public:
        raise InvalidParameter(
            "a rehearsal shows exact numbers of its rows: it takes rows that are public or made up, said "
            "aloud by --public (public=True); nothing was read"
        )
    ledger = Ledger.rehearsal(price(method, epsilon, area))
    sums = sum_public_cells(open_table(source, columns=columns), columns, area)
    guarded = guard_sums(sums, source=ledger.header.source)
    (rehearsed,) = release_sums(
        guarded, area, ledger=ledger, epsilon=epsilon, method=method, noise=noise, columns=columns
    )
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
    columns: Columns | None = None,
    title: str = "",
    note: str = "",
) -> tuple[HeatmapRelease, ...]:
    """One private map for each group of guarded sums, as one release that costs at most epsilon.

    `area_cost` is what `find_area` was paid for the area, if it was asked, and `columns` what was counted:
    the maps say so.
    """
    if guarded.bound.size != len(groups) * area.grid.size:
        raise InvalidParameter(
            f"sums of {len(groups)} group(s) on {area.grid.side} x {area.grid.side} cells are wanted, "
            f"got {guarded.bound.size} entries; nothing was charged"
        )
    meant = exact(epsilon, name="epsilon")
    mechanism, cost = _priced(method, meant, guarded.bound, area)
    pay = cost if isinstance(cost, PureDP) else None
    receipt = ledger.release(mechanism, guarded, noise=noise, pay=pay, note=note)
    # From here on everything is made of what was released: it costs nothing.
    counted = {} if columns is None else parameters(columns)
    return tuple(
        HeatmapRelease(
            tiles=inside(tiles, area),
            area=area,
            method=method.name,
            parameters=parameters(method),
            receipt=receipt,
            group=group,
            area_cost=area_cost,
            counted=counted,
            title=title,
        )
        for tiles, group in zip(method.estimate(receipt.value, area.grid), groups, strict=True)
    )


def price(method: Method[Any], epsilon: Number, area: Area, *, groups: int = 1) -> Loss:
    """What a release will be charged, known before any row is read."""
    bound = bound_of_sums(area.grid, groups)
    return _priced(method, exact(epsilon, name="epsilon"), bound, area)[1]


def _priced(
    method: Method[Any], epsilon: Fraction, bound: Bound, area: Area
) -> tuple[Mechanism[CellSums, Any], Loss]:
    """The mechanism and what is charged for it; refused when it could not be run after the charge."""
    if not hasattr(method, "mechanism"):
        raise InvalidParameter(
            f"a method is a value like PyramidMethod(width=60), got {method!r}; nothing was charged"
        )
    mechanism = method.mechanism(epsilon, bound, area.grid)
    if mechanism.draws(bound) > MOST_DRAWS:
        raise InvalidParameter(
            f"a map may draw at most {MOST_DRAWS} numbers, this one could {mechanism.draws(bound)}; ask for "
            "fewer levels, maps or cells a level; nothing was charged"
        )
    cost = mechanism.cost(bound)
    return mechanism, PureDP(epsilon) if isinstance(cost, PureDP) else cost
