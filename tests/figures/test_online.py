"""Pictures of regret draw what they are given, and refuse what makes no sense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.figures import online, sheet
from sfumato.figures.online import MAX_PATHS, _window, regret_picture
from sfumato.figures.style import GREY, STYLES

pytestmark = pytest.mark.unit

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the pixels a side: nothing here needs more, and drawing is slow."""
    monkeypatch.setattr(sheet, "DPI", 50)


def drawn(**changed: Any) -> bytes:
    given: dict[str, Any] = {
        "paths": {"a": [0.0, 1.0, 1.5]}, "bounds": {"a": [1.0, 2.0, 3.0]}, "caption": "made up", **changed,
    }  # fmt: skip
    return regret_picture(given.pop("paths"), given.pop("bounds"), **given)


def test_a_picture_is_png_and_the_same_each_time() -> None:
    assert drawn().startswith(PNG)
    assert drawn() == drawn()


@pytest.mark.parametrize(
    "changed",
    [
        {"paths": {"a": [0.0, 1.0, 1.2]}},
        {"paths": {"b": [0.0, 1.0, 1.5]}, "bounds": {}},
        {"paths": {"a": [0.0, 1.0, 1.5], "b": [0.0, 0.5, 0.5]}},
        {"bounds": {"a": [1.0, 2.0, 2.5]}},
        {"bounds": {}},
        {"caption": "other"},
        {"title": "other"},
        {"rounds": [10, 20, 40]},
        {"rehearsal": True},
    ],
)
def test_it_draws_what_it_is_given(changed: dict[str, Any]) -> None:
    assert drawn(**changed) != drawn()


def test_a_far_bound_does_not_flatten_the_path() -> None:
    path, bound = {"a": np.array([0.0, -1.0, 5.0])}, {"a": np.array([1.0, 2.0, 1e6])}
    low, high = _window(path, bound)
    assert low < -1
    assert 20 < high < 25
    assert _window(path, {"a": np.array([1.0, 2.0, 7.0])})[1] == pytest.approx(7 + 0.06 * 8)
    # Nothing lost: the bound is all there is to see.
    assert _window({"a": np.zeros(3)}, bound)[1] > 1e6
    assert _window({"a": np.zeros(3)}, {}) == (0.0, 1.0)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6, 1e9, 1e200])
def test_what_is_measured_is_written_beside_the_numbers(
    unit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(online, "png", lambda figure: figure)
    figure: Any = drawn(paths={"a": [0.0, 5 * unit, 15 * unit]}, bounds={})
    renderer, axis = figure.canvas.get_renderer(), figure.axes[0]
    figure.draw(renderer)
    label = axis.yaxis.label.get_window_extent(renderer)
    ticks = [one.get_window_extent(renderer) for one in axis.get_yticklabels()]
    assert 0 <= label.x0 < label.x1 <= min(tick.x0 for tick in ticks)
    assert axis.bbox.x1 == pytest.approx((online.WIDE - sheet.RIGHT) * figure.dpi, abs=0.1)
    top = {1.0: "15", 1e6: "15,000,000", 1e9: "1.5e+10"}
    assert top.get(unit, "0") in [one.get_text() for one in axis.get_yticklabels()]


def test_the_key_has_the_color_of_the_only_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "png", lambda figure: figure)
    paths = {"a": [0.0, 1.0, 1.5], "b": [0.0, 0.5, 0.5]}
    for bounded, color in (("a", STYLES[0][0]), ("b", STYLES[1][0]), ("ab", GREY)):
        figure: Any = drawn(paths=paths, bounds={name: [1.0, 2.0, 3.0] for name in bounded})
        drawn_by = {one.get_label(): one.get_color() for one in figure.axes[0].get_lines()}
        assert drawn_by["bound"] == color


def test_one_round_can_be_seen() -> None:
    assert drawn(paths={"a": [0.5]}, bounds={"a": [1.0]}) != drawn(
        paths={"a": [0.7]}, bounds={"a": [1.0]}
    )


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"paths": {}}, "1 to 8 paths"),
        ({"paths": {str(i): [1.0] for i in range(MAX_PATHS + 1)}, "bounds": {}}, "1 to 8 paths"),
        ({"bounds": {"b": [1.0, 2.0, 3.0]}}, "each bound must be of one of them"),
        ({"paths": {"a": []}, "bounds": {}}, "at least one"),
        ({"bounds": {"a": [1.0]}}, "one number for each of 3 rounds"),
        ({"paths": {"a": [0.0, np.nan, 1.0]}}, "must be finite"),
        ({"rounds": [1, 3, 2]}, "rounds must rise"),
    ],
)
def test_what_makes_no_sense_is_refused(changed: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        drawn(**changed)
