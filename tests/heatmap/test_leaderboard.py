"""Every method gets the same samples, its own noise, and the truth stays out of its reach."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap import PyramidMethod, compare, smooth
from sfumato.heatmap.benchmark import (
    SIGMA,
    BuiltinMethod,
    Contender,
    Place,
    Score,
    UserMethod,
    digest,
    known_noise,
    rehearse_sums,
    sample_sums,
    score_sample,
    standard_methods,
    synthetic_places,
    true_shares,
)
from sfumato.heatmap.benchmark.leaderboard import maps_of_sample
from sfumato.heatmap.benchmark.places import exact_counts, public_place
from sfumato.heatmap.methods.baselines import CoarseMethod
from sfumato.privacy import UNITS
from sfumato.records import Columns
from sfumato.spaces import Grid

pytestmark = pytest.mark.unit

PYRAMID, COARSE = (
    BuiltinMethod("pyramid", PyramidMethod()),
    BuiltinMethod("coarse", CoarseMethod(users=30)),
)


def chance(seed: bytes) -> np.random.Generator:
    return np.random.default_rng(list(seed))


@pytest.fixture(scope="module")
def place() -> Place:
    return synthetic_places(1, people=60, chance=chance)[0]


def scores(place: Place, *contenders: Contender, sample: int = 0) -> list[Score]:
    found = score_sample(
        place,
        contenders,
        source="here",
        users=30,
        epsilon=1.0,
        sample=sample,
        chance=chance,
        levels=5,
    )
    return [replace(score, seconds=0.0) for score in found]


def own(function: Callable[..., Any]) -> UserMethod:
    return UserMethod("mine:function", function)


def test_samples_of_users_keep_their_bound(rng: np.random.Generator) -> None:
    """Three people, one of them elsewhere: everyone owns UNITS, split by integer division."""
    place = Place(
        "here",
        np.array([1, 1, 1, 2, 3]),
        np.array([0.1, 0.1, 0.9, 0.5, 2.0]),
        np.array([0.1, 0.1, 0.9, 0.5, 0.5]),
        np.array([1, 1, 1, 4, 1]),
    )
    sums = sample_sums(place, 3, Grid(2), rng=rng)
    assert sums.units.tolist() == [2 * UNITS // 3, UNITS, UNITS // 3]
    assert math.isclose(true_shares(sums).sum(), 1)
    assert math.isclose(exact_counts(sums).sum(), 2, abs_tol=1 / UNITS)
    with pytest.raises(InvalidInput, match="here has 3 people, a sample of 4 was asked for"):
        sample_sums(place, 4, Grid(2), rng=rng)


def test_made_up_places_come_again_and_differ() -> None:
    first, again = (synthetic_places(4, people=20, chance=chance) for _ in range(2))
    assert [one.name for one in first] == ["town 0", "street 0", "gaze 0", "town 1"]
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.x, other.x)
        assert one.users == 20
    assert not np.array_equal(first[0].x[:10], first[3].x[:10])


def test_a_score_is_the_comparison_of_a_rehearsal(place: Place) -> None:
    """The reference is put together by hand, from the words of expected.toml."""
    (score,) = scores(place, PYRAMID, sample=1)
    grid = Grid(5)
    sums = sample_sums(place, 30, grid, rng=chance(digest("users", "town 0", 30, 1)))
    tiles = rehearse_sums(
        PyramidMethod(), sums, 1.0, noise=known_noise("pyramid", "town 0", 30, 5, 1.0, 1)
    )
    image = smooth(tiles.normalized().image(5), SIGMA)
    found = compare(smooth(true_shares(sums), SIGMA), image, grid)
    assert (score.similarity, score.pearson, score.kl, score.emd) == (
        found.similarity, found.pearson, found.kl, found.emd,
    )  # fmt: skip
    assert (score.source, score.place, score.sample, score.users, score.side) == (
        "here",
        "town 0",
        1,
        30,
        32,
    )
    assert score not in scores(place, PYRAMID, sample=0)


def test_a_score_does_not_depend_on_who_else_runs(place: Place) -> None:
    assert scores(place, PYRAMID, COARSE) == [*scores(place, PYRAMID), *scores(place, COARSE)]


def test_the_baseline_and_its_threshold_share_their_noise(place: Place) -> None:
    ours = standard_methods(30)
    both = [BuiltinMethod("laplace", ours["laplace"]), BuiltinMethod("top", ours["laplace"])]
    drawn = maps_of_sample(place, both, users=30, epsilon=1.0, sample=0, chance=chance, levels=4)
    _, plain, top = (image for _, image, _ in drawn)
    assert np.array_equal(plain, top)


def test_who_gives_the_truth_back_is_perfect(place: Place) -> None:
    (score,) = scores(place, own(lambda counts, epsilon, rng: 7 * counts))
    assert score.similarity == pytest.approx(1, abs=1e-12)
    assert score.pearson == pytest.approx(1, abs=1e-12)
    assert abs(score.kl) < 1e-12
    assert score.emd < 1e-12


def test_a_function_gets_users_epsilon_and_a_generator_that_comes_again(place: Place) -> None:
    seen: list[tuple[float, float, float]] = []

    def watch(counts: Any, epsilon: float, rng: np.random.Generator) -> Any:
        seen.append((float(counts.sum()), epsilon, rng.random()))
        return np.zeros(counts.shape)

    first, again = scores(place, own(watch)), scores(place, own(watch))
    assert first == again
    assert seen[0] == seen[1]
    total, epsilon, _ = seen[0]
    # Each of at most 30 people leaves less than a unit for each of their cells to integer division.
    assert 20 < total <= 30
    assert epsilon == 1.0
    even = own(lambda counts, epsilon, rng: np.ones(counts.shape))
    assert scores(place, even) == first, "nothing left is an even map"


def test_a_function_cannot_change_what_others_get(place: Place) -> None:
    def spoil(counts: Any, epsilon: float, rng: Any) -> Any:
        counts[:] = 0
        return np.ones(counts.shape)

    assert scores(place, own(spoil), PYRAMID)[1:] == scores(place, PYRAMID)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda counts, epsilon, rng: 1 / 0, "failed: ZeroDivisionError: division by zero"),
        (lambda counts, epsilon: counts, "failed: TypeError"),
        (lambda counts, epsilon, rng: counts[:8], r"array of shape \(32, 32\), got \(8, 32\)"),
        (lambda counts, epsilon, rng: None, r"got \(\)"),
        (lambda counts, epsilon, rng: "map", "failed: ValueError"),
        (lambda counts, epsilon, rng: counts - 1, "none below 0"),
        (lambda counts, epsilon, rng: counts / 0, "finite numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*encountered in divide")
def test_a_functions_mistake_is_one_sentence(place: Place, function: Any, said: str) -> None:
    with pytest.raises(
        InvalidInput, match=f"^mine:function at epsilon 1 on town 0 .*{said}.*nothing was"
    ):
        scores(place, own(function))


def test_a_public_table_becomes_a_place(tmp_path: Path) -> None:
    """Rows without a user, without a place or outside the box do not count."""
    file = tmp_path / "rows.parquet"
    nan = math.nan
    rows = {
        "who": ["a", "a", "b", None, "", "c", "d"],
        "lon": [10.0, 12.0, 11.0, 11.0, 11.0, nan, 30.0],
        "lat": [40.0, 44.0, 41.0, 41.0, 41.0, 41.0, 41.0],
    }
    pq.write_table(pa.table(rows), file)
    columns = Columns("who", "lon", "lat")
    found = public_place(str(file), columns, name="rows", bounds=(10.0, 40.0, 12.0, 44.0))
    assert (found.name, found.users) == ("rows", 2)
    assert found.x.tolist() == [0.0, 1.0, 0.5]
    assert found.y.tolist() == [0.0, 1.0, 0.25]
    assert found.user[0] == found.user[1] != found.user[2]
    whole = public_place(str(file), columns, name="rows")
    assert whole.x.tolist() == [0.0, 0.1, 0.05, 1.0]
    with pytest.raises(InvalidParameter, match="name their column with `user`"):
        public_place(str(file), Columns(None, "lon", "lat", one_row_one_user=True), name="rows")
    with pytest.raises(InvalidInput, match="must rise from low to high"):
        public_place(str(file), columns, name="rows", bounds=(10.0, 44.0, 12.0, 40.0))


def test_a_public_box_may_cross_the_antimeridian(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("user,lon,lat\n1,179,0\n2,-179,1\n3,0,0\n")
    columns = Columns("user", "lon", "lat")
    found = public_place(str(file), columns, name="fiji", bounds=(178.0, 0.0, -178.0, 1.0))
    assert found.x.tolist() == [0.25, 0.75]
    assert found.users == 2
