"""Budgets of periods, teams and tables: a user-day moves only what its own day has paid for."""

from __future__ import annotations

import shutil
import tempfile
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.privacy.format1_ledger import as_format1
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch, NotComparable
from sfumato.heatmap import plan_release, release_heatmap
from sfumato.heatmap.methods import baselines
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    Guarded,
    Ledger,
    Loss,
    PureDP,
    guard,
    histogram,
)
from sfumato.privacy.accounting import Clock
from sfumato.privacy.ledger import Spent, Table
from sfumato.privacy.ledger.budget import charge
from sfumato.privacy.ledger.guarded import open_for_release
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.records import Columns, Periods, open_table, sum_cells, table_identity
from sfumato.records.periods import Unit
from sfumato.spaces import area_of_plane

AREA = area_of_plane((0.0, 0.0, 1.0, 1.0), 3)
COLUMNS = Columns("user", "x", "y")
CLOCK = Clock("t", "UTC")
SUNDAY = datetime(2026, 1, 4)
HALF = DiscreteLaplace(2)


def of(*periods: str, source: str = "city", table: Table | None = None) -> Guarded[Any]:
    bound = Bound(AddRemoveUser(), 2, l1=1, unit="user-day", clock=CLOCK, periods=periods or None)
    return Guarded(np.array([1, 2]), bound, source=source, table=table)


@pytest.fixture
def days(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "days.ledger", PureDP(1), unit="user-day", source="city")


# periods


@pytest.mark.unit
def test_each_period_has_a_budget_of_its_own(days: Ledger) -> None:
    for day in ("2026-01-05", "2026-01-06", "2026-01-07"):
        days.release(HALF, of(day))
    days.release(HALF, of("2026-01-06", "2026-01-07"))
    now = days.statement()
    assert {name: spent.epsilon for name, spent in now.periods.items()} == {
        "2026-01-05": Fraction(1, 2), "2026-01-06": 1, "2026-01-07": 1,
    }  # fmt: skip
    assert (now.spent, now.left) == (Spent(), PureDP(1))
    assert now.left_of(period="2026-01-05") == PureDP("1/2")
    for periods in (("2026-01-06",), ("2026-01-05", "2026-01-06"), ()):
        with pytest.raises(
            BudgetExceeded, match=r"0 left for 2026-01-06 in .*; nothing was released"
        ):
            days.release(HALF, of(*periods))
        with pytest.raises(BudgetExceeded):
            days.afford(PureDP("1/2"), bound=of(*periods).bound)
    days.release(HALF, of("2026-01-05"))
    assert days.left(bound=of("2026-01-05", "2026-02-01").bound) == PureDP(0)


@pytest.mark.unit
def test_releases_whose_days_overlap_add_up_on_those_days(days: Ledger) -> None:
    """Parallel over days that differ, one after the other on those that two releases share.

    The 29th of March has 23 hours in Rome, and one budget as any other day.
    """

    def named(first: int, last: int) -> tuple[str, ...]:
        begin, end = datetime(2026, 3, first), datetime(2026, 3, last) + timedelta(days=1)
        return Periods("t", "day", begin, end, time_zone="Europe/Rome", mass_per_period=True).names

    days.release(HALF, of(*named(27, 29)))
    days.release(HALF, of(*named(29, 31)))
    assert [str(days.left(bound=of(f"2026-03-{day}").bound)) for day in range(27, 32)] == [
        "epsilon 0.5", "epsilon 0.5", "epsilon 0", "epsilon 0.5", "epsilon 0.5",
    ]  # fmt: skip
    for first, last in ((29, 29), (28, 29), (29, 31), (27, 31)):
        with pytest.raises(BudgetExceeded, match="0 left for 2026-03-29 in"):
            days.release(HALF, of(*named(first, last)))
    days.release(HALF, of(*named(27, 28)))
    days.release(HALF, of(*named(30, 31)))
    assert {spent.epsilon for spent in days.statement().periods.values()} == {1}


@pytest.mark.unit
def test_what_names_no_period_is_charged_to_all_past_and_to_come(days: Ledger) -> None:
    days.release(HALF, of("2026-01-05"))
    days.release(DiscreteLaplace(4), of())
    now = days.statement()
    assert now.spent == Spent(epsilon=Fraction(1, 4))
    assert now.periods["2026-01-05"].epsilon == Fraction(3, 4)
    with pytest.raises(BudgetExceeded):
        days.release(DiscreteLaplace(1), of("2027-01-01"))


