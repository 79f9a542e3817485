"""Every field of map.json is explained, and says what the map has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from sfumato.heatmap import check_ins, rehearse
from sfumato.heatmap.export.archive import report_json
from sfumato.records import Columns
from sfumato.spaces import area_in_degrees

pytestmark = pytest.mark.unit

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "map-json.md"
BOX = (11.20, 43.74, 11.32, 43.81)


def test_every_field_is_explained_and_the_noise_is_not_0() -> None:
    area = area_in_degrees(BOX, 5)
    rows = check_ins(60, bounds=BOX, rng=np.random.default_rng(1))
    release = rehearse(rows, Columns(user="user", x="lon", y="lat"), area, public=True, epsilon=1)
    data = json.loads(report_json(release))
    named = set(re.findall(r"`(\w+)(?:\[i\])?`", PAGE.read_text()))
    inner = [*data["area"], *data["tiles"], *data["counts"], *data["noise"], *data["uncertainty"]]
    assert set(data) | set(inner) <= named
    last = np.array(data["counts"]["scales"])
    assert last.min() <= data["noise_scale"] <= last.max()
