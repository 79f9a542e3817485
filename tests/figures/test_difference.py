"""Arrows of a map of differences stand on sure ground only; its title names both maps."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from sfumato.figures import DifferenceLayers, Frame, arrows
from sfumato.figures.difference import _arrows
from sfumato.figures.map_sheet import TITLE_LINE, Words, new_sheet
from sfumato.figures.style import FONT_TITLE

pytestmark = pytest.mark.unit

SIDE = 24
UNIT = (0.0, 0.0, 1.0, 1.0)


def drawn(hatched: np.ndarray, frame: Frame) -> np.ndarray:
    """Where arrows stand when mass moves east everywhere."""
    axis = Figure(figsize=(7, 7), dpi=50).add_axes((0, 0, 1, 1))
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    flow = arrows(np.ones((SIDE, SIDE - 1)), np.zeros((SIDE - 1, SIDE)), (SIDE, SIDE))
    _arrows(axis, DifferenceLayers(hatched, UNIT, "", flow, SIDE, ~hatched, ""), frame)
    return np.concatenate([np.empty((0, 2)), *(one.get_offsets() for one in axis.collections)])


def test_arrows_are_drawn_where_something_moved() -> None:
    hatched = np.ones((48, 48), dtype=np.bool_)
    assert not drawn(hatched, Frame(UNIT, UNIT)).size
    hatched[:24, 24:] = False
    found = drawn(hatched, Frame(UNIT, UNIT))
    assert len(found) == 12 * 12
    assert (found[:, 0] > 0.5).all()
    assert (found[:, 1] < 0.5).all()


def test_arrows_leave_the_scale_bar_alone() -> None:
    clear = np.zeros((48, 48), dtype=np.bool_)
    free, barred = (drawn(clear, Frame(UNIT, UNIT, meter=meter)) for meter in (None, 10_000.0))
    assert len(free) == SIDE * SIDE
    corner = (barred[:, 0] < 0.22) & (barred[:, 1] < 0.05)
    assert len(free) > len(barred) > 0.9 * len(free)
    assert not corner.any()


def heads(title: str) -> tuple[list[str], float, float]:
    """The lines of large print on a sheet, its height, and how far below its top the map begins."""
    sheet = new_sheet(
        np.zeros((2, 2)), Frame(UNIT, UNIT), Words(title, "what changed", "users", "caption"), top=1
    )
    sheet.draw_words()
    texts = [one for one in sheet.figure.texts if one.get_fontsize() == FONT_TITLE]
    tall = float(sheet.figure.get_size_inches()[1])
    return [one.get_text() for one in texts], tall, tall * (1 - sheet.axis.get_position().y1)


def test_a_title_of_two_maps_names_both() -> None:
    """It ended after the first map: "From Check-ins in March 2010: 2010-03-01--2010-04-01 to …"."""
    one, two = (f"Check-ins 2010-{n:02}: 2010-{n:02}-01--2010-{n + 1:02}-01" for n in (3, 9))
    lines, tall, above = heads(f"From {one} to {two}")
    assert lines == [f"From {one} to", two]
    usual, low, head = heads("From weekday to weekend")
    assert usual == ["From weekday to weekend"]
    # The second line has room of its own: the map is as high as it was.
    assert tall - low == pytest.approx(above - head, abs=0.02)
    assert above - head == pytest.approx(TITLE_LINE, abs=0.02)
    # What fills more than two lines is cut, and shows it; a long word is not left out.
    assert heads("word " * 60)[0][1].endswith("…")
    assert len(heads("word" * 15)[0]) == 2
    assert heads("")[0] == [""]
