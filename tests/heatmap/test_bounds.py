"""Bounds that are no square: no noise beyond them, no bars at their edges, nobody outside in any draw."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from sfumato.heatmap import public_area, rehearse_heatmap
from sfumato.heatmap.accuracy.noise_mark import seen
from sfumato.heatmap.inference import CountsPosterior, NoisyCounts
from sfumato.heatmap.inference.bounded import window
from sfumato.heatmap.methods.registry import as_method
from sfumato.privacy import KeyedNoise
from sfumato.records import CellSums, bound_of_sums
from sfumato.spaces import Area, Grid, area_of_image, area_of_plane

SCREEN = area_of_image(1920, 1080, 6)
NONE = np.zeros(0, dtype=np.int64)


def released(area: Area, method: str, key: bytes, groups: int = 1) -> Any:
    way = as_method(method)
    mechanism = way.mechanism(Fraction(1), bound_of_sums(area.grid, groups), area.grid)
    return (
        way,
        mechanism,
        mechanism.sample(CellSums(area.grid, NONE, NONE, groups, area), KeyedNoise(key)),
    )


@pytest.mark.unit
@pytest.mark.parametrize("method", ["zoom", "pyramid"])
@pytest.mark.parametrize(
    "area",
    [SCREEN, area_of_plane((0, 0, 9, 1), 6), Area(Grid(6), (0.1, 0.2, 0.9, 0.34), "plane")],
    ids=["screen", "strip", "cut"],
)
def test_no_noise_is_bought_outside_the_bounds(method: str, area: Area, key: bytes) -> None:
    _, _, found = released(area, method, key, groups=3)
    for level in found.levels:
        assert area.touches(level.level, level.codes & ((1 << 2 * level.level) - 1)).all()


@pytest.mark.unit
def test_edges_of_an_image_are_no_hotter_than_its_middle(key: bytes) -> None:
    """Of noise alone, along the top and bottom 60 px of 1080 and along a strip of the middle.

    A cell of 480 px had 60 inside, and all its noise on them: eight times as dense as elsewhere.
    """
    way, mechanism, found = released(SCREEN, "zoom", key, groups=40)
    edge = middle = 0.0
    for tiles in way.outlines(found, mechanism, SCREEN):
        rows = seen(tiles, SCREEN, 6)
        edge += rows[[0, 1, -2, -1]].mean()
        middle += rows[len(rows) // 2 - 2 : len(rows) // 2 + 2].mean()
    assert edge < 2.5 * middle


@pytest.mark.unit
def test_a_posterior_knows_that_nobody_is_outside(key: bytes) -> None:
    for area in (SCREEN, area_of_plane((0, 0, 4, 3), 6), area_of_plane((0, 0, 1, 12), 6)):
        way, mechanism, found = released(area, "zoom", key)
        (one,) = way.maps(found, mechanism, area)
        outside = ~window(area, 5)
        for image in (one.tiles.image(5), *one.posterior.maps(4, 5)):
            assert image[outside].sum() <= 1e-6 * max(image.sum(), 1e-9)


@pytest.mark.reference
def test_a_map_of_half_a_grid_is_that_of_the_half_alone() -> None:
    """Counts of the two southern quarters of a square, as a square in which the north is out of bounds.

    The masses of quarters are those of a posterior that was told of the north by exact zeros.
    """
    area = Area(Grid(3), (0.0, 0.0, 1.0, 0.5), "plane")
    south = [(1, 0, 30.0, 2.0), (1, 1, 10.0, 2.0)]
    north = [(1, 2, 0.0, 1e-3), (1, 3, 0.0, 1e-3)]

    def counts(rows: list[tuple[int, int, float, float]]) -> NoisyCounts:
        levels, codes, values, scales = (np.array(column) for column in zip(*rows, strict=True))
        return NoisyCounts(levels, codes, values, scales, np.zeros(len(rows), dtype=np.bool_))

    told = CountsPosterior(counts(south), area=area).means(1)
    zeros = CountsPosterior(counts(south + north)).means(1)
    assert told[2:] == pytest.approx([0, 0], abs=1e-9)
    assert told[:2] == pytest.approx(zeros[:2], abs=1.0)


@pytest.mark.unit
def test_cells_of_an_image_are_stretched_when_that_is_asked_for(tmp_path: Path) -> None:
    Image.new("RGB", (1920, 1080)).save(tmp_path / "scene.png")
    area = public_area(image=tmp_path / "scene.png", cells="stretched", levels=4)
    assert area.grid.bounds == area.bounds == (0, 0, 1920, 1080)
    fitted = public_area(image=tmp_path / "scene.png", levels=4)
    assert fitted.cell_size == (120, 135)


@pytest.mark.unit
def test_a_point_on_the_far_edge_counts_in_the_last_cell() -> None:
    """The bounds are whole cells, and a cell holds its lower edge only: the last pixel was outside."""
    rows = pa.table({"user": [1, 2, 3], "x": [1920.0, 0.0, 7.0], "y": [1080.0, 1080.0, 0.0]})
    found = rehearse_heatmap(
        rows, user="user", x="x", y="y", area=SCREEN, public=True, epsilon=1000, method="laplace"
    )
    assert found.truth is not None
    assert found.truth[31, [0, 63]] == pytest.approx([1 / 3, 1 / 3])
