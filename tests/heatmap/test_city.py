"""The made-up city has the features it promises, and chance comes from the generator alone."""

from __future__ import annotations

import cProfile
from typing import Any

import numpy as np
import pytest
from tests.chance import assert_share

from sfumato.errors import InvalidParameter
from sfumato.heatmap.benchmark.synthetic_city import MAX_VISITS, Family, _within, check_ins

FAMILIES: tuple[Family, ...] = ("town", "street", "gaze")
NEW_YORK = (-74.3, 40.5, -73.7, 40.9)


def columns(table: Any) -> dict[str, Any]:
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.mark.unit
@pytest.mark.parametrize("family", FAMILIES)
def test_everybody_is_there_and_about_the_bounds(family: Family, rng: np.random.Generator) -> None:
    rows = columns(check_ins(500, family=family, bounds=NEW_YORK, rng=rng))
    assert np.array_equal(np.unique(rows["user"]), np.arange(500))
    _, x, y, last = rows.values()
    inside = (x >= -74.3) & (x <= -73.7) & (y >= 40.5) & (y <= 40.9)
    assert inside.mean() > 0.8
    assert np.isfinite(x).all()
    assert np.isfinite(y).all()
    if family == "gaze":
        assert list(rows) == ["user", "x", "y", "ms"]
        assert ((last >= 1) & (last <= 5000)).all()
    else:
        assert list(rows) == ["user", "lon", "lat", "time"]
        assert last.dtype.kind == "M"


@pytest.mark.unit
@pytest.mark.parametrize("family", FAMILIES)
def test_the_generator_decides_all(family: Family, key: bytes) -> None:
    seeds = [list(key), list(key), list(key[::-1])]
    tables = [check_ins(50, family=family, rng=np.random.default_rng(seed)) for seed in seeds]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])


@pytest.mark.unit
@pytest.mark.parametrize("family", FAMILIES)
def test_a_city_without_people_has_no_rows(family: Family, rng: np.random.Generator) -> None:
    assert check_ins(0, family=family, rng=rng).num_rows == 0


@pytest.mark.statistical
def test_visits_have_a_heavy_tail(rng: np.random.Generator) -> None:
    """1 + floor(3 X) visits, P(X > x) = (1 + x)**-1.2: more than 30 with probability (1 + 10)**-1.2."""
    visits = np.bincount(check_ins(200_000, rng=rng)["user"].to_numpy())
    assert visits.min() == 1
    assert visits.max() == MAX_VISITS
    share = 11**-1.2
    assert_share(int((visits > 30).sum()), visits.size, share, rivals=[0.9 * share, 1.1 * share])


@pytest.mark.statistical
def test_items_are_chosen_by_weight_among_ones_own(rng: np.random.Generator) -> None:
    """Two users, the second with weights 1 and 3 after the first one's single item."""
    user = np.repeat([0, 1], [1000, 40_000])
    chosen = _within(np.array([5.0, 1.0, 3.0]), np.array([1, 2]), user, rng)
    assert (chosen[:1000] == 0).all()
    assert (chosen[1000:] > 0).all()
    assert_share(int((chosen == 2).sum()), 40_000, 0.75, rivals=[0.72, 0.78])


@pytest.mark.unit
def test_some_venues_are_far_more_popular(rng: np.random.Generator) -> None:
    rows = columns(check_ins(20_000, rng=rng))
    cells, counts = np.unique(
        np.stack([rows["lon"], rows["lat"]]).T // 0.01, axis=0, return_counts=True
    )
    counts = np.sort(counts)[::-1]
    assert counts[: len(cells) // 10].sum() > 0.5 * counts.sum()


@pytest.mark.unit
def test_a_large_city_is_made_without_a_loop_over_its_people(rng: np.random.Generator) -> None:
    """About as many calls for a hundred thousand people as for ten thousand, and few of them."""
    calls = []
    for people in (10_000, 100_000):
        counter = cProfile.Profile()
        rows = counter.runcall(check_ins, people, rng=rng).num_rows
        assert rows > 5 * people
        calls.append(sum(entry.callcount for entry in counter.getstats()))
    assert calls[1] < 2 * calls[0] + 1000
    assert calls[1] < 50_000


@pytest.mark.unit
def test_what_is_no_city_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(InvalidParameter, match="at least 0, got -1; no city was made"):
        check_ins(-1, rng=rng)
    with pytest.raises(InvalidParameter, match="family must be one of"):
        check_ins(1, family="moon", rng=rng)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="bounds must rise"):
        check_ins(1, bounds=(0, 0, 0, 1), rng=rng)
