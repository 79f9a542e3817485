"""A ledger pays for what its promise is about: its unit, its clock, its trust; and no name opens it free."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerDamaged, LedgerMismatch
from sfumato.graphon import Blocks
from sfumato.heatmap import release, release_heatmap
from sfumato.heatmap.methods import baselines, find_area
from sfumato.heatmap.pipeline.charging import release_sums
from sfumato.privacy import (
    REHEARSAL,
    UNITS,
    AddRemoveUser,
    Bound,
    DiscreteLaplace,
    FlippedEdge,
    Guarded,
    Ledger,
    PureDP,
    guard,
    histogram,
    read_release,
)
from sfumato.privacy.accounting import Clock
from sfumato.privacy.accounting.units import PERIODS, period_of
from sfumato.privacy.ledger import Spent
from sfumato.privacy.ledger.guarded import open_for_release
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.records import Columns, Periods, guard_sums, open_table, sum_cells, sum_public_cells
from sfumato.spaces import area_of_plane

HALF = DiscreteLaplace(2)
MONDAY = datetime(2026, 1, 5)
AREA = area_of_plane((0.0, 0.0, 1.0, 1.0), 3)
COLUMNS = Columns("user", "x", "y")
HOUR = timedelta(hours=1)


@pytest.fixture
def days(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "days.ledger", PureDP(100), unit="user-day", source="city")


def by_day(column: str = "t", zone: str = "UTC") -> Periods:
    start = MONDAY - timedelta(days=1)
    return Periods(
        column, "day", start, start + timedelta(days=5), time_zone=zone, mass_per_period=True
    )


def visits(*rows: tuple[float, float, datetime]) -> pa.Table:
    """Rows of one user."""
    xs, ys, when = zip(*rows, strict=True)
    return pa.table(
        {
            "user": ["a"] * len(rows),
            "x": pa.array(xs, pa.float64()),
            "y": pa.array(ys, pa.float64()),
            "image": ["one"] * len(rows),
            "t": pa.array(when, pa.timestamp("us")),
            "left": pa.array([moment + 9 * HOUR for moment in when], pa.timestamp("us")),
        }
    )


# One row on Monday and many on Tuesday, around midnight of everybody's clock.
STAYS = visits(
    (0.1, 0.9, MONDAY + 7 * HOUR), (0.1, 0.9, MONDAY + 23 * HOUR), (0.1, 0.9, MONDAY + 49 * HOUR)
)
TUESDAY = visits(
    *((0.9, 0.9, MONDAY + 24 * HOUR + hour * HOUR) for hour in (0.5, 1, 2, 9.5, 12, 20, 23, 23.5))
)
BOTH = pa.concat_tables([STAYS, TUESDAY])


# what a wrong answer would cost


def moved(groups: Periods | None, unit: str) -> Fraction:
    """By how many masses a user-day (Tuesday in UTC) moves the sums."""
    columns = COLUMNS if groups is None else groups.in_table(COLUMNS)
    sums = [
        open_for_release(
            sum_cells(open_table(table), columns, AREA, source="city", unit=unit, groups=groups)
        ).of_level(3)
        for table in (BOTH, STAYS)
    ]
    return Fraction(int(np.abs(sums[0] - sums[1]).sum()), UNITS)


@pytest.mark.unit
def test_a_user_day_moves_more_than_its_mass_in_maps_that_are_not_of_its_days() -> None:
    """Why they are refused: the sums of users, whose bound says nothing about user-days."""
    assert moved(by_day(), "user-day") == 1
    # Of one mass, 8 of 11 shares come from elsewhere, and go back.
    assert moved(None, "user") == pytest.approx(16 / 11, abs=1e-5)
    twice = sum(moved(by_day(zone=zone), "user") for zone in ("UTC", "Pacific/Kiritimati"))
    assert twice == pytest.approx(4.2, abs=1e-4)  # two releases had paid for 2


# a unit that names a period


@pytest.mark.property
@given(
    who=st.sampled_from(["user", "person", "co-owner", "Kunde"]), period=st.sampled_from(PERIODS)
)
def test_a_period_is_known_however_it_is_spelled(who: str, period: str) -> None:
    for unit in (
        f"{who}-{period}",
        f"{who} {period}s",
        f"{who}_{period.upper()}",
        f"{period} of a {who}",
    ):
        assert period_of(unit) == period
    assert period_of(f"{who}{period.capitalize()}") == period
    assert period_of(f"{who}{period}") == period
    assert period_of(who) is None


@pytest.mark.unit
def test_units_of_other_rooms_name_no_period() -> None:
    for unit in (
        "node",
        "edge",
        "household",
        "source within 1d from 2026-11-16T00:00Z, read jointly by 2 sen",
    ):
        assert period_of(unit) is None
    assert (period_of("day visitor"), period_of("user-day-hour")) == ("day", "hour")
    for unit in ("user-day in Rome", "day per user", "daily user", "user-date", "user-quarter"):
        assert period_of(unit) is not None
    assert [period_of(f"user-{one}") for one in ("fortnight", "weekend")] == ["night", "weekend"]


@pytest.mark.unit
def test_a_bound_of_a_period_has_a_clock_and_no_other_has_one() -> None:
    for unit, clock in (("user-day", None), ("userWeek", None), ("user", Clock("t"))):
        with pytest.raises(
            InvalidParameter, match=r"names a period is bounded by a clock.*nothing was charged"
        ):
            Bound(AddRemoveUser(), 1, l1=1, unit=unit, clock=clock)
    assert Bound(AddRemoveUser(), 1, l1=1, unit="user-day", clock=Clock("t")).clock == Clock("t")
    with pytest.raises(InvalidParameter, match="names a period is bounded by a clock"):
        histogram([0, 1], 2, source="city", unit="user-day")
    with pytest.raises(InvalidParameter, match="names a period is bounded by a clock"):
        guard_sums(
            sum_public_cells(open_table(BOTH), COLUMNS, AREA), source="city", unit="user-day"
        )


MAPS: dict[str, Any] = {
    "a map without periods": lambda ledger: release(BOTH, COLUMNS, AREA, ledger=ledger, epsilon=1),
    "weights": lambda ledger: release(
        BOTH, Columns("user", "x", "y", weight="x", step=0.1), AREA, ledger=ledger, epsilon=1
    ),
    "groups": lambda ledger: (
        release_heatmap(
            BOTH,
            Columns("user", "x", "y", by="image"),
            AREA,
            groups=["one"],
            ledger=ledger,
            epsilon=1,
        ).by_group
    ),
    "a row for a user": lambda ledger: release(
        BOTH, Columns(None, "x", "y", one_row_one_user=True), AREA, ledger=ledger, epsilon=1
    ),
    "other periods": lambda ledger: (
        release_heatmap(
            BOTH,
            COLUMNS,
            AREA,
            groups=Periods("t", "week", MONDAY, MONDAY + timedelta(days=7), mass_per_period=True),
            ledger=ledger,
            epsilon=1,
        ).by_group
    ),
    "a shared mass": lambda ledger: (
        release_heatmap(
            BOTH,
            COLUMNS,
            AREA,
            groups=Periods("t", "day", MONDAY, MONDAY + timedelta(days=7)),
            ledger=ledger,
            epsilon=1,
        ).by_group
    ),
    "private bounds": lambda ledger: find_area(
        lambda area: sum_cells(
            open_table(BOTH), COLUMNS, area, source="city", unit=ledger.header.unit, groups=None
        ),
        AREA,
        ledger=ledger,
        epsilon=1,
    ),
    "sums of users": lambda ledger: release_sums(
        sum_cells(open_table(BOTH), COLUMNS, AREA, source="city"), AREA, ledger=ledger, epsilon=1
    ),
    "counts of users": lambda ledger: ledger.release(HALF, histogram([0, 1], 2, source="city")),
}


@pytest.mark.unit
@pytest.mark.parametrize("name", MAPS)
def test_a_ledger_of_user_days_pays_for_days_alone(name: str, days: Ledger) -> None:
    before = days.path.read_bytes()
    with pytest.raises(
        (InvalidParameter, LedgerMismatch), match=r"user-day.*; nothing was charged$"
    ):
        MAPS[name](days)
    assert days.path.read_bytes() == before


@pytest.mark.unit
def test_the_first_charge_binds_the_clock(days: Ledger, tmp_path: Path) -> None:
    def film(periods: Periods) -> Any:
        made = release_heatmap(
            BOTH,
            COLUMNS,
            AREA,
            groups=periods,
            ledger=Ledger(days.path),
            epsilon=1,
            method=baselines.FlatMethod(),
        ).by_group
        return next(iter(made.values()))

    rome = film(by_day(zone="Europe/Rome"))
    assert days.statement().clock == rome.receipt.entry.clock == Clock("t", "Europe/Rome")
    others = [by_day(zone="UTC"), by_day(zone=""), by_day("left", "Europe/Rome")]
    for other in others:
        before = days.path.read_bytes()
        with pytest.raises(
            LedgerMismatch,
            match=r"protects each user-day by the clock 't' in Europe/Rome.*; nothing was charged$",
        ):
            film(other)
        guarded = sum_cells(
            open_table(BOTH),
            other.in_table(COLUMNS),
            AREA,
            source="city",
            unit="user-day",
            groups=other,
        )
        with pytest.raises(
            LedgerMismatch, match="the data is bounded by"
        ):  # the door itself, not one face
            days.release(
                baselines.FlatMethod().mechanism(Fraction(1), guarded.bound, AREA.grid), guarded
            )
        assert days.path.read_bytes() == before
    film(by_day(zone="Europe/Rome"))
    assert set(days.statement().periods.values()) == {Spent(epsilon=Fraction(2))}
    assert list(days.statement().periods) == list(by_day().names)
    assert days.statement().spent == Spent()
    # A receipt says by which clock, and the ledger knows it by that.
    rome.receipt.then(lambda _: None).write(tmp_path / "receipt.json")
    found = read_release(tmp_path / "receipt.json")
    assert found.entry.clock == Clock("t", "Europe/Rome")
    days.check(found)


@pytest.mark.unit
def test_what_another_clock_cannot_afford_is_said_before_a_row_is_read(days: Ledger) -> None:
    first = Bound(AddRemoveUser(), 2, l1=1, unit="user-day", clock=Clock("t", "UTC"))
    days.release(HALF, guard([1, 2], first, source="city"))
    days.afford(PureDP(1), bound=first)
    second = Bound(AddRemoveUser(), 2, l1=1, unit="user-day", clock=Clock("t", "Europe/Rome"))
    with pytest.raises(
        LedgerMismatch, match="by the clock 't' in UTC, the data is bounded by 't' in Europe/Rome"
    ):
        days.afford(PureDP(1), bound=second)
    with pytest.raises(BudgetExceeded):
        days.afford(PureDP(1000), bound=first)


@pytest.mark.unit
@pytest.mark.parametrize("charged", [False, True])
def test_a_file_from_before_clocks_binds_one_unless_it_was_charged(
    charged: bool, tmp_path: Path
) -> None:
    old = Ledger.create(tmp_path / "old.ledger", PureDP(9), unit="user-day", source="city")
    if charged:
        body = {
            "number": 1,
            "time": "2026-01-05T00:00:00.000000+00:00",
            "mechanism": "discrete-laplace/1",
            "parameters": {"scale": "2"},
            "cost": {"kind": "PureDP", "epsilon": "1/2"},
            "computational": None,
            "account": None,
            "note": "",
        }
        with ledger_file.locked(old.path) as held:
            ledger_file.append(held.book, body)
    bound = Bound(AddRemoveUser(), 2, l1=1, unit="user-day", clock=Clock("t", "UTC"))
    data = guard([1, 2], bound, source="city")
    ledger = Ledger(old.path)
    if charged:
        assert ledger.statement().spent == Spent(epsilon=Fraction(1, 2))  # it can be read
        with pytest.raises(
            LedgerMismatch, match=r"charged before clocks were written down.*nothing was charged$"
        ):
            ledger.release(HALF, data)
        assert len(ledger.statement().entries) == 1
    else:
        ledger.release(HALF, data)
        assert ledger.statement().clock == Clock("t", "UTC")


# whose trust it is


@pytest.fixture
def local(tmp_path: Path) -> Ledger:
    return Ledger.create(
        tmp_path / "own.ledger", PureDP(100), unit="user", source="city", model="local"
    )


@pytest.mark.unit
def test_a_local_ledger_pays_for_nothing_that_was_gathered(local: Ledger, tmp_path: Path) -> None:
    edges = Ledger.create(
        tmp_path / "edges.ledger",
        PureDP(9),
        unit="edge",
        source="net",
        neighbors=FlippedEdge(),
        model="local",
    )
    wanted = Bound(AddRemoveUser(), 2, l1=1)
    film = Periods("t", "day", MONDAY, MONDAY + timedelta(days=2), mass_per_period=True)
    asked: dict[str, Any] = {"ledger": local, "epsilon": 1}
    gathered: list[Callable[[], Any]] = [
        lambda: release(BOTH, COLUMNS, AREA, **asked),
        lambda: (
            release_heatmap(
                BOTH, Columns("user", "x", "y", by="image"), AREA, groups=["one"], **asked
            ).by_group
        ),
        lambda: release_heatmap(BOTH, COLUMNS, AREA, groups=film, **asked).by_group,
        lambda: find_area(
            lambda area: sum_cells(open_table(BOTH), COLUMNS, area, source="city"), AREA, **asked
        ),
        lambda: local.release(HALF, histogram([0, 1], 2, source="city")),
        lambda: local.release(HALF, guard([1, 2], wanted, source="city")),
        lambda: local.afford(PureDP(1), bound=wanted),
        lambda: Blocks(2, epsilon=1, ledger=edges).fit([(0, 1), (2, 3), (4, 5)], nodes=8),
    ]
    for attempt in gathered:
        with pytest.raises(
            LedgerMismatch, match=r"is of the local model: .*; nothing was charged$"
        ):
            attempt()
    assert local.statement().entries == edges.statement().entries == ()


@pytest.mark.unit
def test_who_holds_their_own_data_may_say_so(local: Ledger, tmp_path: Path) -> None:
    own = guard([1], Bound(AddRemoveUser(), 1, l1=1, model="local"), source="city")
    assert str(local.release(HALF, own).guarantee).endswith("local model")
    # A promise of the central model is kept by what is done locally.
    central = Ledger.create(tmp_path / "all.ledger", PureDP(1), unit="user", source="city")
    assert str(central.release(HALF, own).guarantee).endswith("central model")
    with pytest.raises(InvalidParameter, match="model must be 'central' or 'local', got 'ours'"):
        Bound(AddRemoveUser(), 1, l1=1, model="ours")  # type: ignore[arg-type]


# no name opens data free


@pytest.mark.property
@given(
    name=st.text(min_size=1).filter(str.isprintable)
    | st.sampled_from(["rehearsal", "REHEARSAL", "Rehearsal"])
)
def test_no_name_is_the_mark_of_a_rehearsal(name: str) -> None:
    free = Ledger.rehearsal(PureDP(1))
    with pytest.raises(
        LedgerMismatch, match=r"accounts for the source REHEARSAL, the data is .*; nothing was"
    ):
        free.release(HALF, histogram([0, 1], 2, source=name))
    assert free.statement().entries == ()


@pytest.mark.unit
def test_a_source_called_rehearsal_is_paid_for(tmp_path: Path) -> None:
    real = Ledger.create(tmp_path / "real.ledger", PureDP(1), unit="user", source="rehearsal")
    private: Guarded[Any] = histogram([0, 1], 2, source=real.header.source)
    with pytest.raises(
        LedgerMismatch, match="accounts for the source REHEARSAL, the data is 'rehearsal'"
    ):
        Ledger.rehearsal(PureDP(9)).release(HALF, private)
    paid = real.release(HALF, private)
    assert (paid.rehearsal, real.statement().spent.epsilon) == (False, Fraction(1, 2))
    with pytest.raises(
        LedgerMismatch, match="accounts for the source 'rehearsal', the data is REHEARSAL"
    ):
        real.release(HALF, histogram([0, 1], 2, source=REHEARSAL))
    with pytest.raises(
        InvalidParameter, match=r"the source of a ledger is a name, got REHEARSAL; nothing was made"
    ):
        Ledger.create(tmp_path / "other.ledger", PureDP(1), unit="user", source=REHEARSAL)  # type: ignore[arg-type]


@pytest.mark.unit
def test_no_file_is_a_rehearsal(tmp_path: Path) -> None:
    """Whoever wrote one could release with noise that they know."""
    header = Ledger.create(
        tmp_path / "real.ledger", PureDP(1), unit="user", source="rehearsal"
    ).header
    ledger_file.create(tmp_path / "free.ledger", {**header.to_json(), "rehearsal": True})
    with pytest.raises(LedgerDamaged, match="a file is no rehearsal"):
        Ledger(tmp_path / "free.ledger")
