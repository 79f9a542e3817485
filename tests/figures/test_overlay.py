"""A hatch covers what it should and nothing else; rings and words are seen in tests/heatmap/export."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.figures.overlay import GAP, WIDE_GAP, Overlay, hatch_lines

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("turned", [False, True], ids=["up", "down"])
def test_lines_of_the_hatch_lie_on_silent_cells(turned: bool) -> None:
    mute = np.zeros((8, 8), dtype=bool)
    mute[1:4, 2:7] = True
    over = Overlay(mute, (0.0, 0.0, 8.0, 8.0), (), (1.0, 1.0), "", "")
    limits = (0.0, 8.0, 8.0, 0.0) if turned else (0.0, 0.0, 8.0, 8.0)
    lines = hatch_lines(over, limits, size=(4.0, 4.0))
    # Half a cell: lines end between the middles of cells. A step of GAP / 8 inches is two cells an
    # inch.
    slack = 1e-9 + 2 * GAP / 8
    assert lines[..., 0].min() >= 2 - slack
    assert lines[..., 0].max() <= 7 + slack
    assert lines[..., 1].min() >= 1 - slack
    assert lines[..., 1].max() <= 4 + slack
    inches = np.abs(lines[:, 1] - lines[:, 0]) / 2
    np.testing.assert_allclose(inches[:, 0], inches[:, 1])
    # Lines GAP apart cover an area with a length of area / GAP; corners are cut and ends are
    # rounded down.
    area = 15 / 4
    assert np.hypot(*inches.T).sum() == pytest.approx(area / GAP, rel=0.15)
    fewer = hatch_lines(over, limits, size=(4.0, 4.0), gap=WIDE_GAP)
    assert 0.4 * len(lines) < len(fewer) < 0.6 * len(lines)
    assert (lines[:, 1, 1] > lines[:, 0, 1]).all() != turned
    nothing = replace(over, silent=np.zeros((8, 8), dtype=bool))
    assert hatch_lines(nothing, limits, size=(4.0, 4.0)).shape == (0, 2, 2)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1)])
def test_a_mask_of_a_single_row_or_cell_is_hatched(shape: tuple[int, int]) -> None:
    """Maps without a posterior are hatched by one cell; a map of level 0 is one."""
    over = Overlay(np.ones(shape, dtype=bool), (0.0, 0.0, 8.0, 8.0), (), (1.0, 1.0), "", "")
    lines = hatch_lines(over, (0.0, 0.0, 8.0, 8.0), size=(4.0, 4.0))
    assert lines.min() < 0.5
    assert lines.max() > 7.5
