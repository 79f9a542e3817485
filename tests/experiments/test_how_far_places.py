"""Places to tune on and places to test on have no ground, no row and no name in common."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.heatmaps import how_far_places
from experiments.heatmaps.how_far_places import Sampled, on_side
from experiments.heatmaps.made_up_places import SORTS, made_up_places

from sfumato.heatmap.benchmark import Place
from sfumato.spaces import Grid


def world(name: str, rng: np.random.Generator) -> Place:
    """Towns in a world, each row a person."""
    towns = rng.random((40, 2))[rng.integers(40, size=30_000)]
    x, y = np.clip(towns + rng.normal(scale=0.01, size=towns.shape), 0, 1 - 1e-9).T
    return Place(name, np.arange(x.size), x, y, np.ones(x.size, dtype=np.int64))


def on_the_ground(one: Sampled, files: dict[str, Place]) -> set[int]:
    """Which rows of its file a place has, as a file's people are its rows here."""
    assert files[one.family].user.size == files[one.family].users
    return set(one.place.user.tolist())


@pytest.mark.unit
def test_no_ground_is_on_both_sides(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor of another file: the boxes of either side are those of all files."""
    monkeypatch.setattr(how_far_places, "MOST", 4_000)
    monkeypatch.setattr(how_far_places, "LEAST", 300)
    files = {name: world(name, rng) for name in ("brightkite", "geolife", "gowalla", "homes")}
    sides = [list(on_side(files, side)) for side in (0, 1)]
    assert all(len(side) > 20 for side in sides)
    for family in files:
        first, second = (
            set().union(*(on_the_ground(one, files) for one in side if one.family == family))
            for side in sides
        )
        assert first
        assert second
        assert not first & second
    boxes = [{one.place.name.split()[1] for one in side} for side in sides]
    assert not boxes[0] & boxes[1]


@pytest.mark.unit
def test_a_row_stands_for_two_people_at_most(rng: np.random.Generator) -> None:
    few = Sampled("homes", world("homes", rng))
    assert few.most() == 60_000
    sums = few.sums(50_000, Grid(3), rng)
    assert sums.units.sum() == 50_000 * 2**20


@pytest.mark.unit
def test_made_up_places_are_of_eight_sorts_and_the_same_every_time() -> None:
    once, again = (made_up_places(len(SORTS), 300) for _ in range(2))
    assert [one.name for one in once] == [f"{sort} 0" for sort in SORTS]
    for one, other in zip(once, again, strict=True):
        assert one.users == 300
        assert np.array_equal(one.x, other.x)
        assert np.all((one.x >= 0) & (one.x < 1) & (one.y >= 0) & (one.y < 1))
