"""Pictures of an audit draw what they are given, and refuse what makes no sense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.figures import sheet
from sfumato.figures.audit import POINTS, _kept, draw_band, draw_wealth, draw_witness

pytestmark = pytest.mark.unit

PNG = b"\x89PNG\r\n\x1a\n"
EPSILONS = [0.0, 0.5, 1.0]


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the pixels a side: nothing here needs more, and drawing is slow."""
    monkeypatch.setattr(sheet, "DPI", 50)


def wealth(values: Any = (1.0, 20.0, 150.0), **changed: Any) -> bytes:
    given: dict[str, Any] = {"required": 100, "caption": "claimed: epsilon 1", **changed}
    return draw_wealth(200 * np.arange(len(values)), values, **given)


def witness(**changed: Any) -> bytes:
    given: dict[str, Any] = {
        "names": ["0: 57 of 100", "1: 12 of 100"], "shares": [0.57, 0.12], "low": [0.4, 0.05],
        "high": [0.7, 0.2], "allowed": (0.33, 0.14, 0.54), "allowance": "allowed", "caption": "event",
        **changed,
    }  # fmt: skip
    return draw_witness(given.pop("names"), given.pop("shares"), **given)


def band(**changed: Any) -> bytes:
    given: dict[str, Any] = {
        "lower": [0.5, 0.3, 0.1], "upper": [0.6, 0.4, 0.2], "allowed": [0.46, 0.29, 0.0],
        "caption": "c", **changed,
    }  # fmt: skip
    return draw_band(EPSILONS, **given)


def test_pictures_are_png_and_the_same_each_time() -> None:
    for draw in (wealth, witness, band):
        assert draw().startswith(PNG)
        assert draw() == draw()


def test_wealth_draws_what_it_is_given() -> None:
    usual = wealth()
    assert usual != wealth((1.0, 20.0, 90.0))
    assert usual != wealth(required=20)
    assert usual != wealth(caption="claimed: epsilon 2")
    assert wealth((0.0, 1e300)).startswith(PNG)
    assert wealth((1.0,)).startswith(PNG)


def test_a_long_path_keeps_its_peaks() -> None:
    path = np.ones(100_000)
    path[[0, 777, 50_001, 99_999]] = [2, 0.001, 5000, 3]
    kept = _kept(path)
    assert kept.size <= POINTS + 2
    assert {0, 777, 50_001, 99_999} <= set(kept.tolist())
    assert np.array_equal(_kept(path[:10]), np.arange(10))


def test_a_witness_draws_what_it_is_given() -> None:
    usual = witness()
    for changed in (
        {"shares": [0.6, 0.12]}, {"shares": [0.57, 0.1]}, {"low": [0.5, 0.05]}, {"high": [0.7, 0.3]},
        {"allowed": (0.2, 0.14, 0.54)}, {"names": ["a", "b"]}, {"allowance": "less"}, {"caption": "x"},
        {"title": "another"},
    ):  # fmt: skip
        assert witness(**changed) != usual
    nothing = witness(shares=[1.0, 0.0], low=[0.9, 0.0], high=[1.0, 0.01], allowed=(0.0, 0.0, 0.03))
    assert nothing.startswith(PNG)


def test_a_band_draws_what_it_is_given() -> None:
    usual = band()
    for changed in (
        {"lower": [0.5, 0.3, 0.0]}, {"upper": [0.6, 0.4, 0.3]}, {"allowed": [0.46, 0.29, 0.1]},
        {"claim": (1.0, 0.0)}, {"caption": "x"},
    ):  # fmt: skip
        assert band(**changed) != usual
    assert band(upper=[1.0, 1.0, 1.0]) != usual
    assert band(lower=[0.0, 0.0, 0.0], upper=[1.0, 1.0, 1.0], allowed=[0.0, 0.0, 0.0]).startswith(
        PNG
    )


@pytest.mark.parametrize(
    ("draw", "changed", "sentence"),
    [
        (wealth, {"values": ()}, "seen at least once"),
        (wealth, {"values": (1.0, -1.0)}, "wealth is at least 0"),
        (wealth, {"values": (1.0, float("nan"))}, "wealth must be finite"),
        (wealth, {"required": 1.0}, "above 1 and finite"),
        (witness, {"names": ["one"]}, "two inputs with names"),
        (witness, {"shares": [0.8, 0.1]}, "inside their intervals"),
        (witness, {"allowed": (0.1, 0.3, 0.2)}, "inside their intervals"),
        (witness, {"low": [0.1]}, "low must be one number for each of 2 inputs"),
        (band, {"lower": [0.7, 0.3, 0.1]}, "its lower end is not above its upper"),
        (band, {"allowed": [0.1, 0.2]}, "allowed must be one number for each of 3 epsilons"),
    ],
)
def test_what_makes_no_sense_is_refused(draw: Any, changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidParameter, match=sentence):
        draw(**changed)


def test_a_band_needs_two_epsilons_in_order() -> None:
    for epsilons in ([1.0], [1.0, 0.5]):
        zeros = [0.0] * len(epsilons)
        with pytest.raises(InvalidParameter, match="at least two epsilons, increasing"):
            draw_band(epsilons, lower=zeros, upper=zeros, allowed=zeros, caption="")
