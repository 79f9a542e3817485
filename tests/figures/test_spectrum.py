"""A spectrum is drawn whole, noise where it is said to be, and the same values give the same bytes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sfumato.errors import InvalidParameter
from sfumato.figures.recovery.spectrum import draw_conditioning

pytestmark = pytest.mark.unit

VALUES = 10.0 ** -np.arange(12)


def colors(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def near(image: np.ndarray, color: tuple[int, int, int]) -> np.ndarray:
    return np.asarray(np.abs(image - color).sum(axis=2) < 12)


PURPLE, GREY, ORANGE = (0x7A, 0x1F, 0x5C), (0x9A, 0x9A, 0x9A), (0xC2, 0x57, 0x1A)


def line_height(png: bytes) -> int:
    """The row of the line of noise: the only orange across most of the picture."""
    rows = near(colors(png), ORANGE).mean(axis=1)
    assert rows.max() > 0.5
    return int(rows.argmax())


def test_it_is_a_png_and_says_the_same_twice() -> None:
    one, two = (draw_conditioning(VALUES, caption="a hall", noise=1e-3) for _ in range(2))
    assert one[:8] == b"\x89PNG\r\n\x1a\n"
    assert one == two
    assert draw_conditioning(VALUES[:6], caption="a hall", noise=1e-3) != one


def test_order_does_not_matter() -> None:
    assert draw_conditioning(VALUES[::-1], caption="a hall") == draw_conditioning(
        VALUES, caption="a hall"
    )


def test_more_noise_is_a_higher_line_and_hides_more() -> None:
    low, high = (draw_conditioning(VALUES, caption="", noise=noise) for noise in (1e-8, 1e-2))
    assert line_height(high) < line_height(low)
    assert near(colors(high), PURPLE).sum() < near(colors(low), PURPLE).sum()
    assert near(colors(high), GREY).sum() > near(colors(low), GREY).sum()
    assert not near(colors(draw_conditioning(VALUES, caption="")), ORANGE).any()


def test_values_below_rounding_are_hidden_and_zeros_are_drawn() -> None:
    clear = draw_conditioning(np.ones(12), caption="")
    drowned = draw_conditioning([1.0, 1.0, *np.zeros(10)], caption="")
    assert near(colors(drowned), PURPLE).sum() < near(colors(clear), PURPLE).sum()
    assert near(colors(drowned), GREY).sum() > 10 * 30  # ten dots of some 50 pixels


def test_an_incomplete_spectrum_says_so() -> None:
    assert draw_conditioning(VALUES, caption="", complete=False) != draw_conditioning(
        VALUES, caption=""
    )


@pytest.mark.parametrize(
    ("values", "given", "message"),
    [
        ([], {}, "list of at least one number"),
        ([[1.0]], {}, "list of at least one number"),
        ([1.0, np.nan], {}, "finite and not negative; nothing was drawn"),
        ([1.0, -1.0], {}, "finite and not negative; nothing was drawn"),
        ([0.0, 0.0], {}, "needs a value above 0, got none"),
        ([1.0], {"noise": 0.0}, "noise must be above 0 and finite, got 0.0"),
        ([1.0], {"noise": np.inf}, "noise must be above 0 and finite, got inf"),
    ],
)
def test_refusals(values: Any, given: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        draw_conditioning(values, caption="", **given)  # type: ignore[arg-type]