@pytest.mark.unit
def test_only_a_unit_with_a_clock_has_periods(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="periods are one or more different names, and go"):
        Bound(AddRemoveUser(), 1, l1=1, periods=["2026-01-05"])
    for wrong in ([], [""], ["a", "a"]):
        with pytest.raises(InvalidParameter, match="periods are one or more different names"):
            Bound(AddRemoveUser(), 1, l1=1, unit="user-day", clock=CLOCK, periods=wrong)
    users = Ledger.create(tmp_path / "u.ledger", PureDP(1), unit="user", source="city")
    with pytest.raises(LedgerMismatch):
        users.release(HALF, of("2026-01-05"))
    with pytest.raises(InvalidParameter, match="has one budget for all time"):
        users.statement().left_of(period="2026-01-05")


@pytest.mark.unit
@pytest.mark.parametrize("unit", ["hour", "day", "week", "month"])
def test_a_period_has_a_name_as_maps_give_it(tmp_path: Path, unit: Unit) -> None:
    begin, end = datetime(2024, 7, 1), datetime(2024, 10, 1)
    if unit != "month":
        end = begin + timedelta(weeks=4)
    ledger = Ledger.create(tmp_path / "u.ledger", PureDP(1), unit=f"user-{unit}", source="city")
    now = ledger.statement()
    for name in Periods("t", unit, begin, end).names:
        assert now.left_of(period=name) == PureDP(1)
        for wrong in (name[:-1], f"{name}0", f"{name[:-2]}99", "monday"):
            with pytest.raises(InvalidParameter, match=f"each user-{unit} has periods such as"):
                now.left_of(period=wrong)
    # A malformed one is not taken for one that was never charged.
    words = ["ledger", "show", str(ledger.path), "--period", "2024-7-1"]
    shown = CliRunner().invoke(app, words)
    assert (shown.exit_code, shown.stdout) == (2, "")


@pytest.mark.unit
def test_days_of_format_1_count_in_every_period(days: Ledger) -> None:
    days.release(HALF, of())
    as_format1(days.path)
    old = Ledger(days.path)
    old.release(HALF, of("2026-01-05"))
    with pytest.raises(BudgetExceeded):
        old.release(HALF, of("2026-01-05"))
    old.release(HALF, of("2026-01-06"))


ROWS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 5 * 24 * 60 - 1),
    ),
    min_size=1,
    max_size=12,
)


def _table(rows: list[tuple[str, float, int]]) -> pa.Table:
    users, xs, minutes = zip(*rows, strict=True) if rows else ((), (), ())
    when = [SUNDAY + timedelta(minutes=minute) for minute in minutes]
    return pa.table(
        {
            "user": pa.array(users, pa.string()),
            "x": pa.array(xs, pa.float64()),
            "y": pa.array(xs, pa.float64()),
            "t": pa.array(when, pa.timestamp("us")),
        }
    )


@pytest.mark.property
@given(rows=ROWS, zone=st.sampled_from(["", "Europe/Rome", "Pacific/Kiritimati"]))
@settings(max_examples=15, deadline=None, phases=[Phase.generate])
def test_a_user_day_moves_only_what_its_own_day_pays_for(
    rows: list[tuple[str, float, int]], zone: str
) -> None:
    """Neighbors replayed: without one user-day the sums of one period move, the one that is named for it."""
    periods = Periods(
        "t", "day", SUNDAY, SUNDAY + timedelta(days=6), time_zone=zone, mass_per_period=True
    )
    shift = {"": 0, "Europe/Rome": 60, "Pacific/Kiritimati": 14 * 60}[zone]

    def day_of(row: tuple[str, float, int]) -> str:
        return (SUNDAY + timedelta(minutes=row[2] + shift)).strftime("%Y-%m-%d")

    who, day = rows[0][0], day_of(rows[0])
    fewer = [row for row in rows if (row[0], day_of(row)) != (who, day)]
    guarded = [
        sum_cells(
            open_table(_table(some)),
            periods.in_table(COLUMNS),
            AREA,
            source="city",
            unit="user-day",
            groups=periods,
        )
        for some in (rows, fewer)
    ]
    assert guarded[0].bound == guarded[1].bound
    assert guarded[0].bound.periods is not None
    both = [open_for_release(one).of_level(3).reshape(periods.count, -1) for one in guarded]
    moved = np.flatnonzero((both[0] != both[1]).any(axis=1))
    named = {guarded[0].bound.periods[number] for number in moved}
    assert named <= {day}, "a day moved what another day paid for"


