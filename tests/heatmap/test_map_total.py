"""The total of a map is read off the root of its posterior, and its interval holds: also of nobody."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from tests.chance import LEVEL
from tests.heatmap.posteriors import Given
from tests.heatmap.test_pooling import town

from sfumato.heatmap.accuracy.noise_mark import SimulatedNoise
from sfumato.heatmap.accuracy.uncertainty import DRAWS, FINEST_DRAWS, maps_inside
from sfumato.heatmap.analysis import map_total as totals
from sfumato.heatmap.analysis.map_total import MapTotal, drawn_totals, total_limits
from sfumato.heatmap.inference import CountsPosterior, MapPosterior, NoisyCounts, pool_counts
from sfumato.heatmap.inference.posterior_kernel import LEAST
from sfumato.heatmap.methods.protocol import NoiseAwareMethod
from sfumato.heatmap.methods.pyramid import PyramidMethod
from sfumato.heatmap.methods.registry import as_method
from sfumato.heatmap.methods.zoom import ZoomMethod
from sfumato.privacy import UNITS
from sfumato.records import CellSums, bound_of_sums
from sfumato.spaces import Area, Grid

IntArray = npt.NDArray[np.int64]

# The bounds cut cells of every level.
AREA = Area(Grid(8), (0.03, 0.1, 0.97, 0.9), "plane")
FRAMES = 400


def counted(units: IntArray, rng: np.random.Generator) -> list[NoisyCounts]:
    """What zoom at epsilon 1 counts of frames [frame, cell]."""
    codes = np.flatnonzero(units)
    sums = CellSums(AREA.grid, codes, units.ravel()[codes], len(units), AREA)
    bound = bound_of_sums(AREA.grid, len(units))
    mechanism = as_method("zoom").mechanism(Fraction(1), bound, AREA.grid)
    tree = mechanism.sample(sums, SimulatedNoise(int(rng.integers(2**31))))
    return [tree.counts(frame) for frame in range(len(units))]


def some(users: float, rng: np.random.Generator) -> IntArray:
    """Frames [frame, cell] that are each of so many users, at a few places."""
    units = np.zeros((FRAMES, AREA.grid.size), dtype=np.int64)
    places = max(1, round(3 * users)) if users else 0
    for frame in units:
        at = rng.uniform((0.04, 0.11), (0.96, 0.89), (places, 2))
        np.add.at(
            frame, AREA.grid.cells_of(at[:, 0], at[:, 1]), int(users * UNITS / max(places, 1))
        )
    return units


def cabs(rng: np.random.Generator, *, users: int = 537, hours: int = 24) -> IntArray:
    """Days [frame, cell] of hours in which cabs drive between a few hubs: everybody has mass 1 in a day."""
    frames: list[IntArray] = []
    while len(frames) * hours < FRAMES:
        hubs, busy = rng.uniform(0.15, 0.85, (6, 2)), rng.dirichlet(np.full(hours, 2.0))
        sums = np.zeros((hours, AREA.grid.size))
        for _ in range(users):
            rides = int(rng.integers(4, 40))
            at = hubs[rng.integers(0, 6, rides)] + rng.normal(0, 0.06, (rides, 2))
            at = np.clip(at, (0.031, 0.101), (0.969, 0.899))
            when = rng.choice(hours, rides, p=busy)
            np.add.at(sums, (when, AREA.grid.cells_of(at[:, 0], at[:, 1])), 1 / rides)
        frames.append(np.rint(sums * UNITS).astype(np.int64))
    return np.concatenate(frames)


def held(units: IntArray, ends: npt.NDArray[np.float64], part: float = 1.0) -> int:
    """How many intervals hold the truth, made narrower to a part of their width."""
    true = units.sum(axis=1) / UNITS
    middle, reach = ends.mean(axis=1), part * (ends[:, 1] - ends[:, 0]) / 2
    return int((np.abs(true - middle) <= reach + 1e-9).sum())


def enough(count: int) -> bool:
    """Whether intervals that hold in 90 % hold so often."""
    return bool(stats.binom.cdf(count, FRAMES, 0.9) >= LEVEL)


@pytest.mark.statistical
@pytest.mark.parametrize("users", [0.0, 1.0, 22.4])
def test_the_interval_of_a_frame_holds_also_of_few_and_of_nobody(
    users: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of cabs by the hour, of one user, and of nobody: 90 % and more hold, and of the rivals fewer do.

    The rival of nobody has tails of sums of cells, and no total is too near nobody; else it is an
    interval a quarter as wide.
    """
    units = cabs(rng)[:FRAMES] if users > 2 else some(users, rng)
    posteriors = [CountsPosterior(one, mean_is_map=True, area=AREA) for one in counted(units, rng)]

    def ends() -> npt.NDArray[np.float64]:
        return np.array([total_limits(one, AREA) for one in posteriors])

    assert enough(held(units, ends()))
    if users:
        assert not enough(held(units, ends(), 0.25))
    else:
        monkeypatch.setattr(totals, "FAR_FROM_NOBODY", math.inf)
        monkeypatch.setattr(totals, "TOTAL_TAIL", 0.3)
        assert not enough(held(units, ends()))


