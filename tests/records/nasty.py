"""Tables that engines disagree about, if they are let."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from tests.records.plain import Row

from sfumato.records import Columns, Groups, Pairs, Periods, Values
from sfumato.spaces import Area, area_in_degrees, area_of_image, area_of_plane


@dataclass(frozen=True)
class Case:
    """A table, what its columns mean, and where."""

    table: pa.Table
    columns: Columns
    area: Area
    groups: Groups = None

    @property
    def rows(self) -> list[Row]:
        # Python has no nanoseconds and no time before the year 1 or after 9999: none of these is in
        # a period.
        return [dict(row) for row in _told(self.table).to_pylist()]


def _told(table: pa.Table) -> pa.Table:
    """Times as Python can hold them, rounded down; those it cannot hold are left out."""
    for place, column in enumerate(table.columns):
        if pa.types.is_timestamp(column.type):
            parts = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
            seconds = [None if v is None else v // parts for v in column.cast("int64").to_pylist()]
            held = [None if v is None or abs(v) > 2**35 else v for v in seconds]
            moments = pa.array(held, pa.timestamp("s", tz=column.type.tz))
            table = table.set_column(place, table.column_names[place], moments)
        elif pa.types.is_date(column.type):
            days = [
                None if v is None or abs(v) > 2**18 else v for v in column.cast("int32").to_pylist()
            ]
            table = table.set_column(place, table.column_names[place], pa.array(days, pa.date32()))
    return table


def _moments(
    start: datetime, end: datetime, rng: np.random.Generator, size: int
) -> list[int | None]:
    """Microseconds from a day before to a day after, half of them about the full hours; some none at all."""
    low, high = (int(one.replace(tzinfo=UTC).timestamp()) for one in (start, end))
    drawn = rng.integers(10**6 * (low - 86_400), 10**6 * (high + 86_400), size)
    hours = drawn // (3600 * 10**6) * (3600 * 10**6) + rng.integers(-1, 2, size)
    chosen = np.where(rng.random(size) < 0.5, drawn, hours)
    return [None if rng.random() < 0.1 else int(one) for one in chosen]


PLANE = area_of_plane((-1.0, -1.0, 3.0, 2.0), 4)
CITY = area_in_degrees((-74.3, 40.5, -73.7, 40.9), 8)
PACIFIC = area_in_degrees((170, -20, -170, 0), 5)
ODD = [math.nan, math.inf, -math.inf, None, 1e300, -1e300, 5e-324, -0.0, 0.0]
TEXTS = [
    "1", " 1.5", "1.5 ", "\t0.5", "1_000", "0x1", "1e0", "1E-3", "1d", "1f", "inf", "-inf", "nan", "NaN",
    "+1", "1.", ".5", "1e-999", "1e400", "1,5", "", " ", "abc", None, "0.1234567890123456789012345",
    "2.99999999999999999999", "1e1000", "--1", "1\n", "infinity", "true",
    "٣", "9" * 50, "1" + "0" * 30 + "e-30",
]  # fmt: skip
TIMES: list[Callable[[datetime], str | None]] = [
    lambda t: t.isoformat(),
    lambda t: f" {t.replace(tzinfo=None)}\n",
    lambda t: t.astimezone(timezone(timedelta(hours=-9, minutes=-30))).isoformat(),
    lambda t: f"{t:%Y-%m-%dT%H:%MZ}",
    lambda t: f"{t:%Y-%m-%d}",
    lambda t: f"{t:%Y-%m}-29",
    lambda t: f"{t:%Y-%m}-31 23:59:59.999999999",
    lambda t: f"{t:%Y-%m-%d} 24:00",
    lambda t: f"{t:%d.%m.%Y}",
    lambda t: f"{t:%Y-%m-%dT%H:%M}+15:00",
    lambda t: "٢٠٩٩-١٢-٠١",
    # As DuckDB, PostgreSQL, pandas and logs write them; then what looks like them and is not read.
    lambda t: f"{t:%Y-%m-%d %H:%M:%S}+00",
    lambda t: f"{t.astimezone(timezone(timedelta(hours=-4))):%Y-%m-%d %H:%M:%S.%f}-04",
    lambda t: f"{t.astimezone(timezone(timedelta(hours=5, minutes=45))):%Y-%m-%dT%H:%M} +0545",
    lambda t: f"{t:%Y-%m-%d %H:%M:%S} UTC",
    lambda t: f"{t:%Y%m%dT%H%M%SZ}",
    lambda t: f"{t.astimezone(timezone(timedelta(hours=2))):%Y%m%dT%H%M}+02:00",
    lambda t: f"{t:%Y%m%dT%H:%M:%S}",
    lambda t: f"{t:%Y%m%d}",
    lambda t: f"{t:%Y-%m-%d %H:%M:%S}  +00:00",
    lambda t: f"{t:%Y-%m-%d %H:%M:%S} EST",
    lambda t: f"{t:%Y-%m-%d}+00",
    lambda t: "",
]


def _edges(area: Area, rng: np.random.Generator, size: int) -> tuple[list[float], list[float]]:
    """Points on the edges of cells, and a rounding before and after."""
    x, y = area.grid.edges()
    near = [-math.inf, math.inf]
    across = [
        float(np.nextafter(v, rng.choice(near))) if rng.random() < 0.6 else float(v)
        for v in rng.choice(x, size)
    ]
    up = [
        float(np.nextafter(v, rng.choice(near))) if rng.random() < 0.6 else float(v)
        for v in rng.choice(y, size)
    ]
    return across, up


def cases(rng: np.random.Generator) -> dict[str, Case]:
    """All cases; the generator decides where points lie."""
    n = 300
    users = [None if u == 0 else int(u) for u in rng.integers(0, 12, n)]
    x, y = rng.uniform(-1.5, 3.5, n), rng.uniform(-1.5, 2.5, n)
    weights = [None, -1, 0, 1, 2, 2**40, 2**62, 7, 1000]
    basic = Columns("user", "x", "y")
    out = {
        "points": Case(pa.table({"user": users, "x": x, "y": y}), basic, PLANE),
        "text users": Case(
            pa.table({"user": pa.array(["", "a", "A", "a ", None, "é"] * 50), "x": x, "y": y}),
            basic,
            PLANE,
        ),
        "float users": Case(
            pa.table({"user": [0.0, -0.0, math.nan, None, 1.5, 2.0] * 50, "x": x, "y": y}),
            basic,
            PLANE,
        ),
        "odd places": Case(
            pa.table(
                {
                    "user": [1, 2, 3] * 27,
                    "x": pa.array([a for a in ODD for _ in ODD], pa.float64()),
                    "y": pa.array([b for _ in ODD for b in ODD], pa.float64()),
                }
            ),
            basic,
            PLANE,
        ),
        "text places": Case(
            pa.table(
                {
                    "user": [1, 2] * len(TEXTS),
                    "x": TEXTS + ["0.5"] * len(TEXTS),
                    "y": ["0.25"] * len(TEXTS) + TEXTS,
                }
            ),
            basic,
            PLANE,
        ),
        "weights": Case(
            pa.table({"user": users, "x": x, "y": y, "w": pa.array((weights * n)[:n], pa.int64())}),
            Columns("user", "x", "y", weight="w", step=1),
            PLANE,
        ),
        "heavy": Case(
            pa.table({"user": [1] * n, "x": x, "y": y, "w": [2**40] * n}),
            Columns("user", "x", "y", weight="w", step=1, cap=2**30),
            PLANE,
        ),
        "seconds": Case(
            pa.table(
                {
                    "user": users,
                    "x": x,
                    "y": y,
                    "w": pa.array(
                        [[*ODD, 0.25, 1.75, 90.0][i % 12] for i in range(n)], pa.float64()
                    ),
                }
            ),
            Columns("user", "x", "y", weight="w", step=Fraction(1, 1000), cap=60_000),
            PLANE,
        ),
        "all cells": Case(
            pa.table(
                {
                    "user": [7] * PLANE.grid.size + [8],
                    "x": np.append(PLANE.grid.centers(np.arange(PLANE.grid.size))[:, 0], 0.0),
                    "y": np.append(PLANE.grid.centers(np.arange(PLANE.grid.size))[:, 1], 0.0),
                }
            ),
            basic,
            PLANE,
        ),
        "groups": Case(
            pa.table(
                {"user": users, "x": x, "y": y, "image": ["b", "a", "secret", None, "A"] * 60}
            ),
            Columns("user", "x", "y", by="image"),
            area_of_image(3, 2, 3),
            ("a", "b", "never"),
        ),
        "numbered groups": Case(
            pa.table({"user": users, "x": x, "y": y, "image": [i % 4 for i in range(n)]}),
            Columns("user", "x", "y", by="image"),
            area_of_image(3, 2, 3),
            ("2", "0", "x", "03"),
        ),
        "mass per value": Case(
            pa.table({"user": users, "x": x, "y": y, "image": ["b", "a", None, "A"] * 75}),
            Columns("user", "x", "y", by="image"),
            area_of_image(3, 2, 3),
            Values("image", ("a", "b", "never"), mass_per_value=True),
        ),
        "two columns": Case(
            pa.table(
                {
                    "user": users,
                    "x": x,
                    "y": y,
                    "image": ["b", "a", "secret", None, "A"] * 60,
                    "trial": pa.array([i % 7 - 1 for i in range(n)], pa.int8()),
                }
            ),
            Columns("user", "x", "y", by=("trial", "image")),
            area_of_image(3, 2, 3),
            Pairs(
                Values("trial", ("4", "-1", "2", "300")),
                Values("image", ("a", "b", "never"), mass_per_value=True),
            ),
        ),
        "unsigned": Case(
            pa.table(
                {
                    "user": pa.array([2**64 - 1, 2**63, 2**63 + 1] * 100, pa.uint64()),
                    "x": x,
                    "y": y,
                    "w": pa.array([2**63 + 5, 1, 2, 0] * 75, pa.uint64()),
                    "image": pa.array([2**63 + 5, 1, 2**64 - 1, None, 2] * 60, pa.uint64()),
                }
            ),
            Columns("user", "x", "y", weight="w", step=1, by="image"),
            area_of_image(3, 2, 3),
            ("1", "2", "-1", str(2**63 + 5), str(2**64)),
        ),
        "small groups": Case(
            pa.table(
                {
                    "user": users,
                    "x": x,
                    "y": y,
                    "image": pa.array([i % 4 - 1 for i in range(n)], pa.int8()),
                }
            ),
            Columns("user", "x", "y", by="image"),
            area_of_image(3, 2, 3),
            ("-1", "2", "300", "255"),
        ),
        "rows are users": Case(
            pa.table({"x": x, "y": y, "w": [0.0, -1.0, 2.5] * 100}),
            Columns(None, "x", "y", weight="w", step=1, one_row_one_user=True),
            PLANE,
        ),
        "antimeridian": Case(
            pa.table(
                {
                    "user": users,
                    "x": rng.uniform(-180, 180, n) // 2 * 2,
                    "y": rng.uniform(-20, 0, n),
                }
            ),
            basic,
            PACIFIC,
        ),
        "west of 180": Case(
            pa.table(
                {"user": users, "x": [180.0, -180.0, 175.0] * 100, "y": rng.uniform(0, 10, n)}
            ),
            basic,
            area_in_degrees((170, 0, 180, 10), 4),
        ),
        "east of 180": Case(
            pa.table(
                {"user": users, "x": [180.0, -180.0, -175.0] * 100, "y": rng.uniform(0, 10, n)}
            ),
            basic,
            area_in_degrees((-180, 0, -170, 10), 4),
        ),
        "the world": Case(
            pa.table({"user": users, "x": [180.0, -180.0, 0.0] * 100, "y": rng.uniform(0, 10, n)}),
            basic,
            area_in_degrees((-180, -90, 180, 90), 4, square=False),
        ),
        "nothing": Case(pa.table({"user": [1], "x": [99.0], "y": [99.0]}), basic, PLANE),
        "no rows": Case(pa.table({"user": [1], "x": [0.0], "y": [0.0]}).slice(1), basic, PLANE),
    }
    spring = Periods(
        "t", "hour", datetime(2026, 3, 28), datetime(2026, 3, 31), time_zone="Europe/Rome"
    )
    week = Periods("t", "day", datetime(2024, 2, 26), datetime(2024, 3, 4))
    weeks = Periods(
        "t", "week", datetime(2025, 12, 29), datetime(2026, 1, 19), mass_per_period=True
    )
    months = Periods(
        "t", "month", datetime(2099, 11, 1), datetime(2100, 4, 1), time_zone="Asia/Kolkata"
    )
    weekdays = Periods(
        "t", "weekday", datetime(2026, 2, 27), datetime(2026, 4, 2), time_zone="America/New_York"
    )
    # The clock is put back on 25 October: two hours there are one, and both are in it.
    by_the_clock = Periods(
        "t",
        "hour-of-day",
        datetime(2026, 10, 24),
        datetime(2026, 10, 27),
        time_zone="Europe/Rome",
        mass_per_period=True,
    )
    far = [2**61, -(2**61)] * 2
    at = {
        one: _moments(one.start, one.end, rng, n)
        for one in (spring, week, weeks, months, weekdays, by_the_clock)
    }
    short = [None if v is None else v // 10**6 for v in at[weeks]]
    fine = [None if v is None else 1000 * v + 999 for v in at[week]]
    texts = [
        None if v is None else TIMES[i % len(TIMES)](datetime.fromtimestamp(v / 10**6, UTC))
        for i, v in enumerate(at[months])
    ]
    people: dict[str, Any] = {"user": users, "x": x, "y": y}
    timed = Columns("user", "x", "y", by="t")
    out |= {
        "times in a zone": Case(
            pa.table(
                people
                | {"t": pa.array(at[spring][4:] + far, pa.timestamp("us", tz="America/Lima"))}
            ),
            timed,
            PLANE,
            spring,
        ),
        "fine times": Case(
            pa.table(people | {"t": pa.array(fine, pa.timestamp("ns"))}), timed, PLANE, week
        ),
        "mass per period": Case(
            pa.table(people | {"t": pa.array(short, pa.timestamp("s"))}), timed, PLANE, weeks
        ),
        "images by weekday": Case(
            pa.table(
                people
                | {
                    "t": pa.array(at[weekdays], pa.timestamp("us")),
                    "image": ["b", "a", None, "A"] * 75,
                }
            ),
            Columns("user", "x", "y", by=("image", "t")),
            PLANE,
            Pairs(Values("image", ("A", "b")), weekdays),
        ),
        "hours by weekday": Case(
            pa.table(people | {"t": pa.array(at[weekdays], pa.timestamp("us"))}),
            Columns("user", "x", "y", by=("t", "t")),
            PLANE,
            Pairs(weekdays, replace(weekdays, unit="hour-of-day")),
        ),
        "text times": Case(pa.table(people | {"t": texts}), timed, PLANE, months),
        "weekdays": Case(
            pa.table(people | {"t": pa.array(at[weekdays], pa.timestamp("us"))}),
            timed,
            PLANE,
            weekdays,
        ),
        "hours of the day": Case(
            pa.table(
                people
                | {
                    "t": [
                        None
                        if v is None
                        else TIMES[i % len(TIMES)](datetime.fromtimestamp(v / 10**6, UTC))
                        for i, v in enumerate(at[by_the_clock])
                    ]
                }
            ),
            timed,
            PLANE,
            by_the_clock,
        ),
        "dates": Case(
            pa.table(
                people
                | {
                    "t": pa.array(
                        [19_779 + i % 12 for i in range(n - 2)] + [2**30, -(2**30)], pa.date32()
                    )
                }
            ),
            timed,
            PLANE,
            week,
        ),
    }
    for name, area in (("edges", CITY), ("pacific edges", PACIFIC)):
        across, up = _edges(area, rng, n)
        out[name] = Case(pa.table({"user": users, "x": across, "y": up}), basic, area)
    return out


NAMES = tuple(cases(np.random.default_rng(list(b"only the names"))))
