"""Maps of periods: one release, one charge, and no user who loses more than was charged."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import BudgetExceeded, InvalidInput, InvalidParameter
from sfumato.heatmap import PyramidMethod, price, release, release_heatmap
from sfumato.heatmap.methods import baselines
from sfumato.heatmap.pipeline.charging import release_sums
from sfumato.privacy import UNITS, Ledger, PureDP
from sfumato.privacy.ledger.guarded import open_for_release
from sfumato.records import Columns, Periods, open_table, sum_cells
from sfumato.spaces import area_of_plane

DAY = datetime(2026, 1, 5)
AREA = area_of_plane((0.0, 0.0, 1.0, 1.0), 3)
COLUMNS = Columns("user", "x", "y")


def days(count: int, **changed: Any) -> Periods:
    return Periods("t", "day", DAY, DAY + timedelta(days=count), **changed)


def visits(*rows: tuple[str, float, float, int]) -> pa.Table:
    """Rows of user, x, y and the day."""
    users, xs, ys, when = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "user": pa.array(users, pa.string()),
            "x": pa.array(xs, pa.float64()),
            "y": pa.array(ys, pa.float64()),
            "t": pa.array([DAY + timedelta(days=day, hours=7) for day in when], pa.timestamp("us")),
        }
    )


def ledger_of(folder: Path, unit: str = "user", budget: int = 10**7) -> Ledger:
    return Ledger.create(folder / f"{unit}.ledger", PureDP(budget), unit=unit, source="city")


TABLE = visits(
    ("a", 0.1, 0.1, 0),
    ("a", 0.9, 0.9, 1),
    ("a", 0.9, 0.9, 1),
    ("b", 0.9, 0.9, 1),
    ("b", 0.5, 0.5, 9),
)


@pytest.mark.unit
def test_all_frames_share_a_user_and_one_charge(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    maps = release_heatmap(
        TABLE, COLUMNS, AREA, groups=days(3), ledger=ledger, epsilon=10**6
    ).by_group
    assert list(maps) == ["2026-01-05", "2026-01-06", "2026-01-07"]
    (entry,) = ledger.statement().entries
    assert entry.cost == PureDP(10**6)
    # Noise of about a millionth of a user. A third of a is there on the first day, the rest on the
    # second.
    found = [one.tiles.total for one in maps.values()]
    assert found == pytest.approx([1 / 3, 5 / 3, 0], abs=1e-3)
    second = maps["2026-01-06"].to_json()
    assert (second["group"], second["counted"]["by"]) == ("2026-01-06", "t")
    assert second["counted"]["period"] == {
        "unit": "day",
        "start": "2026-01-06T00:00",
        "end": "2026-01-07T00:00",
        "time_zone": "",
        "mass_per_period": False,
    }
    assert maps["2026-01-06"].name == "city: 2026-01-06"


@pytest.mark.unit
@pytest.mark.parametrize(("unit", "cost"), [("user", 3 * 10**6), ("user-day", 10**6)])
def test_mass_per_period_costs_epsilon_for_each_or_once_for_each_user_day(
    unit: str, cost: int, tmp_path: Path
) -> None:
    ledger, periods = ledger_of(tmp_path, unit), days(3, mass_per_period=True)
    maps = release_heatmap(
        TABLE, COLUMNS, AREA, groups=periods, ledger=ledger, epsilon=10**6
    ).by_group
    (entry,) = ledger.statement().entries
    assert entry.cost == PureDP(cost)
    assert f"epsilon {cost:.0e} for each {unit} " in maps["2026-01-05"].statement
    assert [one.tiles.total for one in maps.values()] == pytest.approx([1, 2, 0], abs=1e-3)


@pytest.mark.unit
@pytest.mark.parametrize(
    "method", [PyramidMethod(), baselines.FlatMethod()], ids=lambda one: one.name
)
def test_each_frame_has_the_noise_of_one_map_at_epsilon(method: Any, tmp_path: Path) -> None:
    ledger, periods = ledger_of(tmp_path), days(3, mass_per_period=True)
    asked: dict[str, Any] = {"ledger": ledger, "epsilon": 1, "method": method}
    one = release(TABLE, COLUMNS, AREA, **asked).receipt.entry
    several = release_heatmap(TABLE, COLUMNS, AREA, groups=periods, **asked).by_group
    assert several["2026-01-05"].receipt.entry.parameters == one.parameters


# the loss, exactly


def loss(
    with_them: pa.Table, without: pa.Table, periods: Periods, ledger: Ledger
) -> tuple[Fraction, Fraction]:
    """The largest log-ratio of chances between two neighbors, and what is charged.

    The flat method adds discrete Laplace noise of one scale to every cell of every map, and nothing
    else: the largest ratio is exp(l1 / scale), which is reached [ghosh12].
    """
    columns, sums = periods.in_table(COLUMNS), []
    for table in (with_them, without):
        guarded = sum_cells(
            open_table(table), columns, AREA, source="city", unit=ledger.header.unit, groups=periods
        )
        sums.append(open_for_release(guarded).of_level(3))
    (made, *_) = release_sums(
        guarded,
        AREA,
        ledger=ledger,
        epsilon=1,
        method=baselines.FlatMethod(),
        groups=periods,
        columns=columns,
    )
    entry = made.receipt.entry
    assert isinstance(entry.cost, PureDP)
    scale = Fraction(entry.parameters["scale"])
    return Fraction(int(np.abs(sums[0] - sums[1]).sum())) / scale, entry.cost.epsilon


ALONE = visits(("a", 0.1, 0.1, 0), ("a", 0.9, 0.9, 1), ("a", 0.1, 0.9, 2))
OTHERS = visits(("b", 0.9, 0.9, 1))


@pytest.mark.unit
def test_no_user_loses_more_than_was_charged(tmp_path: Path) -> None:
    both, periods = pa.concat_tables([ALONE, OTHERS]), days(3, mass_per_period=True)
    lost, charged = loss(both, OTHERS, periods, ledger_of(tmp_path))
    # Scales are rounded up to doubles.
    assert 3 * (1 - Fraction(1, 2**40)) <= lost <= charged == 3
    lost, charged = loss(both, OTHERS, days(3), ledger_of(tmp_path, "person"))
    assert 1 - Fraction(3, UNITS) <= lost <= charged == 1
    # A user-day: the second day of a is gone, the others stay.
    fewer = pa.concat_tables([ALONE.take([0, 2]), OTHERS])
    lost, charged = loss(both, fewer, periods, ledger_of(tmp_path, "user-day"))
    assert 1 - Fraction(1, 2**40) <= lost <= charged == 1


@pytest.mark.unit
def test_a_ledger_of_users_that_is_charged_once_for_all_periods_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Periods, "masses", lambda self, unit: 1)
    both, periods = pa.concat_tables([ALONE, OTHERS]), days(3, mass_per_period=True)
    lost, charged = loss(both, OTHERS, periods, ledger_of(tmp_path))
    assert lost > charged


# what is refused costs nothing


@pytest.mark.unit
@pytest.mark.parametrize(
    ("periods", "unit", "kind", "words"),
    [
        (days(3), "user-day", InvalidParameter, "protects each user-day"),
        (days(3, mass_per_period=True), "user-hour", InvalidParameter, "protects each user-hour"),
        (
            Periods("x", "day", DAY, DAY + timedelta(days=1)),
            "user",
            InvalidInput,
            "column 'x' must hold times",
        ),
        (
            Periods("z", "day", DAY, DAY + timedelta(days=1)),
            "user",
            InvalidInput,
            "there is no column 'z'",
        ),
        (days(101, mass_per_period=True), "user", BudgetExceeded, "asked epsilon 101, 100 left"),
    ],
)
def test_a_mistake_costs_nothing(
    periods: Periods, unit: str, kind: type[Exception], words: str, tmp_path: Path
) -> None:
    ledger = ledger_of(tmp_path, unit, 100)
    with pytest.raises(kind, match=words):
        release_heatmap(TABLE, COLUMNS, AREA, groups=periods, ledger=ledger, epsilon=1)
    assert not ledger.statement().entries


@pytest.mark.unit
def test_too_many_cells_are_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidParameter, match=r"groups times cells must be at most 2\*\*32"):
        price(PyramidMethod(), 1, area_of_plane((0, 0, 1, 1), 16), groups=2)


@pytest.mark.unit
def test_empty_and_full_tables_leave_the_same_traces(tmp_path: Path) -> None:
    traces = []
    for number, table in enumerate([visits(), TABLE]):
        ledger = ledger_of(tmp_path, f"user{number}")
        maps = release_heatmap(
            table, COLUMNS, AREA, groups=days(2), ledger=ledger, epsilon=1
        ).by_group
        told = [one.to_json() for one in maps.values()]
        for one in told:
            # The usual noise is that of the counts that were released: zoom chooses them by what it has seen.
            for name in (
                "tiles", "counts", "entry", "ledger", "statement", "plainly", "guarantee", "noise_scale",
            ):  # fmt: skip
                del one[name]
        traces.append(told)
    assert traces[0] == traces[1]


@pytest.mark.unit
def test_a_release_is_one_table_and_the_days_are_one_map_if_asked(tmp_path: Path) -> None:
    """As a notebook has it: no index into `maps`, and any two days begin and end a map."""
    ledger = ledger_of(tmp_path)
    assert repr(ledger) == f"Ledger({str(ledger.path)!r}, per user of 'city')"
    whole = Periods("t", "whole", DAY + timedelta(days=1), DAY + timedelta(days=10))
    one = release_heatmap(TABLE, COLUMNS, AREA, groups=whole, ledger=ledger, epsilon=10**6)
    assert list(one.by_group) == ["2026-01-06--2026-01-15"]
    assert one.maps[0].tiles.total == pytest.approx(2, abs=1e-3)
    assert "group" not in one.to_dataframe()
    assert one.plot().axes
    both = release_heatmap(TABLE, COLUMNS, AREA, groups=days(2), ledger=ledger, epsilon=10**6)
    cells = both.to_dataframe()
    assert list(cells["group"].unique()) == ["2026-01-05", "2026-01-06"]
    assert cells.index.is_unique
    shares = cells.groupby("group")["users"].sum()
    assert list(shares) == pytest.approx([1 / 3, 5 / 3], abs=1e-3)
    with pytest.raises(InvalidParameter, match=r"of one map, there are 2: .*'2026-01-05'"):
        both.plot()
    with pytest.raises(InvalidParameter, match="read from JSON has no maps"):
        type(one).from_json(one.to_json()).to_dataframe()