@pytest.mark.unit
def test_the_daily_job_works(tmp_path: Path) -> None:
    """A user-day ledger of epsilon 1 pays epsilon 1 for every day, one after the other, and no day twice."""
    ledger = Ledger.create(tmp_path / "d.ledger", PureDP(1), unit="user-day", source="city")
    table = _table([("a", 0.1, 60), ("b", 0.9, 2000), ("a", 0.5, 4000)])

    def job(day: int, days: int = 1) -> Any:
        start = SUNDAY + timedelta(days=day)
        return plan_release(
            table,
            COLUMNS,
            AREA,
            groups=Periods("t", "day", start, start + timedelta(days=days), mass_per_period=True),
            ledger=ledger,
            epsilon=1,
            method=baselines.FlatMethod(),
        )

    for day in range(4):
        planned = job(day)
        assert planned.result.left == PureDP(1)
        assert planned.run().left == PureDP(0)
    for again in ((2, 1), (3, 2)):
        with pytest.raises(BudgetExceeded, match=r"0 left for 2026-01-0[67] in"):
            job(*again)
    assert job(4, 2).run().left == PureDP(0)
    assert len(ledger.statement().periods) == 6
    assert ledger.statement().entries[-1].periods == ("2026-01-08", "2026-01-09")


# any interleaving, over days and teams


PERIODS = ("d1", "d2", "d3")


