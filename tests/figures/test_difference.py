"""Arrows of a map of differences stand on sure ground only, and leave the scale bar alone."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from sfumato.figures import DifferenceLayers, Frame, arrows
from sfumato.figures.difference import _arrows

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
