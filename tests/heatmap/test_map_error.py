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
from sfumato.heatmap.analysis import compare, smooth
from sfumato.heatmap.analysis.metrics import emd_ground, emd_share
from sfumato.heatmap.benchmark import Place, sample_sums, true_shares
from sfumato.heatmap.inference.map_error import (
    PYRAMID_CORRECTIONS,
    STRENGTHS,
    ZOOM_CORRECTIONS,
    ErrorInterval,
    MapError,
    calibrated,
    drawn_errors,
)
from sfumato.heatmap.render.error import error_facts, error_lines, errors_line
from sfumato.privacy import REHEARSAL, KeyedNoise, Ledger
from sfumato.records import guard_sums
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
    assert errors_line([METRES, far]) == (
        "on average mass is 0.21 to 12 km off, by map; each has its interval in its file"
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


# to JSON and back


@pytest.mark.unit
def test_json_holds_all_of_it() -> None:
    for one in (METRES, town().error(), replace(METRES, lower=None)):
        assert MapError.from_json(one.to_json()) == one


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


# corrections


@pytest.mark.property
@settings(max_examples=200)
@given(
    st.lists(st.floats(1e-9, 1), min_size=3, max_size=3).map(sorted),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(sorted),
    st.floats(0, 1e9),
    st.sampled_from([ZOOM_CORRECTIONS, PYRAMID_CORRECTIONS]),
)
def test_corrected_intervals_hold_their_value_and_are_numbers(
    positive: list[float], signed: list[float], strength: float, table: Any
) -> None:
    low, value, high = positive
    drawn: Any = {
        "emd": ErrorInterval(value, low, high),
        "similarity": ErrorInterval(value, low, high),
        "pearson": ErrorInterval(signed[1], signed[0], signed[2]),
    }
    assert calibrated(drawn, strength, None) == drawn
    for name, one in calibrated(drawn, strength, table).items():
        assert one.low <= one.value <= one.high, name
        assert math.isfinite(one.low + one.high)
        assert (0 if name != "pearson" else -1) <= one.low
        assert name == "emd" or one.high <= 1


@pytest.mark.unit
def test_corrections_have_an_entry_for_each_strength() -> None:
    for table in (ZOOM_CORRECTIONS, PYRAMID_CORRECTIONS):
        for lines in table.values():
            assert [len(line) for line in lines] == [len(STRENGTHS)] * 3


# whether it comes true


@pytest.mark.statistical
def test_made_up_towns_are_as_far_off_as_their_maps_say(
    rng: np.random.Generator, key: bytes
) -> None:
    """Thirty maps of 200 people: their intervals hold, those of draws a tenth as far apart do not.

    If 90 % hold, fewer than 17 of 30 do so in less than one run of a million; if 15 %, which is more
    than a tenth of the width should hold, 17 or more do so as seldom.
    """
    area = area_of_plane((0, 0, 1, 1), 6)
    table = check_ins(2000, family="town", rng=rng)
    user, x, y, _ = (table[name].to_numpy() for name in table.column_names)
    place = Place("town", user, x, y, np.ones(user.size, dtype=np.int64))
    way, held, narrow = ZoomMethod(), 0, 0
    for number in range(30):
        sums = sample_sums(place, 200, area.grid, rng=rng)
        (found,) = release_sums(
            guard_sums(sums, source=REHEARSAL),
            area,
            ledger=Ledger.rehearsal(price(way, 1, area)),
            epsilon=1,
            method=way,
            noise=KeyedNoise(key[:-1] + bytes([number])),
        )
        true = compare(smooth(true_shares(sums), 0.02), found.image(sigma=0.02), area).emd
        said = found.error()
        assert said.emd is not None
        assert said.lower is not None
        assert said.lower <= said.emd.value
        held += said.emd.low <= true <= said.emd.high
        narrow += abs(true - said.emd.value) <= (said.emd.high - said.emd.low) / 20
    least = 17
    assert stats.binom.cdf(least - 1, 30, 0.9) < LEVEL
    assert stats.binom.sf(least - 1, 30, 0.15) < LEVEL
    assert held >= least > narrow
