"""From a table to a private map: paid before it is sampled, bounded per user, blind in its traces."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import (
    BudgetExceeded,
    InvalidInput,
    InvalidParameter,
    LedgerMismatch,
    SolverFailed,
)
from sfumato.heatmap import (
    HeatmapRelease,
    PyramidMethod,
    check_ins,
    compare,
    price,
    rehearse,
    rehearse_exactly,
    release,
    release_heatmap,
    resume_heatmap,
)
from sfumato.heatmap.methods import baselines
from sfumato.privacy import KeyedNoise, Ledger, PureDP
from sfumato.records import Columns
from sfumato.spaces import area_in_degrees, area_of_image, area_of_plane

AREA = area_in_degrees((11.20, 43.74, 11.32, 43.81), 7)
COLUMNS = Columns("user", "lon", "lat")
METHODS: list[Any] = [
    PyramidMethod(),
    baselines.FlatMethod(),
    baselines.TopMethod(),
    baselines.CoarseMethod(users=1000),
    baselines.PrivTreeMethod(),
    baselines.AdaptiveGridMethod(),
    baselines.HierarchyMethod(),
]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "city.ledger", PureDP(1), unit="user", source="city")


@pytest.fixture
def city(rng: np.random.Generator) -> pa.Table:
    return check_ins(2000, bounds=AREA.bounds, rng=rng)


def rows(*people: tuple[str, float, float]) -> pa.Table:
    users, lons, lats = zip(*people, strict=True) if people else ((), (), ())
    return pa.table(
        {
            "user": pa.array(users, pa.string()),
            "lon": pa.array(lons, pa.float64()),
            "lat": pa.array(lats, pa.float64()),
        }
    )


@pytest.mark.unit
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_map_costs_at_most_its_epsilon(ledger: Ledger, city: pa.Table, method: Any) -> None:
    made = release(city, COLUMNS, AREA, ledger=ledger, epsilon="1/3", method=method)
    (entry,) = ledger.statement().entries
    assert made.receipt.entry == entry
    assert isinstance(entry.cost, PureDP)
    # Scales are rounded up to doubles, so the cost falls short of epsilon by a few parts in 2**53.
    assert Fraction(1, 3) * (1 - Fraction(1, 2**40)) <= entry.cost.epsilon <= Fraction(1, 3)
    assert made.method == method.name
    assert made.image().shape == (128, 128)
    assert made.image().sum() == pytest.approx(1, rel=1e-9)
    assert "epsilon 0.333334 for each user" in made.statement


@pytest.mark.unit
def test_a_spent_ledger_refuses_and_nothing_is_charged(ledger: Ledger, city: pa.Table) -> None:
    release(city, COLUMNS, AREA, ledger=ledger, epsilon="3/4")
    with pytest.raises(BudgetExceeded, match=r"asked epsilon 0.5, .* nothing was released"):
        release(city, COLUMNS, AREA, ledger=ledger, epsilon="1/2")
    assert len(ledger.statement().entries) == 1


@pytest.mark.unit
@pytest.mark.parametrize(
    ("source", "columns", "kind", "words"),
    [
        ("nowhere.parquet", COLUMNS, InvalidInput, "nowhere.parquet"),
        (rows(), Columns("person", "lon", "lat"), InvalidInput, "there is no column 'person'"),
    ],
)
def test_a_bad_input_is_one_sentence_and_no_charge(
    ledger: Ledger, source: Any, columns: Columns, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        release(source, columns, AREA, ledger=ledger, epsilon=1)
    assert not ledger.statement().entries


@pytest.mark.unit
def test_a_map_of_another_unit_is_refused(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", PureDP(1), unit="household", source="city")
    made = release(rows(("a", 11.25, 43.77)), COLUMNS, AREA, ledger=ledger, epsilon=1)
    assert "for each household" in made.statement


@pytest.mark.unit
def test_nobody_one_user_and_a_city_leave_the_same_traces(tmp_path: Path, city: pa.Table) -> None:
    traces = []
    for number, table in enumerate([rows(), rows(("a", 11.25, 43.77)), city]):
        ledger = Ledger.create(tmp_path / f"{number}.ledger", PureDP(1), unit="user", source="city")
        made = release(table, COLUMNS, AREA, ledger=ledger, epsilon=1).to_json()
        entry = made.pop("entry")
        del entry["time"], entry["hash"], made["ledger"], made["tiles"], made["counts"]
        del entry["request"]  # names its run by chance
        del made["noise"], made["noise_scale"]  # made of what was released
        traces.append((made, entry))
    assert traces[0] == traces[1] == traces[2]


@pytest.mark.property
def test_a_user_with_many_rows_has_the_mass_of_one() -> None:
    here, there = (11.21, 43.75), (11.31, 43.80)
    table = rows(*[("talker", *here)] * 1000, ("quiet", *there))
    _, truth = rehearse_exactly(table, COLUMNS, AREA, public=True, epsilon=1)
    assert sorted(truth[truth > 0]) == [0.5, 0.5]


@pytest.mark.golden
def test_known_noise_makes_the_same_map_again(city: pa.Table) -> None:
    def again() -> HeatmapRelease:
        noise = KeyedNoise(bytes(32), epoch=bytes(12))
        return rehearse(city, COLUMNS, AREA, public=True, epsilon=1, noise=noise)

    first, second = again(), again()
    assert np.array_equal(first.image(), second.image())
    assert first.receipt.rehearsal
    assert first.statement.startswith("REHEARSAL")


@pytest.mark.unit
def test_known_noise_is_refused_on_a_real_ledger(ledger: Ledger, city: pa.Table) -> None:
    from sfumato.heatmap import release_sums
    from sfumato.records import open_table, sum_cells

    guarded = sum_cells(open_table(city), COLUMNS, AREA, source="city")
    noise = KeyedNoise(bytes(32), epoch=bytes(12))
    with pytest.raises(InvalidParameter, match="rehearsals only"):
        release_sums(guarded, AREA, ledger=ledger, epsilon=1, noise=noise)
    with pytest.raises(LedgerMismatch):
        release_sums(guarded, AREA, ledger=Ledger.rehearsal(PureDP(1)), epsilon=1)
    assert not ledger.statement().entries


@pytest.mark.unit
def test_much_budget_gives_the_true_map(city: pa.Table) -> None:
    rehearsed, truth = rehearse_exactly(
        city, COLUMNS, AREA, public=True, epsilon=10**6, method=PyramidMethod(width=4**7)
    )
    assert compare(truth, rehearsed.image(), AREA).similarity > 0.999


@pytest.mark.unit
def test_groups_share_a_user_and_one_charge(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "gaze.ledger", PureDP(10**6), unit="observer", source="lab")
    table = pa.table(
        {
            "who": ["a", "a", "a", "b"],
            "image": ["cat", "dog", "dog", "dog"],
            "x": [10.0, 700.0, 700.0, 700.0],
            "y": [10.0, 500.0, 500.0, 500.0],
        }
    )
    maps = release_heatmap(
        table,
        Columns("who", "x", "y", by="image"),
        area_of_image(800, 600, 5),
        groups=["cat", "dog", "fish"],
        ledger=ledger,
        epsilon=10**6,
    ).by_group
    assert list(maps) == ["cat", "dog", "fish"]
    assert len(ledger.statement().entries) == 1
    # Observer a has a third of a user's mass on the cat; two thirds and observer b are on the dog.
    assert maps["cat"].tiles.total == pytest.approx(1 / 3, abs=1e-3)
    assert maps["dog"].tiles.total == pytest.approx(5 / 3, abs=1e-3)
    assert maps["fish"].tiles.total == pytest.approx(0, abs=1e-3)


@pytest.mark.unit
@pytest.mark.parametrize(
    "method", [*METHODS, baselines.GaussianMethod()], ids=lambda method: method.name
)
def test_every_method_can_be_rehearsed_and_puts_nobody_outside_the_bounds(
    city: pa.Table, method: Any
) -> None:
    narrow = area_in_degrees((11.20, 43.76, 11.32, 43.78), 6)
    made = rehearse(city, COLUMNS, narrow, public=True, epsilon=1, method=method)
    column, row, column_end, row_end = narrow.window(6)
    image = made.image()
    assert image[row:row_end, column:column_end].sum() == pytest.approx(1, abs=1e-9)
    west, south, east, north = narrow.bounds
    slack = narrow.grid.cell_height
    for spot in made.hotspots(3):
        assert west - slack <= spot.x <= east + slack
        assert south - slack <= spot.y <= north + slack


@pytest.mark.unit
def test_a_rehearsal_wants_it_said_that_rows_are_public(city: pa.Table) -> None:
    with pytest.raises(InvalidParameter, match="said aloud"):
        rehearse(city, COLUMNS, AREA, public=False, epsilon=1)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("method", "levels", "groups"),
    [
        (PyramidMethod(width=4**13), 16, 1),
        (baselines.FlatMethod(), 10, 4096),
        (baselines.AdaptiveGridMethod(), 10, 4096),
    ],
    ids=["pyramid", "laplace", "adaptive"],
)
def test_what_could_not_be_drawn_is_refused_before_it_is_charged(
    method: Any, levels: int, groups: int
) -> None:
    area = area_in_degrees((11.20, 43.74, 11.32, 43.81), levels)
    with pytest.raises(InvalidParameter, match="at most 33554432 numbers"):
        price(method, 1, area, groups=groups)


@pytest.mark.unit
def test_rows_taken_for_users_are_told_of(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", PureDP(1), unit="visitor", source="city")
    columns = Columns(None, "lon", "lat", one_row_one_user=True)
    made = release(rows(("a", 11.25, 43.77)), columns, AREA, ledger=ledger, epsilon=1)
    assert made.statement.endswith("; each row taken for another visitor")
    assert made.to_json()["counted"]["one_row_one_user"] is True


@pytest.mark.fault
def test_what_is_paid_for_is_kept_when_no_map_can_be_made_of_it(
    tmp_path: Path, city: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise MemoryError

    ledger = Ledger.create(tmp_path / "city.ledger", PureDP(1), unit="user", source="city")
    with monkeypatch.context() as patch:
        patch.setattr("sfumato.heatmap.methods.zoom.posteriors", broken)
        with pytest.raises(SolverFailed, match="was charged and its counts are kept: sfumato"):
            release(city, COLUMNS, AREA, ledger=ledger, epsilon=1)
    assert ledger.statement().left == PureDP(0)
    ((made,),) = [one.maps for one in resume_heatmap(ledger).results if one is not None]
    assert made.receipt.entry == ledger.statement().entries[0]


@pytest.mark.unit
def test_a_pyramid_too_fine_for_a_posterior_is_released_without(tmp_path: Path) -> None:
    area = area_of_plane((0, 0, 1, 1), levels=9)
    ledger = Ledger.create(tmp_path / "city.ledger", PureDP(1), unit="user", source="city")
    made = release(
        rows(("a", 0.5, 0.5)),
        COLUMNS,
        area,
        ledger=ledger,
        epsilon=1,
        method=PyramidMethod(width=4**9),
    )
    assert made.posterior is None
