"""The experiment on joint maps decides by an interval of ratios, and simulates what it says."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.heatmaps.joint import KINDS, METHODS, TRUST, AtOnce, Row, alike, interval, table
from tests.chance import assert_law

from sfumato.privacy.accounting import exact
from sfumato.privacy.noise import PolyaLaw


def rows(ratio: float, many: int) -> list[Row]:
    """Joint maps this much worse than those of the same law, give or take a fifth."""
    swing = np.resize([0.8, 1.25], many)
    return [
        Row(
            method,
            kind,
            "city",
            at,
            emd=0.02 * (ratio * swing[at] if kind == "joint" else 1.0),
            similarity=0.8,
        )
        for method in METHODS
        for kind in KINDS
        for at in range(many)
    ]


@pytest.mark.unit
def test_the_same_is_shown_only_by_many_maps_that_are() -> None:
    middle, low, high = interval(rows(1.0, 1000), "zoom")
    assert middle == pytest.approx(1)
    assert alike(low, high)
    assert not alike(*interval(rows(1.0, 20), "zoom")[1:])  # too few to tell
    assert not alike(*interval(rows(1.04, 4000), "zoom")[1:])
    assert "zoom: joint / same law 1.0000" in table(rows(1.0, 1000))
    assert "the same within 3%" in table(rows(1.0, 1000))
    assert "not shown" in table(rows(1.04, 1000))


@pytest.mark.statistical
def test_noise_at_once_has_the_law_of_the_sum(rng: np.random.Generator) -> None:
    none = np.zeros(40_000, dtype=np.int64)
    sample = AtOnce(TRUST, rng).noisy_sum(none, [exact(1000)], none, TRUST)
    law = PolyaLaw(1000, TRUST.sum_shape)
    assert_law(sample, law.cdf, rivals=[PolyaLaw(1000, 1).cdf, PolyaLaw(900, "3/2").cdf])
