"""The experiment on pooling runs, and its tables keep odd maps apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from experiments.heatmaps.pooling import HOURS, PEOPLE, Held, Row, band_table, table, town, truths

ROW = Row("town", 1.0, 0, 0, False, "alone", 0.4, 0.5, 0.1, 0.9, 0.0, 0.0)
HELD = Held("town", 0, False, "partial", 0.9, 1.0, 2, 1, True, False)


@pytest.mark.unit
def test_a_town_has_a_crowd_elsewhere_in_its_last_hour_alone() -> None:
    scene = town(0, elsewhere=1.0)
    last = scene.frame == HOURS - 1
    assert np.all((scene.x[last] > 0.7) & (scene.y[last] < 0.3))
    sums = scene.sums()
    assert sums.units.sum() <= PEOPLE * 2**20
    assert sum(one is not None for one in truths(sums)) == HOURS


@pytest.mark.unit
def test_tables_keep_odd_maps_apart_and_name_the_worst_change() -> None:
    rows = [
        replace(ROW, odd=odd, way=way, similarity=value)
        for odd, values in ((False, (0.4, 0.6, 0.5)), (True, (0.4, 0.35, 0.1)))
        for way, value in zip(("alone", "partial", "full"), values, strict=True)
    ]
    lines = table(rows).splitlines()[2:]
    assert lines[0].startswith("| town | 1 | 0.40 | 0.60 | 0.50 |")
    assert "| +0.20 |" in lines[0]
    assert lines[1].startswith("| town: that hour | 1 | 0.40 | 0.35 | 0.10 |")
    assert "| -0.05 |" in lines[1]
    assert "| 2 | 90% | 1.00 | 4 | 2 | 100% | 0% |" in band_table([HELD, HELD])
