"""Panels of a plan, and a picture of a placement."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from sfumato.errors import InvalidParameter
from sfumato.figures.intervals import Series
from sfumato.figures.recovery.forecast_panels import Panel, draw_recovery_forecast
from sfumato.figures.recovery.placement import draw_placement
from sfumato.figures.style import GREY

pytestmark = pytest.mark.unit

X = np.array([1.0, 2.0, 4.0])


def series(name: str, middle: list[float]) -> Series:
    y = np.array(middle)
    return Series(name, X, y, y / 2, y * 2)


def pixels(png: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def test_panels_show_what_they_are_given() -> None:
    plain = Panel("T", "T", [series("one", [0.1, 0.05, 0.2])])
    pictures = [
        draw_recovery_forecast([plain], caption="c"),
        draw_recovery_forecast([plain, plain, plain], caption="c"),
        draw_recovery_forecast([Panel("T", "T", [series("one", [0.1, 0.05, 0.1])])], caption="c"),
        draw_recovery_forecast(
            [Panel("T", "T", plain.series, {"bound": np.array([1, np.nan, 0.5])})], caption="c"
        ),
        draw_recovery_forecast([Panel("T", "T", plain.series, mark=2.0)], caption="c"),
        draw_recovery_forecast([Panel("T", "T", plain.series, level=0.3)], caption="c"),
        draw_recovery_forecast(
            [Panel("T", "T", [*plain.series, series("two", [0.3, 0.3, 0.3])])], caption="c"
        ),
    ]
    # The same again is the same bytes; each of the rest shows something else.
    assert draw_recovery_forecast([plain], caption="c") == pictures[0]
    assert len(set(pictures)) == len(pictures)
    assert pixels(pictures[1]).shape[0] > 1.5 * pixels(pictures[0]).shape[0]


def test_a_value_of_nothing_is_drawn_at_the_bottom() -> None:
    y = np.array([0.1, 0.0, 0.2])
    png = draw_recovery_forecast([Panel("T", "T", [Series("one", X, y, y, y)])], caption="c")
    blue = np.argwhere((pixels(png) == (0x15, 0x65, 0xC0)).all(axis=2))
    # The lowest blue is at the middle x, below both ends.
    lowest = blue[blue[:, 0] == blue[:, 0].max()][:, 1].mean()
    assert blue[:, 1].min() < lowest < blue[:, 1].max()
    # Below a bound too, or it would look larger than that.
    low = Panel("T", "T", [Series("one", X, y, y, y)], {"bound": np.full(X.size, 0.01)})
    both = pixels(draw_recovery_forecast([low], caption=""))
    blue = np.argwhere((both == (0x15, 0x65, 0xC0)).all(axis=2))
    dots = (both == tuple(bytes.fromhex(GREY[1:]))).all(axis=2)[
        :, blue[:, 1].min() : blue[:, 1].max()
    ]
    assert dots.any()
    assert dots.sum(axis=1).argmax() < blue[:, 0].max()


def test_no_picture() -> None:
    with pytest.raises(InvalidParameter, match="a picture needs a panel"):
        draw_recovery_forecast([], caption="")
    with pytest.raises(InvalidParameter, match="a picture needs a panel, and every panel a series"):
        draw_recovery_forecast([Panel("T", "T", [])], caption="")
    nothing = Series("one", X, 0 * X, 0 * X, 0 * X)
    with pytest.raises(
        InvalidParameter, match="values on a log axis must be above 0, 'T' has others"
    ):
        draw_recovery_forecast([Panel("T", "T", [nothing])], caption="")
    with pytest.raises(InvalidParameter, match="places have one coordinate or two"):
        draw_placement(
            np.zeros((2, 3)), chosen=np.zeros((1, 3)), uniform=np.zeros((1, 3)), caption=""
        )


@pytest.mark.parametrize("axes", [1, 2])
def test_a_placement_is_drawn(axes: int) -> None:
    places = np.linspace(0, 1, 12 * axes).reshape(12, axes)
    one = draw_placement(places, chosen=places[:3], uniform=places[[0, 5, 11]], caption="c")
    other = draw_placement(places, chosen=places[1:4], uniform=places[[0, 5, 11]], caption="c")
    assert one != other
    for color in ((0x15, 0x65, 0xC0), (0xC6, 0x28, 0x28)):
        assert (pixels(one) == color).all(axis=2).any()
