"""Private bounds: paid, inside the outer box, around the people, and blind to a single one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.chance import assert_share

from sfumato.heatmap.methods.private_bounds import FALSE_STRIP, PrivateBounds, find_area
from sfumato.privacy import (
    REHEARSAL,
    UNITS,
    AddRemoveUser,
    Bound,
    Guarded,
    Ledger,
    PureDP,
    SystemNoise,
)
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid, area_of_plane


def people(points: np.ndarray, area: Area) -> Guarded[CellSums]:
    codes, counts = np.unique(area.grid.cells_of(points[:, 0], points[:, 1]), return_counts=True)
    inside = codes >= 0
    return guard_sums(CellSums(area.grid, codes[inside], counts[inside] * UNITS), source=REHEARSAL)


OUTER = area_of_plane((0, 0, 1, 1), 8)


@pytest.mark.statistical
def test_the_box_holds_a_crowd_and_little_more(rng: np.random.Generator) -> None:
    crowd = np.array([0.31, 0.72]) + 0.01 * rng.standard_normal((20_000, 2)).clip(-3, 3)
    wide = 0
    for _ in range(41):
        ledger = Ledger.rehearsal(PureDP(1))
        found = find_area(lambda area: people(crowd, area), OUTER, ledger=ledger, epsilon=1)
        west, south, east, north = found.bounds
        inside = (crowd >= [west, south]) & (crowd <= [east, north])
        # PrivateBounds of fewer than 29 people are cut: under 2 % of a Gaussian crowd of 20,000. To
        # lose more, several strips of over 60 would each need noise below -31, which is 8 scales:
        # under 1e-3 each.
        assert inside.all(axis=1).mean() > 0.97
        # The crowd is 0.06 wide; a strip of the second round at most 7/64/64, and one more to each
        # side.
        wide += (east - west > 0.07) or (north - south > 0.07)
        assert ledger.statement().left == PureDP(0)
    # An empty strip passes with at most 0.05 in each round: 21 wide boxes of 41 have probability
    # under 1e-9.
    assert wide <= 20


@pytest.mark.unit
def test_nobody_leaves_the_outer_box_as_it_is_or_a_box_inside_it() -> None:
    nobody = np.zeros((0, 2))
    found = find_area(
        lambda area: people(nobody, area), OUTER, ledger=Ledger.rehearsal(PureDP(1)), epsilon=1
    )
    west, south, east, north = found.bounds
    assert 0 <= west < east <= 1
    assert 0 <= south < north <= 1


@pytest.mark.statistical
def test_an_empty_strip_passes_for_a_full_one_as_rarely_as_stated() -> None:
    scale = UNITS * 4
    strips = PrivateBounds(Fraction(scale))
    empty = np.zeros(0, dtype=np.int64)
    sums, noise = CellSums(Grid(6), empty, empty), SystemNoise()
    threshold = scale * np.log(128 / (2 * FALSE_STRIP))
    passed = sum(bool(np.any(strips.sample(sums, noise) > threshold)) for _ in range(3000))
    # At least one of 128 passes with probability 1 - (1 - 0.05 / 128)**128 = 0.0488, up to the
    # lattice.
    assert_share(passed, 3000, 1 - (1 - FALSE_STRIP / 128) ** 128, rivals=[0.1, 0.016])


@pytest.mark.unit
def test_columns_and_rows_both_count_a_user() -> None:
    bound = Bound(AddRemoveUser(), 4**6, l1=UNITS)
    assert PrivateBounds(Fraction(4 * UNITS)).cost(bound) == PureDP("1/2")

    class Silent(SystemNoise):
        def laplace(self, scale: object, size: int) -> np.ndarray:  # noqa: ARG002
            return np.zeros(size, dtype=np.int64)

    # Group 1, row 1, column 0 of a 2 x 2 grid: code 4 + 2.
    sums = CellSums(Grid(1), np.array([6]), np.array([7]), 2)
    assert PrivateBounds(Fraction(1)).sample(sums, Silent()).tolist() == [7, 0, 0, 7]
