"""Intervals are drawn as given, with few and round numbers at their axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.figures import Series, draw_intervals, sheet
from sfumato.figures.intervals import log_marks

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the pixels a side: nothing here needs more, and drawing is slow."""
    monkeypatch.setattr(sheet, "DPI", 50)


def series(name: str = "ours", factor: float = 1.0) -> Series:
    x = np.array([1.0, 2, 4, 8])
    return Series(name, x, factor / x, factor / x - 0.2, 2 * factor / x)


def interval_picture(*drawn: Series, **changed: Any) -> bytes:
    given: dict[str, Any] = {"x_label": "epsilon", "caption": "20 trials", **changed}
    return draw_intervals(drawn or [series()], **given)


def test_intervals_draw_what_they_are_given() -> None:
    usual = interval_picture()
    assert usual != interval_picture(series(factor=2))
    assert usual != interval_picture(series(), series("theirs", 2))
    assert interval_picture(x_scale="log", y_scale="log") != interval_picture(
        x_scale="log", y_scale="log", slopes=[-1]
    )
    backwards = Series(
        "ours", series().x[::-1], series().middle[::-1], series().low[::-1], series().high[::-1]
    )
    assert usual == interval_picture(backwards)


@pytest.mark.property
@settings(max_examples=200)
@given(st.floats(1e-12, 1e12), st.floats(1.0001, 1e9))
def test_numbers_at_a_log_axis_are_few_and_inside(low: float, ratio: float) -> None:
    marks = log_marks(low, low * ratio)
    assert 1 <= len(marks) <= 10
    assert marks == sorted(set(marks))
    # Three digits of a narrow axis may stand half a unit of the third digit outside.
    assert all(low * 0.994 <= mark <= low * ratio * 1.006 for mark in marks)


def test_bad_intervals_are_refused() -> None:
    x = np.array([1.0, 2.0])
    with pytest.raises(InvalidParameter, match="an interval holds its middle, one of a does not"):
        Series("a", x, x, x + 1, x + 2)
    with pytest.raises(InvalidParameter, match="low of a must be one number for each of 2 points"):
        Series("a", x, x, x[:1], x)
    with pytest.raises(InvalidParameter, match="does not begin with _, got '_a'"):
        Series("_a", x, x, x, x)
    with pytest.raises(InvalidParameter, match="1 to 8 series, got 0"):
        draw_intervals([], x_label="", caption="")
    with pytest.raises(InvalidParameter, match="a name of its own"):
        interval_picture(series(), series())
    with pytest.raises(InvalidParameter, match="only on two log axes"):
        interval_picture(slopes=[1])
    with pytest.raises(InvalidParameter, match="log axis must be above 0, zero has others"):
        interval_picture(Series("zero", x, x - 1, x - 1, x), y_scale="log")
