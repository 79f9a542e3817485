"""The share of mass near a place is that within the distance, between what its draws say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.heatmap.export.maps import heatmap, tile_at
from tests.heatmap.posteriors import Given

from sfumato.heatmap.accuracy.nearby import nearby_distance, shares_nearby
from sfumato.heatmap.accuracy.uncertainty import DRAWS
from sfumato.spaces.area import area_of_plane

pytestmark = pytest.mark.unit

AREA = area_of_plane((0, 0, 100, 100), 6)


def test_near_is_within_the_distance_and_its_interval_is_that_of_the_draws() -> None:
    """A sure place of 700, and one of 300 that is there in every other draw: a share of 70 to 100 %."""
    release = heatmap(AREA, [tile_at(AREA, 20, 30, users=700), tile_at(AREA, 80, 60, users=300)])
    images = np.repeat(release.tiles.image()[None], DRAWS, axis=0)
    images[::2][images[::2] == 300] = 0
    places = [(20.0, 30.0), (80.0, 60.0), (50.0, 5.0)]
    distance = nearby_distance(AREA)
    assert distance == 2
    sure, perhaps, nobody = shares_nearby(replace(release, posterior=Given(images)), places, 2.0)
    assert (sure.low, sure.share, sure.high) == pytest.approx((0.7, 0.7, 1.0))
    assert (perhaps.low, perhaps.share, perhaps.high) == pytest.approx((0.0, 0.3, 0.3))
    assert (nobody.low, nobody.share, nobody.high) == (0, 0, 0)
    everything = shares_nearby(release, places[:1], 100.0)[0]
    assert everything.share == pytest.approx(1)
    assert everything.low is None