class Days(RuleBasedStateMachine):
    """Charges of days and of teams in any order: no day ever spends more than the budget, none forgets."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ledger-days-"))
        self.path = self.folder / "city.ledger"
        self.paid: list[tuple[Loss, str, tuple[str, ...]]] = []

    @initialize(
        budget=st.sampled_from([PureDP(1), ZCDP("1/2"), ApproxDP(1, "1e-6")]), teams=st.booleans()
    )
    def create(self, budget: Loss, teams: bool) -> None:
        halves: dict[type, Loss] = {
            PureDP: PureDP("1/2"),
            ZCDP: ZCDP("1/4"),
            ApproxDP: ApproxDP("1/2", "5e-7"),
        }
        half: Loss = halves[type(budget)]
        self.budget, self.half = budget, half
        self.teams: dict[str, Loss] = {"red": half} if teams else {}
        made = Ledger.create(
            self.path, budget, unit="user-day", source="city", teams=dict(self.teams)
        )
        self.ledger = made
        ledger_file.SPACING = 600  # so that there are checkpoints

    @rule(
        cost=st.sampled_from(
            [DiscreteLaplace(10), DiscreteLaplace(3), DiscreteLaplace(2), DiscreteGaussian(20)]
        ),
        periods=st.sets(st.sampled_from(PERIODS)).map(lambda some: tuple(sorted(some))),
        team=st.sampled_from(["", "red"]),
    )
    def release(self, cost: Any, periods: tuple[str, ...], team: str) -> None:
        team = team if self.teams else ""
        before = self.path.read_bytes()
        try:
            made = self.ledger.release(cost, of(*periods), team=team)
        except (BudgetExceeded, NotComparable):
            assert self.path.read_bytes() == before
            touched = periods or (*PERIODS, "another")
            # It was right: one of the days, or the team, did not hold it.
            assert not all(
                self.holds(made_cost, day, team)
                for day in touched
                for made_cost in [cost.cost(of(*periods).bound)]
            )
            return
        self.paid.append((made.entry.cost, team, periods))

    def of_day(self, day: str, team: str | None) -> tuple[Loss, Spent]:
        """Budget and sum of one day, by a filter of its own: what the proof is about."""
        budget = self.budget if team is None else self.half
        spent = Spent()
        for cost, payer, periods in self.paid:
            if (not periods or day in periods) and (team is None or payer == team):
                spent = charge(budget, spent, cost)
        return budget, spent

    def holds(self, cost: Loss, day: str, team: str) -> bool:
        try:
            for whose in (None, team) if self.teams else (None,):
                charge(*self.of_day(day, whose), cost)
        except (BudgetExceeded, NotComparable):
            return False
        return True

    @rule()
    def reopen(self) -> None:
        self.ledger = Ledger(self.path)

    @invariant()
    def every_day_has_what_was_charged_to_it(self) -> None:
        if not hasattr(self, "budget"):
            return
        now = Ledger(self.path).recent(0)
        assert now.accounts == Ledger(self.path).statement().accounts
        for day in (*PERIODS, "another"):
            assert now.accounts.of("", day) == self.of_day(day, None)[1]
            if self.teams:
                assert now.accounts.of("red", day) == self.of_day(day, "red")[1]
                assert now.accounts.of("*", day) == self.of_day(day, "")[1]

    def teardown(self) -> None:
        ledger_file.SPACING = 16 * 1024
        shutil.rmtree(self.folder)


Days.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestDays = pytest.mark.property(Days.TestCase)


# teams


@pytest.mark.unit
def test_a_team_spends_its_own_within_the_whole(tmp_path: Path) -> None:
    ledger = Ledger.create(
        tmp_path / "t.ledger",
        PureDP(1),
        unit="user",
        source="city",
        teams={"red": "1/4", "blue": "1/2"},
    )
    people = histogram([0, 1], 2, source="city")
    ledger.release(DiscreteLaplace(4), people, team="red")
    with pytest.raises(BudgetExceeded, match=r"0 left of the team red in .*; nothing was released"):
        ledger.release(DiscreteLaplace(8), people, team="red")
    ledger.release(DiscreteLaplace(4), people)  # what no team was given
    with pytest.raises(BudgetExceeded, match=r"0 left of what no team has \(name one\) in"):
        ledger.release(DiscreteLaplace(8), people)
    with pytest.raises(BudgetExceeded):
        ledger.afford(PureDP("1/8"), team="red")
    ledger.afford(PureDP("1/2"), team="blue")
    ledger.release(HALF, people, team="blue")  # nobody had taken it
    assert ledger.statement().left == PureDP(0)
    assert ledger.left(team="blue") == PureDP(0)
    with pytest.raises(
        LedgerMismatch, match="its teams are blue, red, got 'green'; nothing was charged"
    ):
        ledger.release(HALF, people, team="green")
    other = Ledger.create(tmp_path / "n.ledger", PureDP(1), unit="user", source="city")
    with pytest.raises(LedgerMismatch, match="there are no teams, got 'red'; nothing was charged"):
        other.release(HALF, people, team="red")


@pytest.mark.unit
@pytest.mark.parametrize(
    "teams",
    [{"red": 1, "blue": "1/100"}, {"": 1}, {"*": "1/2"}, {"red": ZCDP(1)}, {"a\nb": "1/2"}],
)
def test_teams_share_what_there_is(tmp_path: Path, teams: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=r"; nothing was made$"):
        Ledger.create(tmp_path / "t", PureDP(1), unit="user", source="city", teams=teams)
    assert not (tmp_path / "t").exists()


@pytest.mark.unit
def test_a_number_for_a_team_has_its_share_of_delta(tmp_path: Path) -> None:
    made = Ledger.create(
        tmp_path / "t", ApproxDP(2, "1e-6"), unit="user", source="city", teams={"red": "1/2"}
    )
    assert made.header.teams == {"red": ApproxDP("1/2", "1/4000000")}
    assert Ledger(made.path).header == made.header


# tables


@pytest.mark.unit
def test_another_table_is_refused_unless_told(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "t.ledger", PureDP(9), unit="user", source="city")
    rows = {"user": ["a", "b"], "x": [0.1, 0.9], "y": [0.1, 0.9], "cab": ["a", "a"]}
    for name in ("trips-2026-01-05.csv", "trips-2026-01-06.csv", "town.csv"):
        lines = [
            ",".join(rows),
            *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True)),
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    def released(name: str, user: str = "user", **how: Any) -> Any:
        return release_heatmap(
            str(tmp_path / name), Columns(user, "x", "y"), AREA, ledger=ledger, epsilon=1,
            method=baselines.FlatMethod(), **how,
        )  # fmt: skip

    released("trips-2026-01-05.csv")
    released("trips-2026-01-06.csv")  # the next day of the same table
    for name, user in (("town.csv", "user"), ("trips-2026-01-05.csv", "cab")):
        before = ledger.path.read_bytes()
        with pytest.raises(LedgerMismatch, match=r"has paid for trips-#.csv by 'user', this is .*"):
            released(name, user)
        assert ledger.path.read_bytes() == before
    released("town.csv", other_table=True)
    released("town.csv")  # it is known from now on
    assert ledger.statement().tables == (Table("trips-#.csv", "user"), Table("town.csv", "user"))
    assert Ledger(ledger.path).recent(0).tables == ledger.statement().tables
    release_heatmap(_table([("a", 0.1, 1)]), COLUMNS, AREA, ledger=ledger, epsilon=1)  # in memory


@pytest.mark.unit
@pytest.mark.parametrize(
    ("source", "connection", "name"),
    [
        ("/data/2026/trips.parquet", None, "trips.parquet"),
        ("trips/part-*.parquet", None, "part-#.parquet"),
        ("trips/part-00017.parquet", None, "part-#.parquet"),
        ("s3://bucket/a/trips.parquet?secret=hush", None, "trips.parquet"),
        ("town.duckdb::trips", None, "town.duckdb::trips"),
        ("trips", "postgresql://me:hush@host:5432/town", "postgresql:town::trips"),
        ("folder/", None, "folder"),
        (Path("/x/a.csv"), None, "a.csv"),
    ],
)
def test_a_table_is_named_by_what_is_public(source: Any, connection: str | None, name: str) -> None:
    found = table_identity(source, COLUMNS, connection=connection)
    assert found == Table(name, "user")
    assert "hush" not in str(found)


@pytest.mark.unit
def test_guarded_data_in_memory_has_no_table() -> None:
    assert table_identity(_table([]), COLUMNS) is None
    assert guard([1], Bound(AddRemoveUser(), 1, l1=1), source="city").table is None
