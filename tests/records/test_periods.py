"""Periods: whole hours, days, weeks and months; one unit of privacy moves the sums as far as is said."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.records.plain import opened

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import UNITS
from sfumato.records import Columns, Periods, open_table, sum_cells
from sfumato.spaces import area_of_plane

DAY = datetime(2026, 1, 5)
WEEK = (DAY, DAY + timedelta(days=7))
AREA = area_of_plane((0.0, 0.0, 1.0, 1.0), 1)
COLUMNS = Columns("user", "x", "y", by="t")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("unit", "start", "end", "first", "last", "count"),
    [
        ("hour", DAY, WEEK[1], "2026-01-05T00", "2026-01-11T23", 168),
        ("day", datetime(2024, 2, 28), datetime(2024, 3, 2), "2024-02-28", "2024-03-01", 3),
        ("week", datetime(2025, 12, 29), WEEK[1], "2026-W01", "2026-W02", 2),
        ("month", datetime(2025, 11, 1), datetime(2027, 1, 1), "2025-11", "2026-12", 14),
    ],
)
def test_every_period_has_a_name(
    unit: Any, start: datetime, end: datetime, first: str, last: str, count: int
) -> None:
    found = Periods("t", unit, start, end)
    assert (found.names[0], found.names[-1], found.count) == (first, last, count)
    assert len(set(found.names)) == len(found.starts) == count
    assert found.about(count - 1)["end"] == end.isoformat(timespec="minutes")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"unit": "year"}, "periods are one of"),
        (
            {"start": datetime(2026, 1, 5, 0, 30)},
            "whole day, 2026-01-05T00:00 is one and 2026-01-05T00:30",
        ),
        ({"unit": "week", "start": datetime(2026, 1, 6)}, "whole week, 2026-01-05T00:00 is one"),
        ({"end": DAY}, "periods end after they begin"),
        ({"end": datetime(2026, 1, 1)}, "periods end after they begin, got 2026-01-05"),
        ({"unit": "hour", "end": datetime(2026, 3, 1)}, "there are 1320 hours"),
        ({"start": DAY.replace(tzinfo=timezone.utc)}, "without an offset"),  # noqa: UP017 - as people write it
        ({"start": datetime(1950, 1, 1)}, "in the years 1973 to 2199"),
        ({"time_zone": "Europe/Atlantis"}, "a time zone is a name like Europe/Rome"),
        ({"time_zone": "../etc/passwd"}, "a time zone is a name like Europe/Rome"),
    ],
)
def test_periods_that_are_none_are_refused(changed: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"column": "t", "unit": "day", "start": DAY, "end": WEEK[1]} | changed
    with pytest.raises(InvalidParameter, match=f"{words}.*; nothing was read"):
        Periods(**asked)


@pytest.mark.unit
def test_a_unit_within_a_period_pays_once_and_only_with_a_mass_of_its_own() -> None:
    shared, each = (Periods("t", "day", *WEEK, mass_per_period=mass) for mass in (False, True))
    assert [shared.masses(unit) for unit in ("user", "household", "visitor")] == [1, 1, 1]
    assert [each.masses(unit) for unit in ("user", "user-day", "co-owner")] == [7, 1, 7]
    for periods, unit in (
        (shared, "user-day"),
        (shared, "user-hour"),
        (each, "user-hour"),
        (each, "user-week"),
    ):
        with pytest.raises(InvalidParameter, match=f"protects each {unit} .*; nothing was charged"):
            periods.masses(unit)


@pytest.mark.unit
@pytest.mark.parametrize(
    "values",
    [pa.array([1_767_225_600]), pa.array([1.5]), pa.array([True]), pa.array([1], pa.duration("s"))],
    ids=str,
)
def test_what_is_no_time_is_refused_with_advice(values: pa.Array) -> None:
    table = open_table(pa.table({"user": ["a"], "x": [0.5], "y": [0.5], "t": values}))
    with pytest.raises(
        InvalidInput, match=r"column 't' must hold times, .* cast seconds .*; nothing was counted"
    ):
        sum_cells(table, COLUMNS, AREA, source="t", groups=Periods("t", "day", *WEEK))


@pytest.mark.unit
def test_columns_and_periods_must_agree() -> None:
    periods = Periods("t", "day", *WEEK, mass_per_period=True)
    rows = open_table(pa.table({"user": ["a"], "x": [0.5], "y": [0.5], "t": ["2026-01-05"]}))
    with pytest.raises(InvalidParameter, match="must name that of the periods, by='t', got None"):
        sum_cells(rows, Columns("user", "x", "y"), AREA, source="t", groups=periods)
    with pytest.raises(InvalidParameter, match="by period or by the values of 'x', got both"):
        periods.in_table(Columns("user", "x", "y", by="x"))
    with pytest.raises(InvalidParameter, match="lies in one period"):
        periods.in_table(Columns(None, "x", "y", one_row_one_user=True))
    with pytest.raises(InvalidParameter, match=r"groups times cells must be at most 2\*\*32"):
        sum_cells(rows, COLUMNS, area_of_plane((0, 0, 1, 1), 16), source="t", groups=periods)


# how far one unit moves the sums, by trying all of them

PLACES = {0: (0.25, 0.25), 1: (0.75, 0.75)}
# (user, day, place): one user in both days and both places, one in a single place, one with many
# rows.
ROWS = [
    ("a", 0, 0), ("a", 0, 1), ("a", 1, 1),
    ("b", 1, 0),
    ("c", 0, 0), *[("c", 1, 1)] * 5,
]  # fmt: skip


def summed(
    rows: list[tuple[str, int, int]], periods: Periods, unit: str
) -> tuple[dict[int, int], Fraction]:
    """The sums, opened, and the l1 bound they were guarded with."""
    table = pa.table(
        {
            "user": pa.array([user for user, _, _ in rows], pa.string()),
            "x": pa.array([PLACES[place][0] for _, _, place in rows], pa.float64()),
            "y": pa.array([PLACES[place][1] for _, _, place in rows], pa.float64()),
            "t": pa.array(
                [periods.start + timedelta(days=day) for _, day, _ in rows], pa.timestamp("us")
            ),
        }
    )
    guarded = sum_cells(open_table(table), COLUMNS, AREA, source="t", unit=unit, groups=periods)
    return opened(guarded), guarded.bound.required("l1", by="a test")


def moved(periods: Periods, unit: str) -> tuple[int, Fraction]:
    """The furthest that leaving one unit out moves the sums, and the bound that was declared."""
    whole, bound = summed(ROWS, periods, unit)
    days = [None] if unit == "user" else [0, 1]
    furthest = 0
    for user, day in itertools.product("abc", days):
        rest, _ = summed(
            [row for row in ROWS if row[0] != user or day not in (None, row[1])], periods, unit
        )
        cells = whole.keys() | rest.keys()
        furthest = max(furthest, sum(abs(whole.get(cell, 0) - rest.get(cell, 0)) for cell in cells))
    return furthest, bound


@pytest.mark.unit
@pytest.mark.parametrize(
    ("unit", "mass", "masses"), [("user", False, 1), ("user", True, 2), ("user-day", True, 1)]
)
def test_one_unit_moves_the_sums_as_far_as_is_declared_and_no_further(
    unit: str, mass: bool, masses: int
) -> None:
    periods = Periods("t", "day", DAY, DAY + timedelta(days=2), mass_per_period=mass)
    furthest, bound = moved(periods, unit)
    assert furthest <= bound == masses * UNITS
    # It is reached, up to what whole units cannot share: any smaller declaration would be false.
    assert furthest >= masses * UNITS - 4


@pytest.mark.unit
def test_a_day_of_a_user_who_shares_one_mass_would_move_more_than_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Why that is refused: without its day of five rows, the mass of user c runs to the other day."""
    monkeypatch.setattr(Periods, "masses", lambda self, unit: 1)
    furthest, bound = moved(Periods("t", "day", DAY, DAY + timedelta(days=2)), "user-day")
    assert bound == UNITS < furthest


