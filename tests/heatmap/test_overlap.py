"""Areas and lengths cell by cell: those of shapely, to rounding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import shapely

from sfumato.heatmap.analysis import overlap
from sfumato.heatmap.analysis.overlap import areas, lengths, line_edges, ring_edges, signed_area

FloatArray = npt.NDArray[np.float64]

# A sum of some hundred products of numbers below 10, each rounded once.
ROUNDING = 1e-12


def star(
    rng: np.random.Generator, corners: int, *, center: FloatArray, radius: float
) -> FloatArray:
    """A ring around a center that does not cross itself: its corners in the order of their angles."""
    # Gaps of less than half a turn, or the center might lie outside.
    angles = 2 * np.pi * (np.arange(corners) + 0.5 * rng.random(corners)) / corners
    radii = radius * (0.3 + rng.random(corners))
    ring = center + radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return np.concatenate([ring, ring[:1]])


def each_cell(x: FloatArray, y: FloatArray, measure: str, shape: shapely.Geometry) -> FloatArray:
    """What shapely finds of a shape in every cell."""
    boxes = [[shapely.box(a, c, b, d) for a, b in pairwise(x)] for c, d in pairwise(y)]
    return np.array([[getattr(shape.intersection(box), measure) for box in row] for row in boxes])


@pytest.mark.reference
def test_areas_and_lengths_are_those_of_shapely(rng: np.random.Generator) -> None:
    for corners in (3, 4, 9, 40):
        center = rng.random(2) * 1.6 - 0.3
        outline = star(rng, corners, center=center, radius=0.2 + rng.random())
        hole = center + 0.2 * (outline - center)  # the outline again, smaller: it is inside
        x, y = np.sort(rng.random(9)), np.sort(rng.random(6))  # columns and rows of any width
        found = areas(ring_edges([outline[::-1], hole]), x, y)
        assert found == pytest.approx(
            each_cell(x, y, "area", shapely.Polygon(outline, [hole])), abs=ROUNDING
        )
        x, y = np.linspace(0, 1, 9), np.linspace(0, 2, 9)
        found = lengths(line_edges([outline * [1, 2]]), x, y) / 8
        assert found == pytest.approx(
            each_cell(x, x, "length", shapely.LineString(outline)), abs=ROUNDING
        )
        middles = (x[:-1] + x[1:]) / 2
        inside = shapely.contains_xy(shapely.Polygon(outline), *np.meshgrid(middles, middles)) / 64
        exact = areas(ring_edges([outline]), x, x)
        assert np.abs(inside - exact).max() > 1e-6 or not exact.any(), (
            "middles would have passed for areas"
        )


@pytest.mark.property
def test_pieces_may_come_in_any_number(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = np.concatenate(
        [ring_edges([star(rng, 30, center=rng.random(2), radius=0.4)]) for _ in range(5)]
    )
    lines = np.linspace(0, 1, 33)
    factors = rng.random(len(edges))
    whole = (
        areas(edges, lines, lines, factors=factors),
        lengths(edges, lines, lines, factors=factors),
    )
    monkeypatch.setattr(overlap, "MOST_PIECES", 50)
    parts = (
        areas(edges, lines, lines, factors=factors),
        lengths(edges, lines, lines, factors=factors),
    )
    assert np.allclose(whole[0], parts[0], rtol=0, atol=ROUNDING)
    assert np.allclose(whole[1], parts[1], rtol=0, atol=ROUNDING)


@pytest.mark.unit
def test_what_lies_all_around_covers_everything_and_what_lies_beside_nothing() -> None:
    lines = np.linspace(0, 1, 5)
    square = np.array([[-1.0, -1], [3, -1], [3, 3], [-1, 3], [-1, -1]])
    assert areas(ring_edges([square]), lines, lines).tolist() == [[1 / 16] * 4] * 4
    for away in ([9, 0], [-9, 0], [0, 9], [0, -9]):
        assert not areas(ring_edges([square + away]), lines, lines).any()
        assert not lengths(line_edges([square + away]), lines, lines).any()
    assert signed_area(square) == 16
    assert signed_area(square[::-1]) == -16
    assert areas(np.zeros((0, 2, 2)), lines, lines).shape == (4, 4)
