"""Several maps of the same people are forecast one by one, and what would make them usable is said."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.heatmap import (
    PlannedRelease,
    as_text,
    plan_heatmap,
    plan_release,
    release_heatmap,
)
from sfumato.heatmap.analysis import CountedRows, Shares, forecast, forecast_maps
from sfumato.heatmap.analysis.many_maps import USABLE
from sfumato.heatmap.measure import Measure
from sfumato.heatmap.render.many_maps import many_words, rows_words
from sfumato.heatmap.shuffled import SentReports, shuffled_text
from sfumato.privacy import Ledger, PureDP
from sfumato.records import Periods, Values

pytestmark = pytest.mark.unit


def test_an_hourly_film_of_537_cabs_is_noise_and_what_helps_is_said() -> None:
    found = forecast_maps(Shares(frames=24), 1, users=537)
    assert found.forecast == forecast(537 / 24, 1)
    assert found.usable is False
    said = many_words(found, Measure("cabs"))
    assert said.startswith(
        "about 22 cabs a frame: expect noise, similarity 0.36; merge to 5 frames or"
    )
    assert found.maps_needed is not None
    assert found.epsilon_needed is not None


def test_one_user_is_no_users() -> None:
    assert str(plan_heatmap(users=24, epsilon=1, frames=24)).startswith(
        "about 1 user a frame: nothing but noise; 24 frames share"
    )


@given(
    st.integers(1, 40), st.integers(1, 15), st.floats(30, 5e4), st.floats(0.1, 10), st.booleans()
)
def test_what_is_said_to_help_helps(
    frames: int, maps: int, users: float, epsilon: float, per_frame: bool
) -> None:
    shares = Shares(frames, maps, per_frame)
    found = forecast_maps(shares, epsilon, users=users)
    if found.usable:
        assert (found.maps_needed, found.epsilon_needed) == (None, None)
        return
    if found.maps_needed is not None:
        assert found.maps_needed < (maps if per_frame else frames * maps)
        fewer = forecast_maps(Shares(maps=found.maps_needed), epsilon, users=users)
        assert fewer.usable
    if found.epsilon_needed is not None:
        assert forecast_maps(shares, found.epsilon_needed * (1 + 1e-9), users=users).usable
    if found.users_needed is not None:
        assert found.users_needed > users
        assert forecast_maps(shares, epsilon, users=found.users_needed).usable


def test_mass_in_each_frame_is_forecast_as_one_map_is_and_its_cost_is_said() -> None:
    plan = plan_heatmap(users=537, epsilon=1, frames=24, mass_per_period=True)
    assert plan.forecast == forecast(537, 1)
    assert "it costs epsilon 24, 1 for each frame" in str(plan)
    shared = plan_heatmap(users=537, epsilon=1, frames=24)
    assert shared.forecast == forecast(537 / 24, 1)
    assert "it costs" not in str(shared)


def test_mass_in_each_map_is_priced_as_mass_in_each_frame_is() -> None:
    each = {"maps": 15, "mass_per_value": True}
    said = str(plan_heatmap(users=47, epsilon=1, **each))  # type: ignore[arg-type]
    assert "it costs epsilon 15, 1 for each map, unless" in said
    assert re.search(r"take epsilon \S+ for each map for similarity 0.5", said)
    said = str(plan_heatmap(users=47, target="similarity=0.7", **each))  # type: ignore[arg-type]
    assert re.search(r"with 47 users in 15 maps takes epsilon \S+ for each map in a usual", said)
    assert "it costs 15 times the epsilon for each map, unless" in said
    shared = str(plan_heatmap(users=47, target="similarity=0.97", maps=15))
    assert "with 47 users in 15 maps cannot be reached" in shared
    assert "costs" not in shared


def test_without_a_guess_it_is_said_how_many_it_takes() -> None:
    found = forecast_maps(Shares(frames=24), 1)
    assert (found.users, found.forecast, found.usable) == (None, None, None)
    said = many_words(found)
    assert said.startswith(
        "24 frames share everybody's mass: a usable frame (similarity 0.5 in nearly"
    )
    assert found.users_needed is not None
    enough = forecast(found.users_needed / 24, 1)
    assert enough.similarity.lowest >= USABLE
    assert forecast(0.9 * found.users_needed / 24, 1).similarity.lowest < USABLE


def test_so_few_that_nothing_was_simulated_are_noise() -> None:
    found = forecast_maps(Shares(24, 15), 1, users=537)
    assert found.forecast is None
    assert found.usable is False
    assert "about 1.5 users a map: nothing but noise; make 5 maps in all" in many_words(found)


def test_rows_are_like_users_and_a_cap_that_costs_more_than_it_shows_is_said() -> None:
    counted = CountedRows(4833, 40, users=537)
    assert counted.like_users == pytest.approx(120.8, abs=0.1)
    said = " ".join(rows_words(counted))
    assert "the noise is 40 times a row's" in said
    assert (
        "the average user has 9 rows; with a cap of 9 the map would be like one of at most about 537"
        in (said).replace("9.0", "9")
    )
    plan = plan_heatmap(users=537, epsilon=1, rows=4833, rows_per_user=40)
    assert plan.forecast == forecast(4833 / 40, 1)
    assert "costs more than it shows" in str(plan)
    fitting = CountedRows(4833, 9, users=537)
    assert fitting.like_users == pytest.approx(537)
    assert "costs more than it shows" not in " ".join(rows_words(fitting))
    tight = CountedRows(4833, 2, users=537)
    assert tight.like_users == 537, "nobody has more than mass 1"
    assert "of those above the cap no row more counts" in " ".join(rows_words(tight))


def test_frames_and_rows_go_together() -> None:
    plan = plan_heatmap(users=537, epsilon=1, rows=4833, rows_per_user=40, frames=4)
    assert plan.forecast == forecast(4833 / 40 / 4, 1)


BOX = (11.2, 43.74, 11.32, 43.81)


NOBODY = pa.table({name: pa.array([], pa.string()) for name in ("user", "lon", "lat", "time")})


def planned(ledger: Ledger, **options: Any) -> str:
    """What a dry run says, without a row."""
    hours = Periods("time", "hour", datetime(2026, 1, 5), datetime(2026, 1, 6))
    plan = plan_release(
        NOBODY,
        user="user",
        bounds=BOX,
        groups=hours,
        ledger=ledger,
        epsilon=1,
        **options,
    )
    assert PlannedRelease.from_json(plan.result.to_json()) == plan.result
    return as_text(plan.result)


def test_of_one_there_is_no_plural(ledger: Ledger) -> None:
    """A film of one frame, one cab a frame, one row, one device, one byte."""
    day = Periods("time", "day", datetime(2026, 1, 5), datetime(2026, 1, 6))
    plan = plan_release(NOBODY, user="user", bounds=BOX, groups=day, ledger=ledger, epsilon=1)
    assert "would cost epsilon 1 for 1 frame; " in as_text(plan.result)
    named = plan_release(
        NOBODY, user="user", bounds=BOX, by="time", groups=Values("time", ("a",)), ledger=ledger,
        epsilon=1,
    )  # fmt: skip
    assert " for 1 map; " in as_text(named.result)
    few = forecast_maps(Shares(frames=24), 1, users=24)
    assert many_words(few, Measure("cabs")).startswith("about 1 cab a frame: ")
    assert rows_words(CountedRows(1, 1))[0].startswith("like a map of at most about 1 user: ")
    assert "with 1 row in all" in rows_words(CountedRows(1, 1))[0]
    assert shuffled_text(SentReports(1, 1, 1)) == "1 device answered 1 round, 1 byte each"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "city.ledger", PureDP(30), unit="cab", source="city")


def test_a_dry_run_forecasts_every_frame(ledger: Ledger) -> None:
    assert "about 22 cabs a frame: expect noise" in planned(ledger, users=537)
    assert "24 frames share everybody's mass: a usable frame" in planned(ledger)
    assert "takes 2,400 cabs in all" in planned(ledger)
    assert "takes 96,000 rows in all" in planned(ledger, rows_per_user=40)
    for other in ({"method": "pyramid"}, {"levels": 4}):
        assert "frame:" not in planned(ledger, users=537, **other), "that was not simulated"
    with pytest.raises(InvalidParameter, match="users must be a number above 0, got 0"):
        planned(ledger, users=0)


def test_it_is_said_before_the_charge(ledger: Ledger) -> None:
    rows = pa.table({"user": ["a"], "lon": [11.25], "lat": [43.77], "time": ["2026-01-05T07:00"]})
    told: list[str] = []
    hours = Periods("time", "hour", datetime(2026, 1, 5), datetime(2026, 1, 6))
    release_heatmap(
        rows, user="user", bounds=BOX, levels=6, groups=hours, ledger=ledger, epsilon=1, users=537,
        watch=told.append,
    )  # fmt: skip
    said = [line.startswith("about 22 cabs a frame: expect noise") for line in told]
    assert said.index(True) < [line.startswith("counting") for line in told].index(True)
    one: list[str] = []
    release_heatmap(
        rows, user="user", bounds=BOX, levels=6, ledger=ledger, epsilon=1, watch=one.append
    )
    assert not any("similarity" in line for line in one), "nobody guessed how many there are"
