"""Curves of a forecast: what is marked for is marked, and values that cannot be drawn are refused."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.figures.forecast import Highlight, draw_forecast
from sfumato.figures.intervals import Series

pytestmark = pytest.mark.unit

X = np.geomspace(0.1, 10, 9)


def series(name: str, lift: float = 0.0) -> Series:
    middle = 0.5 + 0.1 * np.log10(X) + lift
    return Series(name, X, middle, middle - 0.1, middle + 0.1)


def draw(*names: str, marked: Highlight | None = None, lift: float = 0.0) -> bytes:
    panels = [series(name, lift) for name in names]
    return draw_forecast(
        panels, x_label="epsilon", marked=marked or Highlight(), caption="what is drawn"
    )


def test_what_is_asked_for_is_marked() -> None:
    plain = draw("Similarity", "EMD")
    assert plain[:8] == b"\x89PNG\r\n\x1a\n"
    assert plain == draw("Similarity", "EMD")
    assert plain != draw("Similarity", "EMD", lift=0.1)
    assert plain != draw("Similarity", "EMD", marked=Highlight(1.0))
    assert plain != draw("Similarity", "EMD", marked=Highlight(name="EMD", y=0.4))
    assert plain == draw("Similarity", "EMD", marked=Highlight(name="KL", y=0.4)), (
        "there is no such panel"
    )


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least one panel"):
        draw()
    zero = Series("a", X - X[0], X, X, X)
    with pytest.raises(InvalidParameter, match="log axis must be above 0"):
        draw_forecast([zero], x_label="", marked=Highlight(), caption="")
