"""How far off a map says it is: by hand, in words, to JSON and back, and whether it comes true."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.chance import LEVEL
from tests.heatmap.export.maps import CITY, SCENE, heatmap, tile_at, town
from tests.heatmap.posteriors import Given

from sfumato.heatmap import ZoomMethod, check_ins, price, release_sums
from sfumato.heatmap.accuracy.error_corrections import (
    EPSILONS,
    PYRAMID_CORRECTIONS,
    USERS,
    ZOOM_CORRECTIONS,
)
from sfumato.heatmap.accuracy.map_error import (
    ErrorInterval,
    MapError,
    between,
    calibrated,
    drawn_errors,
    some_of,
)
from sfumato.heatmap.analysis import compare, smooth
from sfumato.heatmap.analysis.metrics import emd_ground, emd_share
from sfumato.heatmap.benchmark import Place, sample_sums, true_shares
from sfumato.heatmap.pipeline.outputs import stated_errors
from sfumato.heatmap.private_map import HeatmapRelease
from sfumato.heatmap.render.error import error_facts, error_lines, errors_line
from sfumato.privacy import REHEARSAL, UNITS, KeyedNoise, Ledger
from sfumato.records import CellSums, guard_sums
from sfumato.spaces.area import area_of_plane

PLANE = area_of_plane((0, 0, 1, 1), 5)
METRES = MapError(
    "m",
    ErrorInterval(212.3, 148.7, 290.2),
    ErrorInterval(0.84, 0.8, 0.876),
    ErrorInterval(0.97, 0.951, 0.99),
    2134.0,
    3.21,
)


def released(sums: CellSums, area: Any, epsilon: str, key: bytes) -> HeatmapRelease:
    """A rehearsal by zoom, with known noise."""
    return release_sums(
        guard_sums(sums, source=REHEARSAL),
        area,
        ledger=Ledger.rehearsal(price(ZoomMethod(), epsilon, area)),
        epsilon=epsilon,
        method=ZoomMethod(),
        noise=KeyedNoise(key),
    )[0]


# in words


@pytest.mark.golden
def test_the_words() -> None:
    assert error_lines(METRES) == (
        "on average mass is 210 m off (90%: 150 to 290)",
        "similarity 0.84 (0.80 to 0.88) and correlation 0.97 (0.95 to 0.99) (90%), seen through a "
        "blur of 2%: 1 is a perfect map",
        "certified whatever the truth is, with 95%: mass is at most 2,100 m off; no method can "
        "promise every map less than 3.2 m",
    )
    assert [name for name, _ in error_facts(METRES)] == [
        "how far off",
        "similarity to the truth",
        "correlation with the truth",
        "certified",
    ]


@pytest.mark.golden
def test_units_people_use() -> None:
    far = replace(METRES, emd=ErrorInterval(12_300, 9_700, 15_000))
    assert error_lines(far)[0] == "on average mass is 12 km off (90%: 9.7 to 15)"
    pixels = replace(METRES, unit="px", emd=ErrorInterval(14.2, 9.96, 21))
    assert error_lines(pixels)[0] == "on average mass is 14 px off (90%: 10 to 21)"
    sides = replace(METRES, unit="sides", emd=ErrorInterval(0.021, 0.0149, 0.0302))
    assert error_lines(sides)[0] == (
        "on average mass is 0.021 of the map's side off (90%: 0.015 to 0.03)"
    )
    tiny = replace(sides, emd=ErrorInterval(0.000034, 0, 0.0001))
    assert error_lines(tiny)[0] == (
        "on average mass is 0.000034 of the map's side off (90%: 0 to 0.0001)"
    )
    assert errors_line([METRES, far]) == errors_line([METRES, far], 2)
    assert errors_line([METRES, far]) == (
        "on average mass is 0.21 to 12 km off, by map (all 90% intervals: 0.15 to 15)"
    )
    assert errors_line([METRES, far], 168) == (
        "on average mass is 0.21 to 12 km off, by map (all 90% intervals: 0.15 to 15; "
        "2 of 168 maps looked at)"
    )


@pytest.mark.golden
def test_a_method_that_knows_nothing_says_so() -> None:
    silent = town().error()
    assert (silent.emd, silent.similarity, silent.pearson, silent.certified) == (None,) * 4
    assert error_lines(silent) == ("how far off this map is, its method does not say",)
    assert error_facts(silent) == [("how far off", "the method does not say")]
    bounded = replace(silent, certified=100.0, lower=None)
    assert error_lines(bounded) == (
        "what to expect of this map, its method does not say",
        "certified whatever the truth is, with 95%: mass is at most 100 m off",
    )
    assert errors_line([silent, silent]) == error_lines(silent)[0]


@pytest.mark.fault
@pytest.mark.parametrize("problem", [MemoryError(), ValueError("no draws")])
def test_an_error_that_cannot_be_worked_out_is_said(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: HeatmapRelease) -> MapError:
        raise problem

    monkeypatch.setattr(HeatmapRelease, "error", fail)
    said: list[str] = []
    assert stated_errors([town()], warn=said.append) == {}
    why = str(problem) or type(problem).__name__
    assert said == [
        f"could not work out how far off the map is ({why}): it is paid for and says nothing of it"
    ]
    with pytest.warns(UserWarning, match="could not work out how far off"):
        assert stated_errors([town()]) == {}


# to JSON and back


@pytest.mark.unit
def test_json_holds_all_of_it() -> None:
    vague = replace(METRES, certified=None, uncertified="no bound below 2,000 m")
    for one in (METRES, town().error(), replace(METRES, lower=None), vague):
        assert MapError.from_json(one.to_json()) == one
    before = METRES.to_json()
    del before["uncertified"]  # files of before
    assert MapError.from_json(before) == METRES


@pytest.mark.unit
@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": "miles"},
        {"certified": -1},
        {"certified": math.inf},
        {"emd": {"value": 3, "low": 4, "high": 5}},
        {"emd": {"value": math.nan, "low": 4, "high": 5}},
    ],
)
def test_json_that_says_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="error"):
        MapError.from_json(METRES.to_json() | wrong)


# by hand


def moved(area: Any, near: tuple[float, float], away: tuple[float, float]) -> tuple[Any, Any]:
    """A map of one place, and its posterior: half the draws there, half at another place."""
    here, there = (heatmap(area, [tile_at(area, *place)]) for place in (near, away))
    images = np.repeat(here.tiles.image()[None], 200, axis=0)
    images[::2] = there.tiles.image()
    return here, Given(images)


@pytest.mark.unit
def test_draws_are_compared_with_the_map() -> None:
    here, known = moved(PLANE, (0.3, 0.3), (0.7, 0.3))
    found = drawn_errors(known, here.shares, PLANE)
    a, b = (smooth(one / one.sum(), 0.02) for one in known.drawn[1::-1])
    assert found["emd"].high == pytest.approx(emd_share(a, b, PLANE), rel=1e-4)
    assert found["emd"].low == pytest.approx(0, abs=1e-6)
    assert found["similarity"].high == pytest.approx(1, abs=1e-5)
    assert found["similarity"].low == pytest.approx(0, abs=1e-3)
    assert found["pearson"].high == pytest.approx(1, abs=1e-5)


@pytest.mark.unit
def test_distances_are_metres_pixels_and_sides() -> None:
    for area, near, away, unit in (
        (CITY, (-73.98, 40.75), (-73.9, 40.75), "m"),
        (SCENE, (20, 30), (60, 30), "px"),
        (PLANE, (0.3, 0.3), (0.7, 0.3), "sides"),
    ):
        here, known = moved(area, near, away)
        error = replace(here, posterior=known).error()
        assert error.unit == unit
        assert error.emd is not None
        a, b = (one / one.sum() for one in known.drawn[:2])
        true = (emd_share if unit == "sides" else emd_ground)(a, b, area)
        assert error.emd.high == pytest.approx(true, rel=0.05)
        assert error.certified is None  # these draws come from no counts


@pytest.mark.unit
def test_a_draw_of_nobody_is_an_even_map() -> None:
    here, _ = moved(PLANE, (0.3, 0.3), (0.7, 0.3))
    found = drawn_errors(Given(np.zeros((200, 32, 32))), here.shares, PLANE)
    even = np.full((32, 32), 1 / 1024)
    true = emd_share(smooth(here.image(), 0.02), smooth(even, 0.02), PLANE)
    assert astuple(found["emd"]) == pytest.approx((true,) * 3, rel=1e-4)


@pytest.mark.unit
def test_it_is_worked_out_once_for_each_map() -> None:
    here, known = moved(PLANE, (0.3, 0.3), (0.7, 0.3))
    one = replace(here, posterior=known)
    assert one.error() is one.error()
    other = replace(one, tiles=heatmap(PLANE, [tile_at(PLANE, 0.5, 0.5)]).tiles)
    assert other.error() != one.error()
    assert known.asked == [5]  # one set of draws for both


@pytest.mark.unit
def test_of_many_maps_some_are_looked_at() -> None:
    every: Any = list(range(100))
    few: Any = some_of(every[:12])
    some: Any = some_of(every)
    assert few == every[:12]
    assert some == [0, 33, 66, 99]


@pytest.mark.unit
def test_a_bound_that_says_little_is_not_stated() -> None:
    """Of four people at epsilon 0.1 nothing is certain; of 20,000 at epsilon 10 much is."""
    some = check_ins(20_000, family="town", rng=np.random.default_rng(1))
    user, x, y, _ = (some[name].to_numpy() for name in some.column_names)
    place = Place("town", user, x, y, np.ones(user.size, dtype=np.int64))
    area, said = area_of_plane((0, 0, 1, 1), 5), []
    for users, epsilon in ((4, "0.1"), (20_000, "10")):
        sums = sample_sums(place, users, area.grid, rng=np.random.default_rng(2))
        said.append(released(sums, area, epsilon, b"c" * 32).error())
    little, much = said
    assert little.certified is None
    assert little.uncertified.startswith("no bound below 0.5 sides")
    assert len(error_lines(little)) == 2  # and no word of it
    assert "certified" not in dict(error_facts(little))
    assert much.certified is not None
    assert much.certified < 0.5
    assert much.uncertified == ""
    assert "certified whatever the truth is" in error_lines(much)[2]


# corrections


@pytest.mark.property
@settings(max_examples=200)
@given(
    st.lists(st.floats(1e-9, 1), min_size=3, max_size=3).map(sorted),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(sorted),
    st.floats(0, 1e9),
    st.floats(1e-9, 1e9),
    st.sampled_from([ZOOM_CORRECTIONS, PYRAMID_CORRECTIONS]),
)
def test_corrected_intervals_hold_their_value_and_are_numbers(
    positive: list[float], signed: list[float], users: float, epsilon: float, table: Any
) -> None:
    low, value, high = positive
    drawn: Any = {
        "emd": ErrorInterval(value, low, high),
        "similarity": ErrorInterval(value, low, high),
        "pearson": ErrorInterval(signed[1], signed[0], signed[2]),
    }
    assert calibrated(drawn, users, epsilon, None) == drawn
    for name, one in calibrated(drawn, users, epsilon, table).items():
        assert one.low <= one.value <= one.high, name
        assert math.isfinite(one.low + one.high)
        assert (0 if name != "pearson" else -1) <= one.low
        assert name == "emd" or one.high <= 1


@pytest.mark.unit
def test_corrections_have_an_entry_for_users_and_epsilon() -> None:
    for table in (ZOOM_CORRECTIONS, PYRAMID_CORRECTIONS):
        for steps in table.values():
            assert [np.shape(one) for one in steps] == [(len(USERS), len(EPSILONS))] * 3


@pytest.mark.unit
def test_between_entries_of_a_table_corrections_are_between() -> None:
    """Half-way in the logarithm of users and of epsilon, a quarter of each of four entries."""
    weights = between(100, 10**0.5).reshape(len(USERS), len(EPSILONS))
    assert weights[:2, 1:] == pytest.approx(np.full((2, 2), 0.25))
    assert weights.sum() == pytest.approx(1)
    assert between(3, 0.001)[0] == between(10**6, 99.0)[-1] == 1


@pytest.mark.unit
def test_a_map_states_its_draws_corrected() -> None:
    sums = CellSums(PLANE.grid, np.array([3, 77, 700]), np.array([60, 150, 30]) * UNITS)
    found = released(sums, PLANE, "1", b"c" * 32)
    assert found.posterior is not None
    drawn = drawn_errors(found.posterior, found.shares, PLANE)
    said = found.error()
    meant = calibrated(drawn, found.tiles.total, 1.0, ZOOM_CORRECTIONS)
    assert {"emd": said.emd, "similarity": said.similarity, "pearson": said.pearson} == meant
    assert all(meant[name] != drawn[name] for name in drawn)


@pytest.mark.unit
def test_an_end_is_so_many_halves_of_the_range_from_the_median() -> None:
    one = ErrorInterval(2.0, 1.0, 4.0)  # logarithms: half the range is log 2
    steps: Any = tuple((((step,) * 3,) * 4) for step in (-2.0, 1.0, 3.0))
    (found,) = calibrated({"emd": one}, 700, 2.0, {"emd": steps}).values()
    assert astuple(found) == pytest.approx((4.0, 0.5, 16.0))


# whether it comes true


@pytest.mark.statistical
def test_made_up_towns_are_as_far_off_as_their_maps_say(
    rng: np.random.Generator, key: bytes
) -> None:
    """Maps of thirty towns of 200 people: their intervals hold, a tenth of each does not.

    If 90 % hold, fewer than 17 of 30 do so in less than one run of a million; if 15 %, which is more
    than a tenth of the width should hold, 17 or more do so as seldom.
    """
    area = area_of_plane((0, 0, 1, 1), 6)
    names = ("emd", "similarity", "pearson")
    held, narrow = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for number in range(30):
        table = check_ins(200, family="town", rng=rng)  # a town of its own
        user, x, y, _ = (table[name].to_numpy() for name in table.column_names)
        place = Place("town", user, x, y, np.ones(user.size, dtype=np.int64))
        sums = sample_sums(place, 200, area.grid, rng=rng)
        found = released(sums, area, "1", key[:-1] + bytes([number]))
        seen = compare(smooth(true_shares(sums), 0.02), found.image(sigma=0.02), area)
        said = found.error()
        assert said.emd is not None
        assert said.lower is not None
        assert said.lower <= said.emd.value
        for name in names:
            one, true = getattr(said, name), getattr(seen, name)
            held[name] += one.low <= true <= one.high
            narrow[name] += abs(true - one.value) <= (one.high - one.low) / 20
    least = 17
    assert stats.binom.cdf(least - 1, 30, 0.9) < LEVEL
    assert stats.binom.sf(least - 1, 30, 0.15) < LEVEL
    assert min(held.values()) >= least > max(narrow.values()), (held, narrow)
