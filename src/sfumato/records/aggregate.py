"""Rows to guarded sums: one expression for every engine, the same integers on each."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from sfumato._types import IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import UNITS, Guarded
from sfumato.privacy.ledger import Source, Table
from sfumato.records.cells import CellSums, bound_of_sums, guard_sums
from sfumato.records.columns import MAX_CAP, Columns, check_columns
from sfumato.records.engines import arrow_table
from sfumato.records.fields import (
    as_double,
    computed_once,
    double,
    finite,
    group_key,
    types_are_hints,
    user_key,
    without_underflow,
)
from sfumato.records.groups import (
    Groups,
    Part,
    bounded_for,
    check_whole,
    count_of,
    parts_of,
    periods_of,
    whole_parts,
)
from sfumato.records.periods import Periods, in_periods
from sfumato.records.quiet import quietly
from sfumato.spaces import Area

# What the columns of a query are called that tell the names in each part of the groups.
PART_NAMES = ("group", "group2")
Keys = list[dict[Hashable, int]]


def sum_cells(
    table: Any,
    columns: Columns,
    area: Area,
    *,
    source: Source,
    unit: str = "user",
    groups: Groups = None,
    identity: Table | None = None,
) -> Guarded[CellSums]:
    """The mass of every cell, guarded: each user's rows share at most UNITS indivisible units.

    A user with n(c) rows (or steps of weight) in cell c gives it floor(n(c) * UNITS / sum of n)
    units, or floor(n(c) * UNITS / max(K, sum of n)) where `rows_per_user` is K; sums of these do
    not depend on the order of rows, on threads or on the engine. Rows are
    left out, silently, that have no user (NULL, NaN or infinite, empty text), no finite place
    inside the bounds of the area, a weight that is no finite number or is below one step, or a
    group that is none of `groups`. With mass per period, the rows of a user in each period share
    UNITS of their own, with mass per value those in each value.

    Privacy: adding or removing one user changes the sums by at most UNITS in l1, with mass per
    period (or value) by UNITS for each period the unit of privacy can be in, as their bound says. A
    unit that names a period, or a column of values, is refused for anything but these.

    Args:
        table: What `open_table` gave.
        columns: Which columns hold users, places, weights and groups.
        area: The public area, and its grid.
        source: The name of the data source, that of the ledger; or `REHEARSAL`.
        unit: The unit of privacy.
        groups: Public names of groups, values of a column, periods, or pairs of these; by default
            all rows are one group.
        identity: What `table_identity` says of the table, for the ledger.

    Returns:
        The sums of all cells of all groups, under guard.

    Raises:
        InvalidInput: A column is missing or has a type that cannot be used, or the engine failed;
            no row is quoted.
        InvalidParameter: The unit does not fit the groups.

    """
    masses, clock = bounded_for(unit, groups, columns.by)
    check_whole(unit, groups, table.columns, columns.user)
    sums = _counted(table, columns, area, str(source), groups)
    return guard_sums(
        sums,
        source=source,
        unit=unit,
        clock=clock,
        periods=periods_of(unit, groups),
        masses=masses,
        table=identity,
    )


def sum_public_cells(
    table: Any, columns: Columns, area: Area, *, groups: Groups = None
) -> CellSums:
    """The same sums of public or made-up rows, open to read: for rehearsals, never for private rows.

    Args:
        table: What `open_table` gave.
        columns: Which columns hold users, places, weights and groups.
        area: The public area, and its grid.
        groups: Public names of groups, values, periods or pairs.

    Returns:
        The sums, open to read.

    Raises:
        InvalidInput: A column is missing, or the engine failed.

    """
    return _counted(table, columns, area, "public rows", groups)


def _counted(table: Any, columns: Columns, area: Area, source: str, groups: Groups) -> CellSums:
    check_columns(table.columns, columns)
    parts = parts_of(groups, columns)
    bound_of_sums(area.grid, count_of(groups))  # refuses more cells than there can be
    rows, keys = _rows(table, columns, area, parts)
    sums = _sums(rows, columns, parts, groups)
    found = quietly(
        lambda: arrow_table(sums),
        f"{table.get_backend().name} could not read or count the rows of {source}; nothing was charged",
    )
    return _as_cell_sums(found, area, parts, keys)


def _sums(rows: Any, columns: Columns, parts: tuple[Part, ...], groups: Groups) -> Any:
    """Columns: cell (row * side + column), units, and the parts of the group where there are several."""
    names = list(PART_NAMES[: len(parts)])
    place = [*names, "cell"]
    if columns.user is None:
        return rows.group_by(place).agg(units=rows.count() * UNITS)
    count = rows.steps.sum() if columns.weight else rows.count()
    visits = rows.group_by(["user", *place]).agg(count=ibis.least(count.cast("int64"), MAX_CAP))
    # At most 2**32 cells of at most 2**30 each: a total stays below 2**63 on engines whose sums
    # wrap.
    own = whole_parts(groups)
    whole = ["user", *(name for name, part in zip(names, parts, strict=True) if part in own)]
    of_each = _with_totals(visits, whole)
    # A user with fewer rows than the cap has less than mass 1: each row counts one of `rows_per_user`.
    total = ibis.greatest(of_each.total, columns.rows_per_user or 1)
    # Ibis divides in double and takes the floor, which is exact here. Let a = count * UNITS <=
    # 2**50, b the total, n the least integer above a / b: then n - a / b >= 1 / b. Doubles below n
    # lie less than n * 2**-52 apart, so rounding reaches n only if 1 / b <= n * 2**-53, that is n *
    # b >= 2**53. But n * b <= a + b, at most 2**51 for b <= 2**50. For larger b, n is 1, and b >=
    # 2**53 means a / b <= 2**-3.
    shares = of_each.select(*place, units=(of_each["count"] * UNITS) // total)
    return shares.group_by(place).agg(units=shares.units.sum().cast("int64"))


def _with_totals(visits: Any, whole: list[str]) -> Any:
    """Visits with the `total` of whom they are of.

    By a window: PostgreSQL takes a table that nobody analyzed for small, and would join it with
    itself row by row. DuckDB and Polars hash, which takes half the time of a window there.
    """
    total = visits["count"].sum()
    if visits.get_backend().name in ("duckdb", "polars"):
        return visits.join(visits.group_by(whole).agg(total=total.cast("int64")), whole)
    return visits.mutate(total=total.over(group_by=whole).cast("int64"))


def _rows(table: Any, columns: Columns, area: Area, parts: tuple[Part, ...]) -> tuple[Any, Keys]:
    """The rows that count, with user, cell, group, steps, each where it is needed; and the numbers of names.

    What a field says is read in a projection of its own, and computed once: in one with what
    follows it is computed at every use.
    """
    fields: dict[str, Any] = {
        name: as_double(table[of], of) for name, of in (("x", columns.x), ("y", columns.y))
    }
    keys: Keys = []
    there = ibis.literal(True)
    if columns.user is not None:
        fields["user"], there = user_key(table[columns.user], columns.user)
    if columns.weight is not None:
        fields["weight"] = _weight(table[columns.weight], columns)
    for name, part in zip(PART_NAMES, parts, strict=False):
        numbers: dict[Hashable, int] = {}
        if isinstance(part, Periods):
            fields[name] = table[part.column]
        else:
            fields[name], public, numbers = group_key(table[part.column], part.column, part.names)
            there &= fields[name].isin(public)
        keys.append(numbers)
    read = computed_once(table.select(**fields, there=there))
    rows = computed_once(_kept(read, columns, area))
    for name, part in zip(PART_NAMES, parts, strict=False):
        if isinstance(part, Periods):
            rows = _in_periods(rows, part, name)
    grid = area.grid
    first_column, first_row, end_column, end_row = area.window(grid.levels)
    others = [name for name in rows.columns if name not in ("x", "y")]
    low_x, low_y = grid.bounds[:2]
    guessed = {
        "column": _guess(rows.x, low_x, grid.cell_width, grid.side),
        "row": _guess(rows.y, low_y, grid.cell_height, grid.side),
    }
    rows = computed_once(rows.mutate(**guessed))
    # A point on the far edge of the bounds belongs to the last cell inside them.
    column = _between(
        _slot(rows.x, rows.column, low_x, grid.cell_width, grid.side), first_column, end_column
    )
    row = _between(_slot(rows.y, rows.row, low_y, grid.cell_height, grid.side), first_row, end_row)
    return rows.select(*others, cell=row * grid.side + column), keys


def _in_periods(rows: Any, periods: Periods, name: str) -> Any:
    """The rows in the periods, whose number takes the place of the time in a column."""
    if name == "group":
        return in_periods(rows, periods)
    found = in_periods(rows.rename(other="group", group=name), periods)
    return found.rename({name: "group", "group": "other"})


def _kept(read: Any, columns: Columns, area: Area) -> Any:
    """The rows inside the area that count, their points moved between its bounds, their weights as steps."""
    west, south, east, north = area.bounds
    x, y = without_underflow(read.x), without_underflow(read.y)
    if area.crosses_antimeridian:
        x = (x < double(west)).ifelse(x + double(360), x)
    across = finite(x) & (x >= double(west)) & (x <= double(east))
    upright = finite(y) & (y >= double(south)) & (y <= double(north))
    edge = _edge_at_180(area)
    # A point that is kept and not across lies on the edge, under its other name.
    kept: dict[str, Any] = {
        "x": across.ifelse(x, double(edge or west)),
        "y": upright.ifelse(y, double(south)),
    } | {name: read[name] for name in ("user", *PART_NAMES) if name in read.columns}
    keep = (across if edge is None else across | (x == double(-edge))) & upright & read.there
    if columns.weight is not None:
        heavy, kept["steps"] = _steps(read.weight, columns)
        keep &= heavy
    return read.filter(keep).select(**kept)


def _edge_at_180(area: Area) -> int | None:
    """Which of 180 and -180, one meridian, is an edge of an area that does not hold the other."""
    west, _, east, _ = area.bounds
    if area.kind != "degrees" or area.crosses_antimeridian or (west == -180) == (east == 180):
        return None
    return 180 if east == 180 else -180


def _guess(points: Any, low: float, width: float, side: int) -> Any:
    """The slot of points by one division, at most one too far or too near.

    Points were moved inside the bounds before: no value of a row can overflow the cast.
    """
    return ibis.least(((points - double(low)) / double(width)).floor().cast("int64"), side - 1)


def _slot(points: Any, guess: Any, low: float, width: float, side: int) -> Any:
    """The last k with low + k * width <= point, at most side - 1: `Grid.cells_of`, operation by operation.

    Every step is one rounding of IEEE arithmetic on every engine, so that all agree to the bit.
    """
    at = guess.cast("float64")
    too_far = (points < double(low) + at * double(width)).ifelse(1, 0)
    too_near = (points >= double(low) + (at + double(1)) * double(width)).ifelse(1, 0)
    return ibis.least(guess - too_far + too_near, side - 1)


def _between(slot: Any, first: int, end: int) -> Any:
    """The slot, or the nearest one from first to before the end."""
    return ibis.greatest(ibis.least(slot, end - 1), first)


def _weight(column: Any, columns: Columns) -> Any:
    """The weights, as the whole numbers they are if their lattice is that of whole numbers."""
    whole = column.type().is_integer()
    if columns.step is None and not whole:
        raise InvalidParameter(
            f"weights in column {columns.weight!r} may have decimals: say their lattice, e.g. "
            "`weight_step=0.001` (1 for whole numbers); what is below one step counts nothing; "
            "nothing was counted"
        )
    exact = whole and columns.step in (None, 1) and not types_are_hints(column)
    return column if exact else as_double(column, str(columns.weight))


def _steps(weight: Any, columns: Columns) -> tuple[Any, Any]:
    """Whether a weight counts, and its steps: floor(min(weight, cap * step) / step), at least 1.

    A weight below step counts nothing and is left out: rounded or not, weight / step >= 1 only from
    step on.
    """
    if weight.type().is_integer():
        return weight >= 1, ibis.least(weight, columns.cap).cast("int64")
    step = float(columns.step or 1)
    keep = finite(weight) & (weight >= double(step))
    clipped = keep.ifelse(ibis.least(weight, double(columns.cap * step)), double(step))
    return keep, ibis.least((clipped / double(step)).floor().cast("int64"), columns.cap)


def _as_cell_sums(found: Any, area: Area, parts: tuple[Part, ...], keys: Keys) -> CellSums:
    """Sorted Z-order codes; bits are interleaved here, once per cell, not once per row in SQL."""
    grid = area.grid
    cells, units = _whole_numbers(found["cell"]), _whole_numbers(found["units"])
    group, count = np.zeros(cells.shape, dtype=np.int64), 1
    for name, part, numbers in zip(PART_NAMES, parts, keys, strict=False):
        if isinstance(part, Periods):
            number = _whole_numbers(found[name])
        else:
            # Keys were compared by bytes or as whole numbers: each is one of the public ones.
            which = found[name].dictionary_encode().combine_chunks()
            known = [numbers[key] for key in which.dictionary.to_pylist()]
            number = np.array(known, dtype=np.int64)[_whole_numbers(which.indices)]
        group, count = group * part.count + number, count * part.count
    codes = grid.size * group + grid.encode(cells % grid.side, cells // grid.side)
    order = np.argsort(codes)
    order = order[units[order] > 0]
    return CellSums(grid, codes[order], units[order], count, area)


def _whole_numbers(column: Any) -> IntArray:
    """A column of whole numbers, read from its memory: pyarrow's own way loads pandas, if it is there."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(whole):
        return np.zeros(0, dtype=np.int64)
    if whole.null_count:
        raise InvalidInput("an engine returned sums without a number; nothing was counted")
    # A cast loads all functions of Arrow, and most columns are read without.
    if pa.types.is_decimal128(whole.type) and whole.type.scale == 0:
        mine = slice(whole.offset, whole.offset + len(whole))
        halves = np.frombuffer(whole.buffers()[1], "<i8").reshape(-1, 2)[mine]
        if np.array_equal(halves[:, 1], halves[:, 0] >> 63):  # the upper half is but the sign
            return halves[:, 0].astype(np.int64)
    fits = pa.types.is_integer(whole.type) and whole.type != pa.uint64()
    numbers = whole if fits else whole.cast(pa.int64())
    kind, memory = np.dtype(str(numbers.type)), numbers.buffers()[1]
    found = np.frombuffer(memory, kind, count=len(numbers), offset=kind.itemsize * numbers.offset)
    return found.astype(np.int64, copy=False)
