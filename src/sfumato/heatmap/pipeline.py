"""From a table to private maps: sum, pay, sample, estimate; the ledger opens what was paid for."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter, SfumatoError, SolverFailed
from sfumato.heatmap.inference.bounded import inside_bounds
from sfumato.heatmap.inference.posterior import FINEST, CountsPosterior
from sfumato.heatmap.methods.protocol import Method
from sfumato.heatmap.methods.pyramid import Pyramid, PyramidMethod
from sfumato.heatmap.methods.zoom import ZoomMethod
from sfumato.heatmap.results import HeatmapRelease
from sfumato.heatmap.tiles import Tiles, dense_tiles, inside, public_tiles
from sfumato.privacy import UNITS, Bound, Guarded, Ledger, Loss, Mechanism, Noise, PureDP, Release
from sfumato.privacy.accounting import Number, exact, parameters
from sfumato.records import (
    CellSums,
    Columns,
    Periods,
    bound_of_groups,
    bound_of_sums,
    guard_sums,
    open_table,
    sum_cells,
    sum_public_cells,
)
from sfumato.spaces import Area

# Some gigabytes of noise and a few minutes: what a machine can be asked for once a map is paid for.
MOST_DRAWS = 2**25
DEFAULT = ZoomMethod()


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

    Every user has mass 1 over all cells, however many rows they have. Reading comes first and costs
    nothing; then the ledger charges epsilon, and only then is anything sampled.

    Privacy: epsilon (with the delta of the method, if it has one) for each `unit` of the ledger
    added or removed.
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


def release_periods(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    periods: Periods,
    ledger: Ledger,
    epsilon: Number,
    method: Method[Any] = DEFAULT,
    note: str = "",
) -> dict[str, HeatmapRelease]:
    """One private map for each period, in order, also for those in which nobody was: the frames of a film.

    A user's mass 1 is shared over all cells and periods, so all maps together cost epsilon once.
    With mass per period every map has the accuracy of epsilon, and they cost epsilon times the
    number of periods: the sums of a user move by that many masses. A ledger whose unit is a
    user-day (for days, and so on) is charged epsilon once, since a user-day has one of them; it
    pays for nothing else, and by one clock only.
    """
    maps = _released(
        source, periods.in_table(columns), area, ledger, epsilon, method, periods, note
    )
    return dict(zip(periods.names, maps, strict=True))


def _released(
    source: Any,
    columns: Columns,
    area: Area,
    ledger: Ledger,
    epsilon: Number,
    method: Method[Any],
    groups: Sequence[str] | Periods | None,
    note: str,
) -> tuple[HeatmapRelease, ...]:
    named = ("",) if groups is None else groups
    # What the ledger would refuse in the end, it refuses before any row is read.
    bound = bound_of_groups(area.grid, groups, unit=ledger.header.unit)
    ledger.afford(_priced(method, exact(epsilon, name="epsilon"), bound, area)[1], bound=bound)
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
        groups=named,
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

    `public` says aloud that the rows are. With `noise` of a known key the same map comes again; a
    ledger of real data would refuse it.
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
    groups: Sequence[str] | Periods = ("",),
    noise: Noise | None = None,
    area_cost: PureDP | None = None,
    columns: Columns | None = None,
    title: str = "",
    note: str = "",
) -> tuple[HeatmapRelease, ...]:
    """One private map for each group of guarded sums, as one release.

    It costs at most epsilon for each mass of UNITS by which the sums can move: once, unless users
    have mass per period. `area_cost` is what `find_area` was paid for the area, if it was asked,
    and `columns` what was counted: the maps say so.
    """
    names = _names(groups)
    if guarded.bound.size != len(names) * area.grid.size:
        raise InvalidParameter(
            f"sums of {len(names)} group(s) on {area.grid.side} x {area.grid.side} cells are wanted, "
            f"got {guarded.bound.size} entries; nothing was charged"
        )
    meant = exact(epsilon, name="epsilon")
    mechanism, cost = _priced(method, meant, guarded.bound, area)
    pay = cost if isinstance(cost, PureDP) else None
    receipt = ledger.release(mechanism, guarded, noise=noise, pay=pay, note=note)
    # From here on everything is made of what was released: it costs nothing.
    counted = {} if columns is None else parameters(columns)
    try:
        made = _made(method, mechanism, receipt.value, area)
    except BaseException as problem:  # an interrupt too: what is paid for is not thrown away
        raise _kept(receipt, problem) from problem
    return tuple(
        HeatmapRelease(
            tiles=inside(tiles, area),
            area=area,
            method=method.name,
            parameters=parameters(method),
            receipt=receipt,
            group=group,
            area_cost=area_cost,
            counted=counted
            | ({"period": groups.told(number)} if isinstance(groups, Periods) else {}),
            title=title,
            posterior=known,
        )
        for number, (group, (tiles, known)) in enumerate(zip(names, made, strict=True))
    )


def _made(
    method: Method[Any], mechanism: Mechanism[CellSums, Any], released: Any, area: Area
) -> list[tuple[Tiles, CountsPosterior | None]]:
    """The estimate of each map, and what else could have led to its counts where the method knows."""
    if isinstance(method, ZoomMethod):
        level = min(area.grid.levels, FINEST)
        return [
            (dense_tiles(area.grid, level, inside_bounds(one.means(level), one.counts, area)), one)
            for one in method.posteriors(released)
        ]
    estimates = method.estimate(released, area.grid)
    if (
        isinstance(method, PyramidMethod)
        and isinstance(mechanism, Pyramid)
        and mechanism.first_level <= FINEST
    ):
        return list(zip(estimates, method.posteriors(released, mechanism), strict=True))
    return [(tiles, None) for tiles in estimates]


def _kept(receipt: Release[Any], problem: BaseException) -> SolverFailed:
    """What was released is paid for: it is not lost with the map that could not be made of it."""
    path = Path(tempfile.gettempdir()) / f"sfumato-paid-{receipt.entry.hash[:12]}.json"
    try:
        receipt.write(path)
        kept = f"kept in {path}"
    except (OSError, SfumatoError):
        kept = "and could not be kept"
    said = str(problem) or type(problem).__name__
    return SolverFailed(f"no map could be made of its counts ({said}); they are paid for, {kept}")


def _names(groups: Sequence[str] | Periods) -> tuple[str, ...]:
    return groups.names if isinstance(groups, Periods) else tuple(groups)


def price(
    method: Method[Any], epsilon: Number, area: Area, *, groups: int = 1, masses: int = 1
) -> Loss:
    """What a release will be charged, known before any row is read: epsilon for each mass a unit can have."""
    bound = bound_of_sums(area.grid, groups, masses=masses)
    return _priced(method, exact(epsilon, name="epsilon"), bound, area)[1]


def _priced(
    method: Method[Any], epsilon: Fraction, bound: Bound, area: Area
) -> tuple[Mechanism[CellSums, Any], Loss]:
    """The mechanism and what is charged for it; refused when it could not be run after the charge."""
    if not hasattr(method, "mechanism"):
        raise InvalidParameter(
            f"a method is a value like ZoomMethod(blur=0.02), got {method!r}; nothing was charged"
        )
    # Each mass of UNITS pays epsilon: the noise of every map is then that of one map at epsilon.
    epsilon *= bound.required("l1", by="a map") / UNITS
    mechanism = method.mechanism(epsilon, bound, area.grid)
    if mechanism.draws(bound) > MOST_DRAWS:
        raise InvalidParameter(
            f"a map may draw at most {MOST_DRAWS} numbers, this one could {mechanism.draws(bound)}; ask for "
            "fewer levels, maps or cells a level; nothing was charged"
        )
    cost = mechanism.cost(bound)
    return mechanism, PureDP(epsilon) if isinstance(cost, PureDP) else cost
