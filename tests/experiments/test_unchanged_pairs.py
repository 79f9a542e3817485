"""The experiment on pairs that did not change counts pairs, not squares."""

from __future__ import annotations

import pytest
from experiments.heatmaps.unchanged_pairs import Pair, table


@pytest.mark.unit
def test_pairs_with_a_false_square_are_counted() -> None:
    right = Pair("pyramid", "homes", 200, 1.0, 0, 0, 100)
    wrong = Pair("pyramid", "homes", 200, 1.0, 3, 0, 100)
    other = Pair("pyramid", "homes", 2000, 0.1, 0, 1, 100)
    page = table([right, wrong, right, other])
    assert "| 200 | 1 | 3 | 1 | 0 |" in page
    assert "| 2,000 | 0.1 | 1 | 0 | 1 |" in page
    assert "| all | all | 4 | 1 | 1 |" in page
    assert "a chance of 0.19 and 0.19" in page  # 1 - 0.95**4