@pytest.mark.statistical
@pytest.mark.parametrize(("method", "users"), [(ZoomMethod(), 30), (PyramidMethod(), 40)])
def test_the_interval_of_a_crowd_at_one_place_holds(
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    method: NoiseAwareMethod[Any],
    users: int,
) -> None:
    """Where the prior, which looks for people everywhere, errs most; the rival believes the posterior.

    Of a pyramid's total the noise of its first level alone is believed too, which no prior is in.
    """
    found = list[MapPosterior]()
    mechanism = method.mechanism(Fraction(1), bound_of_sums(AREA.grid, 1), AREA.grid)
    units = np.zeros((FRAMES, AREA.grid.size), dtype=np.int64)
    for frame in units:
        at = rng.uniform((0.1, 0.15), (0.9, 0.85))
        frame[AREA.grid.cells_of(at[:1], at[1:])] = users * UNITS
        sums = CellSums(AREA.grid, np.flatnonzero(frame), frame[frame > 0], 1, AREA)
        released = mechanism.sample(sums, SimulatedNoise(int(rng.integers(2**31))))
        (one,) = method.maps(released, mechanism, AREA)
        assert one.posterior is not None
        found.append(one.posterior)

    def ends() -> npt.NDArray[np.float64]:
        return np.array([total_limits(one, AREA) for one in found])

    assert enough(held(units, ends()))
    monkeypatch.setattr(totals, "TOTAL_TAIL", 1.0)
    monkeypatch.setattr(totals, "noisy_total", lambda *_: None)
    assert not enough(held(units, ends()))


@pytest.mark.reference
def test_the_root_says_the_totals_of_all_drawn_maps(rng: np.random.Generator) -> None:
    """But for the least mass of every cell; of joint maps too, whose totals are not shared."""
    units = some(40.0, rng)[:3]
    alone = [CountsPosterior(one, mean_is_map=True, area=AREA) for one in counted(units, rng)]
    frames = town(rng, odd=True)[0]
    area = Area(Grid(5), (0.0, 0.0, 1.0, 1.0), "plane")
    pairs: list[tuple[MapPosterior, Area]] = [(one, AREA) for one in alone]
    pairs += [(one, area) for one in pool_counts(frames, area)[0][:2]]
    for posterior, where in pairs:
        level = min(where.grid.levels, FINEST_DRAWS)
        added = maps_inside(posterior, where, level).sum(axis=(1, 2))
        assert drawn_totals(posterior, where) == pytest.approx(added, abs=4**level * LEAST)
    for one, joint in zip(frames, pool_counts(frames, area)[0], strict=True):
        own = CountsPosterior(one, mean_is_map=True, area=area)
        assert total_limits(joint, area) == total_limits(own, area)


@pytest.mark.reference
def test_so_does_that_of_a_pyramid_whose_counts_were_kept_back(rng: np.random.Generator) -> None:
    units = some(40.0, rng)[:1]
    method, codes = PyramidMethod(), np.flatnonzero(units[0])
    mechanism = method.mechanism(Fraction(1), bound_of_sums(AREA.grid, 1), AREA.grid)
    sums = CellSums(AREA.grid, codes, units[0][codes], 1, AREA)
    (found,) = method.maps(mechanism.sample(sums, SimulatedNoise(1)), mechanism, AREA)
    assert found.posterior is not None
    added = maps_inside(found.posterior, AREA, FINEST_DRAWS).sum(axis=(1, 2))
    known = found.posterior.totals_inside(AREA, DRAWS)
    assert known == pytest.approx(added, abs=4**FINEST_DRAWS * LEAST)


@pytest.mark.unit
def test_other_bounds_and_other_posteriors_have_their_maps_added_up(
    rng: np.random.Generator,
) -> None:
    (counts,) = counted(some(40.0, rng)[:1], rng)
    half = Area(AREA.grid, (0.03, 0.1, 0.5, 0.9), "plane")
    one = CountsPosterior(counts, mean_is_map=True, area=AREA)
    assert one.totals_inside(half, DRAWS) is None
    assert np.median(drawn_totals(one, half)) < np.median(drawn_totals(one, AREA))
    given = Given(np.arange(DRAWS)[:, None, None] * np.ones((1, 4, 4)) / 16)
    assert drawn_totals(given, Area(Grid(2), (0.0, 0.0, 1.0, 1.0), "plane")).tolist() == [
        pytest.approx(one) for one in range(DRAWS)
    ]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("total", "said"),
    [
        (MapTotal(537.2, 489.6, 590.2), "about 540 users (90%: 480 to 600)"),
        (MapTotal(1.3, 0.0, 9.2), "about 1 user (90%: 0 to 10)"),
        (MapTotal(0.2, 0.0, 5.0, "cabs"), "about 0 cabs (90%: 0 to 5)"),
        (MapTotal(1.0, None, None, "observer-images"), "about 1 observer-image"),
    ],
)
def test_a_total_in_words(total: MapTotal, said: Any) -> None:
    assert str(total) == said
