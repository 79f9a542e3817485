"""Hashes look like chance and never change."""

from __future__ import annotations

import numpy as np
import pytest
from tests.chance import assert_law, assert_share

from sfumato.spaces.hashes import hashed, mixed

GOLDEN = [0x48218226FF3CD4BF, 0xA706DD2F4D197E6F, 0xAD65DFF703DED179]


@pytest.mark.golden
def test_hashes_never_change() -> None:
    # Another value here is another split of every network: fits published before would not come
    # again.
    assert mixed(np.array([0, 1, 2**40]), 0).tolist() == GOLDEN


@pytest.mark.statistical
def test_counters_in_a_row_are_spread_evenly() -> None:
    values = (hashed(np.arange(200_000), 5) * 1000).astype(np.int64)
    assert_law(
        values,
        lambda x: np.clip((x + 1) / 1000, 0, 1),
        rivals=[lambda x: np.clip((x + 1) / 1020, 0, 1)],
    )


@pytest.mark.statistical
def test_salts_and_counters_are_unrelated() -> None:
    counters = np.arange(200_000)
    for other in (hashed(counters, 2), hashed(counters + 1, 1)):
        both = (hashed(counters, 1) < 0.5) & (other < 0.5)
        assert_share(int(both.sum()), both.size, 0.25, rivals=[0.24, 0.26])