@pytest.mark.unit
@pytest.mark.parametrize("unit", ["weekday", "weekend", "hour-of-day", "whole"])
def test_days_of_users_do_not_pay_for_what_comes_again(
    unit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one day, the mass of the others in the same map grows: it moves by nearly two."""
    fortnight = Periods("t", unit, DAY, DAY + timedelta(days=14), mass_per_period=True)
    for within in ("user-day", "user-hour", "user-week"):
        with pytest.raises(
            InvalidParameter,
            match=f"protects each {within} does not pay for maps by {unit}: .*; nothing was charged",
        ):
            fortnight.masses(within)
    assert fortnight.masses("user") == fortnight.count == len(fortnight.names)
    assert Periods("t", unit, *WEEK).masses("user") == 1
    monkeypatch.setattr(Periods, "masses", lambda self, unit: 1)
    # Two Mondays, at the same hour: 100 rows here on one of them, a row there on the other.
    table = {"user": ["a"] * 101, "x": [0.25] * 100 + [0.75], "y": [0.25] * 100 + [0.75]}
    times = ["2026-01-05T07:00"] * 100 + ["2026-01-12T07:00"]

    def summed(first: int) -> dict[int, int]:
        rows = pa.table({**table, "t": times}).slice(first)
        return opened(sum_cells(open_table(rows), COLUMNS, AREA, source="t", groups=fortnight))

    whole, rest = summed(0), summed(100)
    moved = sum(abs(whole.get(cell, 0) - rest.get(cell, 0)) for cell in whole.keys() | rest.keys())
    assert moved > 1.9 * UNITS


@pytest.mark.unit
def test_what_comes_again_is_named_and_told_in_order() -> None:
    week = Periods("t", "weekday", *WEEK)
    assert (week.count, week.names[0], week.names[-1]) == (7, "monday", "sunday")
    assert Periods("t", "weekend", *WEEK).names == ("weekday", "weekend")
    assert Periods("t", "whole", *WEEK).names == ("2026-01-05--2026-01-12",)
    hours = Periods("t", "hour-of-day", *WEEK)
    assert (hours.count, hours.names[0], hours.names[-1]) == (24, "00h", "23h")
    assert [week.about(number)["number"] for number in range(7)] == list(range(7))
    assert week.about(3)["start"] == "2026-01-05T00:00"
    assert week.about(3)["end"] == "2026-01-12T00:00"
    with pytest.raises(InvalidParameter, match="begin and end with a whole day"):
        Periods("t", "weekday", DAY + timedelta(hours=1), WEEK[1])


@pytest.mark.unit
def test_a_mass_per_period_that_is_declared_as_one_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Periods, "masses", lambda self, unit: 1)
    furthest, bound = moved(
        Periods("t", "day", DAY, DAY + timedelta(days=2), mass_per_period=True), "user"
    )
    assert bound < furthest


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore:fetch_arrow_table")
def test_a_session_of_duckdb_in_another_zone_is_refused() -> None:
    import ibis

    database = ibis.duckdb.connect()
    database.raw_sql(
        "create table v as select 'a' as user, .5 as x, .5 as y, '2026-01-06 02:00Z'::timestamptz as t"
    )
    area = area_of_plane((0, 0, 1, 1), 0)
    periods = Periods("t", "day", datetime(2026, 1, 5), datetime(2026, 1, 8))
    columns = Columns("user", "x", "y", by="t")
    found = opened(sum_cells(database.table("v"), columns, area, source="t", groups=periods))
    assert found == {1: UNITS}
    database.raw_sql("set timezone = 'America/Lima'")
    with pytest.raises(
        InvalidInput, match=r"must be in UTC .* it is in 'America/Lima'.*nothing was counted"
    ):
        sum_cells(database.table("v"), columns, area, source="t", groups=periods)


WRITTEN = [
    "2026-01-06T07:15:00+02:00", "2026-01-06 05:15:00+00", "2026-01-06 01:15-0400", "2026-01-06 05:15 +00:00",
    "2026-01-06 05:15:00.5 UTC", "2026-01-06T05:15Z", "20260106T051500Z", "20260106T0115-04",
]  # fmt: skip


@pytest.mark.engine
@pytest.mark.parametrize("odd", ["06/01/2026 05:15", "1767676500", "2026-01-06T05:15", ""])
def test_every_form_of_a_time_is_read_in_its_own_row_whatever_others_hold(
    odd: str, tmp_path: Path
) -> None:
    """One user's text chooses no format for the column: the rows of the others do not move."""
    path = tmp_path / "visits.csv"
    hour = Periods("t", "hour", datetime(2026, 1, 6, 5), datetime(2026, 1, 6, 6))
    rows = [f"{number},0.25,0.25,{text}" for number, text in enumerate(WRITTEN)]
    path.write_text("\n".join(["user,x,y,t", f"odd,0.75,0.75,{odd}", *rows]))
    found = opened(sum_cells(open_table(path), COLUMNS, AREA, source="t", groups=hour))
    assert found.pop(0) == len(WRITTEN) * UNITS
    assert found == ({3: UNITS} if odd.startswith("2026") else {})
