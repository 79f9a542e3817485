"""Arrows point where mass goes, lose none of it, and depend on what is drawn and on nothing else."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sfumato.errors import InvalidParameter
from sfumato.figures import Frame, arrows, flow_field
from sfumato.figures.flows import MAX_ARROWS
from sfumato.spaces import Grid
from sfumato.transport import GridFlow, emd

pytestmark = pytest.mark.unit

SIDE = 8


def corner(row: int, column: int, side: int = SIDE) -> np.ndarray:
    mass = np.zeros((side, side))
    mass[row, column] = 1
    return mass


def moved(p: np.ndarray, q: np.ndarray) -> GridFlow:
    flow = emd(p, q, Grid(p.shape[0].bit_length() - 1), flow=True).flow
    assert isinstance(flow, GridFlow)
    return flow


def draw(p: np.ndarray, q: np.ndarray, **changed: Any) -> bytes:
    flow = moved(p, q)
    given: dict[str, Any] = {"caption": "what was moved", "unit": "people", "top": 1, **changed}
    return flow_field(p, q, flow.east, flow.north, **given)


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("L")).astype(int)


def middle(png: bytes) -> np.ndarray:
    """The panel of the arrows, without its frame and its words."""
    image = pixels(png)
    width = image.shape[1]
    dark = np.flatnonzero((image[:, width // 3 + 20 : 2 * width // 3 - 20] < 60).mean(axis=1) > 0.9)
    return image[dark[0] + 3 : dark[-1] - 2, width // 3 + 12 : 2 * width // 3 - 12]


# the arrows themselves


@pytest.mark.parametrize(
    ("begin", "end", "direction"),
    [
        ((3, 0), (3, 7), (1, 0)),
        ((3, 7), (3, 0), (-1, 0)),
        ((0, 3), (7, 3), (0, 1)),
        ((7, 3), (0, 3), (0, -1)),
    ],
    ids=["east", "west", "north", "south"],
)
def test_arrows_point_where_mass_goes(
    begin: tuple[int, int], end: tuple[int, int], direction: tuple[int, int]
) -> None:
    flow = moved(corner(*begin), corner(*end))
    found = arrows(flow.east, flow.north, (SIDE, SIDE))
    assert (found.east.sum(), found.north.sum()) == (7 * direction[0], 7 * direction[1])
    assert (found.east * direction[0] >= 0).all()
    assert (found.north * direction[1] >= 0).all()
    on_the_way = found.y == 3 if direction[0] else found.x == 3
    assert ((found.mass > 0) == on_the_way).all()
    assert found.mass.max() == 1


def test_nothing_moves_and_there_is_no_arrow() -> None:
    found = arrows(np.zeros((SIDE, SIDE - 1)), np.zeros((SIDE - 1, SIDE)), (SIDE, SIDE))
    assert not found.mass.any()


def test_a_block_has_its_center_and_its_share() -> None:
    east, north = np.zeros((64, 63)), np.zeros((63, 64))
    east[5, 9:21] = 3.0  # three units go from column 9 to column 21 in row 5
    found = arrows(east, north, (64, 64))
    assert found.block == 4
    assert found.x.shape == (16, 16)
    assert found.x[0, :2].tolist() == [1.5, 5.5]
    assert found.y[:2, 0].tolist() == [1.5, 5.5]
    assert found.east[1].tolist()[2:7] == [3 * 2.5, 3 * 4, 3 * 4, 3 * 1.5, 0]
    assert found.mass[1, 3] == 3  # as much as passes through, however large the block


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 5), (24, 24), (25, 3), (30, 50), (128, 128), (256, 256)]
)
def test_at_most_24_arrows_along_a_side(shape: tuple[int, int]) -> None:
    rows, columns = shape
    found = arrows(np.ones((rows, columns - 1)), np.ones((rows - 1, columns)), shape)
    assert max(found.x.shape) <= MAX_ARROWS
    assert found.x.shape == found.y.shape == found.east.shape == found.north.shape
    assert found.east.sum() == rows * (columns - 1)
    assert found.north.sum() == (rows - 1) * columns
    assert found.x.max() <= columns - 1


@pytest.mark.property
@given(st.integers(1, 70), st.integers(1, 70), st.integers(0, 2**32 - 1))
def test_the_total_flow_is_preserved(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    east = rng.integers(-9, 10, (rows, columns - 1)).astype(float)
    north = rng.integers(-9, 10, (rows - 1, columns)).astype(float)
    found = arrows(east, north, (rows, columns))
    assert found.east.sum() == east.sum()
    assert found.north.sum() == north.sum()


# the picture


def test_the_same_values_give_the_same_bytes() -> None:
    here, there = corner(0, 0), corner(5, 7)
    assert draw(here, there) == draw(here, there)
    assert draw(here, there) != draw(there, here)
    assert draw(here, there) != draw(here, there, names=("night", "day"))
    assert draw(here, there) != draw(here, there, longest=50)


def test_no_arrow_is_drawn_where_nothing_moves() -> None:
    panel = middle(draw(corner(2, 2), corner(2, 2)))
    assert panel.min() > 200
    assert middle(draw(corner(2, 2), corner(2, 5), longest=1)).min() < 60


def test_row_0_is_the_south_and_column_0_the_west() -> None:
    """Arrows from the south-west corner to the south-east one are in the lower part of their panel."""
    dark = middle(draw(corner(0, 0), corner(0, 7), longest=1)) < 60
    rows = np.flatnonzero(dark.any(axis=1))
    assert rows.min() > 0.8 * len(dark)
    dark = middle(draw(corner(0, 0), corner(7, 0), longest=1)) < 60
    columns = np.flatnonzero(dark.any(axis=0))
    assert columns.max() < 0.2 * dark.shape[1]


def test_neither_size_nor_scale_follow_the_data() -> None:
    """Threat S15: the longest arrow stands for what was given, and longer ones are cut."""
    size = [struct.unpack(">II", draw(m * corner(0, 0), m * corner(7, 7))[16:24]) for m in (1, 1e9)]
    assert size[0] == size[1]
    assert draw(1e6 * corner(0, 0), 1e6 * corner(0, 7)) == draw(
        1e9 * corner(0, 0), 1e9 * corner(0, 7)
    )


def test_words_are_taken_as_they_are() -> None:
    here = corner(0, 0)
    assert draw(here, here, names=("$x^2", "$\\no$"), caption="5 $ for 3 $", unit="$\\bad$")


def test_bad_pictures_are_refused() -> None:
    here, east, north = corner(0, 0), np.zeros((8, 7)), np.zeros((7, 8))
    words: dict[str, Any] = {"caption": "", "unit": ""}
    with pytest.raises(InvalidParameter, match="color scale must be above 0, got 0"):
        flow_field(here, here, east, north, top=0, **words)
    with pytest.raises(InvalidParameter, match="longest arrow must be above 0, got 0"):
        flow_field(here, here, east, north, top=1, longest=0, **words)
    with pytest.raises(InvalidParameter, match=r"one shape, got \(8, 8\) and \(4, 4\)"):
        flow_field(here, corner(0, 0, 4), east, north, top=1, **words)
    with pytest.raises(
        InvalidParameter, match=r"shape \(8, 7\) and north \(7, 8\), got \(7, 8\) and \(8, 7\)"
    ):
        flow_field(here, here, north, east, top=1, **words)
    with pytest.raises(
        InvalidParameter, match=r"p must be an array \[row, column\], got shape \(64,\)"
    ):
        flow_field(here.ravel(), here, east, north, top=1, **words)
    with pytest.raises(InvalidParameter, match="east must be finite, got NaN or infinity"):
        flow_field(here, here, east + np.nan, north, top=1, **words)


# where it lies


def dark(png: bytes) -> tuple[float, float]:
    """Where the one cell of the first panel is: part of its width from the left, of its height from the top."""
    image = pixels(png)
    panel = image[:, : image.shape[1] // 3]
    left, *_, right = np.flatnonzero((panel < 60).mean(axis=0) > 0.4)
    top, *_, bottom = np.flatnonzero(panel[:, left] < 60)
    inside = panel[top + 3 : bottom - 2, left + 3 : right - 2]
    rows, columns = np.nonzero(inside < 60)
    return float(columns.mean() / inside.shape[1]), float(rows.mean() / inside.shape[0])


def test_an_image_is_drawn_as_it_is_looked_at() -> None:
    """As real gaze was not: the flow between maps of images lay upside down."""
    p, q = corner(1, 2), corner(6, 2)
    box = (0.0, 0.0, 80.0, 80.0)
    assert dark(draw(p, q)) == pytest.approx((2.5 / 8, 6.5 / 8), abs=0.02)
    down = draw(p, q, frame=Frame(box, box, downward=True))
    assert dark(down) == pytest.approx((2.5 / 8, 1.5 / 8), abs=0.02)


def test_only_the_window_is_shown() -> None:
    p, q = corner(1, 2), corner(5, 2)
    frame = Frame((0.0, 0.0, 80.0, 80.0), (0.0, 0.0, 80.0, 60.0), downward=True)
    assert dark(draw(p, q, frame=frame)) == pytest.approx((2.5 / 8, 1.5 / 6), abs=0.02)
