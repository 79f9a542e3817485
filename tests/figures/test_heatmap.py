"""A sheet shows what it is given, at the colors its legend names, and its size never follows the values."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import colormaps
from PIL import Image

from sfumato.errors import InvalidParameter
from sfumato.figures import map_sheet
from sfumato.figures.heatmap import heatmap_figure
from sfumato.figures.legend import lay_over, percent
from sfumato.figures.map_sheet import Frame, Words, degrees, png_of
from sfumato.figures.style import TOPS, _colors, palette, round_number, shades

pytestmark = pytest.mark.unit

UNIT = (0.0, 0.0, 1.0, 1.0)
WORDS = Words("title", "subtitle", "legend", "caption")


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the pixels a side: nothing here needs more, and drawing is slow."""
    monkeypatch.setattr(map_sheet, "DPI", 50)


def draw(values: np.ndarray, **changed: Any) -> bytes:
    given: dict[str, Any] = {"words": WORDS, "top": 1.0, "floor": 0.1, **changed}
    return png_of(heatmap_figure(values, given.pop("frame", Frame(UNIT, UNIT)), **given))


def size(png: bytes) -> tuple[int, int]:
    return struct.unpack(">II", png[16:24])


def test_size_and_colors_follow_what_is_given_and_not_the_values() -> None:
    empty, full = np.zeros((8, 8)), np.full((8, 8), 1e9)
    assert size(draw(empty)) == size(draw(full))
    assert draw(full) == draw(np.full((8, 8), 2.0))
    assert draw(full) == draw(full)
    assert draw(empty) != draw(full)


def test_the_sheet_is_as_wide_whatever_the_shape() -> None:
    sizes = [size(draw(np.eye(4), frame=Frame(UNIT, UNIT, stretch=s))) for s in (0.2, 1.0, 5.0)]
    assert {wide for wide, _ in sizes} == {400}
    assert sizes[0][1] < sizes[1][1]
    assert sizes[2][1] < 600


def test_only_the_window_is_shown() -> None:
    values = np.zeros((4, 4))
    values[3, 3] = 1
    half = draw(values, frame=Frame(UNIT, (0, 0, 0.5, 0.5)))
    assert half == draw(np.zeros((4, 4)), frame=Frame(UNIT, (0, 0, 0.5, 0.5)))


def test_an_image_under_the_heat_is_as_large_in_the_picture() -> None:
    under = np.full((300, 900, 3), 90, dtype=np.uint8)
    png = draw(np.zeros((4, 4)), frame=Frame(UNIT, UNIT, stretch=1 / 3, downward=True), under=under)
    image = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    assert int((image == 90).all(axis=2).sum()) >= 300 * 900
    rows = (image == 90).all(axis=2).sum(axis=1)
    assert int((rows == 900).sum()) == 300


def test_bad_pictures_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="above 0, got 0; nothing was drawn"):
        draw(np.eye(2), top=0)
    for values in (np.ones(4), np.full((2, 2), np.nan)):
        with pytest.raises(InvalidParameter, match=r"finite \[row, column\]"):
            draw(values)


def test_hostile_words_are_taken_as_they_are() -> None:
    words = Words("$\\frac{", "$x^" * 99, "$\\bad$", "5 $ for 3 $ " * 50, "$\\no$")
    assert draw(np.eye(3), words=words, floor=np.inf)


# shades


@pytest.mark.property
@given(st.floats(1e-9, 1e3), st.floats(0, 1e3), st.lists(st.floats(0, 1e4), min_size=2, max_size=9))
def test_shades_grow_with_values_and_stay_in_range(
    top: float, floor: float, values: list[float]
) -> None:
    found = shades(np.sort(values), top=top, floor=floor)
    assert (np.diff(found) >= 0).all()
    assert ((found >= 0) & (found <= 1)).all()
    assert (found <= shades(np.sort(values), top=top)).all()


@pytest.mark.parametrize("floor", [0.05, 0.5, 0.8])
def test_what_is_below_the_floor_is_pale_however_high_that_is(floor: float) -> None:
    """Just below it too: no darker than where the palette leaves the paper; clearly above, as it is."""
    below, above = shades(np.array([0.99 * floor, 1.2 * floor]), top=1, floor=floor)
    assert below <= 0.14
    assert above == pytest.approx(np.sqrt(1.2 * floor))


@pytest.mark.parametrize("name", ["magma", "magma_r", "inferno", "inferno_r", "viridis"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 0.9), (0.1, 1.0), (0.3, 1.0), (0.0, 1.0)])
def test_colors_are_those_of_matplotlib_to_the_bit(name: str, low: float, high: float) -> None:
    places = low + (high - low) * np.linspace(0, 1, 256)
    assert np.array_equal(_colors(name, low, high), colormaps[name](places)[:, :3])


def test_a_page_is_colored_without_matplotlib() -> None:
    script = (
        "import sys; from sfumato.figures.style import glow, palette; "
        "palette(), palette(True), glow(); print('matplotlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_the_palette_starts_at_the_paper_and_changes_evenly() -> None:
    for dark, paper in ((False, [255, 255, 255]), (True, [20, 22, 26])):
        colors = palette(dark)
        assert colors[0].tolist() == paper
        light = colors.astype(float) @ [0.2126, 0.7152, 0.0722]
        steps = np.diff(light) * (1 if dark else -1)
        assert (steps > -0.9).all()  # rounding to whole colors aside, one way only
        assert light[[0, 64, 128, 192, 255]].tolist() == sorted(
            light[[0, 64, 128, 192, 255]], reverse=not dark
        )


def test_no_heat_leaves_the_image_alone() -> None:
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    assert np.array_equal(lay_over(image, np.zeros((4, 4))), image)
    assert not np.array_equal(lay_over(image, np.ones((4, 4))), image)


# numbers in words


@pytest.mark.property
@given(st.floats(1e-12, 1e12))
def test_round_numbers_are_the_next_ones(value: float) -> None:
    found = round_number(value)
    assert round_number(value, TOPS) <= 1.5 * value * (1 + 1e-8)
    assert value * (1 - 1e-8) <= found <= 2.5 * value * (1 + 1e-8)
    assert f"{found:e}"[0] in "125"


def test_places_and_shares_are_said_as_people_do() -> None:
    assert [degrees(x, "EW", step=0.1) for x in (-73.9, 0.0, 180, 186.2)] == [
        "73.9°W",
        "0°",
        "180.0°",
        "173.8°W",
    ]
    assert degrees(-40.25, "NS", step=0.05) == "40.25°S"
    assert [percent(share) for share in (1, 0.5, 0.0125, 3.3e-6)] == [
        "100%",
        "50%",
        "1.25%",
        "0.00033%",
    ]


def test_a_scale_bar_is_round_and_fits() -> None:
    for meter in (1e-3, 444.0, 1e6):
        frame = Frame(UNIT, UNIT, meter=meter, degrees=True)
        assert draw(np.eye(3), frame=frame) != draw(
            np.eye(3), frame=Frame(UNIT, UNIT, degrees=True)
        )
