"""Intervals of hexagons hold nine times in ten; taken to be even within cells, mass would not let them."""

from __future__ import annotations

from collections import defaultdict

import h3
import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from sfumato.heatmap import rehearse_heatmap
from sfumato.heatmap.analysis import cell_limits
from sfumato.heatmap.export import tables
from sfumato.privacy import KeyedNoise

pytestmark = pytest.mark.statistical

BOX = (11.15, 43.72, 11.35, 43.83)
RESOLUTION = 7


def test_intervals_of_hexagons_hold_what_is_there(rng: np.random.Generator) -> None:
    held, even, count = 0, 0, 0
    for _ in range(2):
        users = np.repeat(np.arange(2000), rng.integers(1, 4, 2000))
        venues = rng.uniform(BOX[:2], BOX[2:], (80, 2))
        popular = 1 / np.arange(1, 81)
        chosen = rng.choice(80, users.size, p=popular / popular.sum())
        places = np.clip(venues[chosen] + rng.normal(0, 0.0015, (users.size, 2)), BOX[:2], BOX[2:])
        rows = pa.table({"user": users, "lon": places[:, 0], "lat": places[:, 1]})
        release = rehearse_heatmap(
            rows,
            user="user",
            bounds=BOX,
            levels=6,
            public=True,
            epsilon=1,
            noise=KeyedNoise(rng.bytes(32)),
        ).maps[0]
        found = tables.hexagon_columns(release, resolution=RESOLUTION)
        truth: defaultdict[str, float] = defaultdict(float)
        for (x, y), mass in zip(places, 1 / np.bincount(users)[users], strict=True):
            truth[h3.latlng_to_cell(y, x, RESOLUTION)] += mass
        there = np.array([truth[name] for name in found["h3"]])
        names, parts, raster = tables._parts_of(release, None, resolution=RESOLUTION)
        assert names == found["h3"]
        maps = cell_limits._maps(release)
        across, up = (tables._to_raster(side, maps.shape[1]) for side in raster.shape)
        weights = sparse.kron(across, up, format="csr") @ parts
        drawn = np.asarray(maps.reshape(len(maps), -1) @ weights)
        ends = cell_limits._ends(release, drawn, found["users"])
        peopled = there >= 1
        count += int(peopled.sum())
        held += int(((found["low"] <= there) & (there <= found["high"]))[peopled].sum())
        even += int(((ends[0] <= there) & (there <= ends[1]))[peopled].sum())
    assert count > 60
    assert held >= 0.85 * count, (held, count)
    assert even <= 0.8 * count, (even, count)
