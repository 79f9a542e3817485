"""The forecast is smooth, answers both ways alike, and refuses what was not simulated; a rival fails."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.analysis import GROWS, METRICS, Metric
from sfumato.heatmap.analysis.forecasts import (
    TABLE,
    Kind,
    forecast,
    forecast_table,
    required_epsilon,
    required_users,
    table_from_json,
)
from sfumato.heatmap.benchmark import BuiltinMethod, score_sample, synthetic_places
from sfumato.heatmap.methods.zoom import ZoomMethod

KINDS: tuple[Kind, ...] = get_args(Kind)
WIDEST = 0.2 + 2e-3  # lines between knots, and four digits


def raw() -> Any:
    return json.loads(files("sfumato.heatmap.analysis").joinpath(TABLE).read_text(encoding="utf-8"))


@pytest.mark.property
@given(st.floats(20, 1e6), st.floats(0.05, 20), st.sampled_from(METRICS), st.sampled_from(KINDS))
def test_an_interval_holds_its_middle_and_is_narrow(
    users: float, epsilon: float, metric: Metric, kind: Kind
) -> None:
    try:
        found = forecast(users, epsilon, kind=kind)
    except InvalidParameter:
        assert users * epsilon < 4
        return
    one = found.of(metric)
    assert one.lowest - 1e-3 <= one.low <= one.middle <= one.high <= one.highest + 1e-3
    assert 0.6 < one.holds <= 1
    assert found.similarity.high - found.similarity.low <= WIDEST
    assert 0 < found.similarity.low < found.similarity.high < 1


@pytest.mark.property
@given(st.floats(2, 20), st.floats(0.4, 10), st.sampled_from(METRICS), st.sampled_from(KINDS))
def test_few_users_are_forecast_too_and_more_epsilon_never_hurts_them(
    users: float, epsilon: float, metric: Metric, kind: Kind
) -> None:
    if users * epsilon < 4:
        with pytest.raises(InvalidParameter, match="nothing but noise"):
            forecast(users, epsilon, kind=kind)
        return
    here = forecast(users, epsilon, kind=kind).of(metric)
    assert here.lowest - 1e-3 <= here.low <= here.middle <= here.high <= here.highest + 1e-3
    more = forecast(users, 1.3 * epsilon, kind=kind).of(metric)
    assert GROWS[metric] * (more.middle - here.middle) >= -1e-9


@pytest.mark.unit
@pytest.mark.parametrize("kind", KINDS)
def test_the_lines_of_few_users_run_into_those_of_many(kind: Kind) -> None:
    for metric in METRICS:
        few, many = (forecast(n, 1, kind=kind).of(metric).middle for n in (20 - 1e-6, 20))
        assert few == pytest.approx(many, rel=1e-4)


@pytest.mark.property
@given(st.floats(20, 2e4), st.floats(0.4, 10), st.sampled_from(METRICS), st.sampled_from(KINDS))
def test_more_users_and_more_epsilon_never_hurt(
    users: float, epsilon: float, metric: Metric, kind: Kind
) -> None:
    here = forecast(users, epsilon, kind=kind)
    for better in (
        forecast(1.3 * users, epsilon, kind=kind),
        forecast(users, 1.3 * epsilon, kind=kind),
    ):
        for end in ("low", "middle", "high"):
            gain = getattr(better.of(metric), end) - getattr(here.of(metric), end)
            assert GROWS[metric] * gain >= -1e-9


@pytest.mark.property
@given(st.floats(50, 5000), st.floats(0.2, 10), st.sampled_from(METRICS), st.sampled_from(KINDS))
def test_what_is_needed_is_what_is_forecast(
    users: float, epsilon: float, metric: Metric, kind: Kind
) -> None:
    """There and back: the epsilon for what epsilon gives is epsilon, up to a step of the search."""
    wanted = forecast(users, epsilon, kind=kind).of(metric)
    back = required_epsilon(metric, wanted.middle, users=users, kind=kind)
    assert back.usual is not None
    step = (20 / 0.05) ** (1 / 1000)
    assert back.usual <= epsilon * step
    # Where the line is level, in four digits, less does as well.
    again = forecast(users, back.usual, kind=kind).of(metric)
    assert again.middle == pytest.approx(wanted.middle, rel=0.02)
    many = required_users(metric, wanted.middle, epsilon=epsilon, kind=kind)
    assert many.usual is not None
    assert many.usual <= users * (20_000 / 2) ** (1 / 1000) + 1
    worse = wanted.lowest if GROWS[metric] > 0 else wanted.highest
    safe = required_epsilon(metric, worse, users=users, kind=kind).safe
    assert safe is not None
    assert safe <= epsilon * step


@pytest.mark.unit
def test_what_cannot_be_reached_is_said() -> None:
    assert required_epsilon("similarity", 0.99, users=20).usual is None
    assert required_users("emd", 1e-6, epsilon=0.05).lucky is None
    need = required_epsilon("similarity", 0.8, users=100)
    assert need.lucky is not None
    assert need.usual is not None
    assert need.safe is not None
    assert need.lucky < need.usual < need.safe


@pytest.mark.unit
def test_beyond_what_was_simulated_the_forecast_is_the_last() -> None:
    table = forecast_table()
    most = 10 ** float(table.knots[-1])
    more = forecast(100 * most, 1)
    assert more.beyond
    assert not forecast(200, 1).beyond
    assert more.similarity.middle == pytest.approx(table.lines["similarity"]["middle"][-1])


@pytest.mark.unit
@pytest.mark.parametrize(
    ("users", "epsilon", "words"),
    [
        (1, 5, "users of 2 or more, got 1"),
        (
            3,
            1,
            "too few: users times epsilon must be at least 4, below it a map shows nothing but noise",
        ),
        (200, 50, "epsilon of 0.05 to 20, got 50"),
        (200, 0.01, "epsilon of 0.05 to 20, got 0.01"),
        (20, 0.06, "too few: users times epsilon must be at least 4"),
        (math.inf, 1, "users must be a number above 0"),
        (200, math.nan, "epsilon must be a number above 0"),
        (-3, 1, "users must be a number above 0, got -3"),
    ],
)
def test_what_was_not_simulated_is_refused(users: float, epsilon: float, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words) as refused:
        forecast(users, epsilon)
    assert str(refused.value).endswith("nothing was forecast")


@pytest.mark.unit
def test_bad_wishes_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="one of similarity, pearson, kl, emd, got 'beauty'"):
        required_epsilon("beauty", 0.7, users=200)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"similarity lies between 0 and 1, got 1\.5"):
        required_epsilon("similarity", 1.5, users=200)
    with pytest.raises(InvalidParameter, match=r"emd lies between 0 and 1 .*, got 0;"):
        required_users("emd", 0, epsilon=1)
    with pytest.raises(InvalidParameter, match="kinds are places, gaze, got 'mars'"):
        forecast(200, 1, kind="mars")  # type: ignore[arg-type]


@pytest.mark.unit
def test_a_damaged_table_is_refused() -> None:
    data = raw()
    with pytest.raises(InvalidInput, match="has the format sfumato-forecast/1, got x"):
        table_from_json(data | {"format": "x"}, "places")
    with pytest.raises(InvalidInput, match="no table of forecasts"):
        table_from_json({"format": data["format"]}, "places")
    data["places"]["knots"] = data["places"]["knots"][:-1]
    with pytest.raises(InvalidInput, match="a value at each knot"):
        table_from_json(data, "places")


@pytest.mark.unit
@pytest.mark.parametrize("kind", KINDS)
def test_lines_never_turn_back(kind: Kind) -> None:
    table = forecast_table(kind)
    assert np.all(np.diff(table.knots) > 0)
    for metric, lines in table.lines.items():
        for line in lines.values():
            assert np.all(GROWS[metric] * np.diff(line) >= 0)


@pytest.mark.statistical
def test_zoom_does_as_forecast_in_cities_it_was_not_made_of(rng: np.random.Generator) -> None:
    """Six new made-up cities; a forecast for a tenth of the users is a rival that must fail.

    Over cities and noise a mean of Similarity deviates by about 0.08, so the mean of six by 0.033;
    the middle is off by another 0.03 at most in cities. A fifth is six deviations; the rival is off
    by 0.4.
    """
    towns = [
        place
        for place in synthetic_places(9, people=220, chance=lambda _: rng)
        if place.name.startswith(("town", "street"))
    ]
    scores = [
        score_sample(
            place, [BuiltinMethod("zoom", ZoomMethod())], source="new", users=200, epsilon=1.0, sample=0,
            chance=lambda _: rng,
        )[0]
        for place in towns
    ]  # fmt: skip
    found = forecast(200, 1)
    rival = forecast(20, 1)
    mean = float(np.mean([score.similarity for score in scores]))
    off = float(np.mean([score.emd for score in scores]))
    assert abs(mean - found.similarity.middle) < 0.2
    assert abs(mean - rival.similarity.middle) > 0.2
    assert found.emd.middle / 2 < off < found.emd.middle * 2
    assert not rival.emd.middle / 2 < off < rival.emd.middle * 2
