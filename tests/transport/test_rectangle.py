"""Rectangles of any shape: as far as between their points, and flow that stays inside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.spaces import Grid, Points
from sfumato.transport import compare_masses, emd
from sfumato.transport.rectangle import emd_rectangle
from sfumato.transport.results import GridFlow


@pytest.mark.reference
@pytest.mark.parametrize("shape", [(3, 5), (1, 7), (6, 2), (5, 5), (2, 40)])
@pytest.mark.parametrize("bounds", [None, (2.0, -1.0, 12.0, 3.0)])
def test_a_rectangle_is_as_far_as_its_points(
    shape: tuple[int, int],
    bounds: tuple[float, float, float, float] | None,
    rng: np.random.Generator,
) -> None:
    p, q = (rng.integers(0, 9, size=shape).astype(float) for _ in range(2))
    p[0, 0], q[0, 0] = (
        1 + max(0, q.sum() - p.sum()) + p[0, 0],
        q[0, 0] + 1 + max(0, p.sum() - q.sum()),
    )
    rows, columns = shape
    west, south, east, north = bounds or (0, 0, columns / max(shape), rows / max(shape))
    x = west + (np.arange(columns) + 0.5) * (east - west) / columns
    y = south + (np.arange(rows) + 0.5) * (north - south) / rows
    places = Points([(a, b) for b in y for a in x], "l1")
    found = emd_rectangle(p, q, bounds=bounds, normalize=True, flow=True)
    known = emd(p.ravel(), q.ravel(), places, normalize=True)
    assert found.lower - 1e-9 <= known.value <= found.upper + 1e-9
    assert isinstance(found.flow, GridFlow)
    # What flows in and out of each cell is what it has too much.
    rest = p / p.sum() - q / q.sum()
    rest[:, :-1] -= found.flow.east
    rest[:, 1:] += found.flow.east
    rest[:-1] -= found.flow.north
    rest[1:] += found.flow.north
    assert np.abs(rest).max() < 1e-9


@pytest.mark.unit
def test_a_long_rectangle_takes_the_memory_of_its_cells() -> None:
    """A square around it would have 268 million cells."""
    p, q = np.zeros((2, 9000)), np.zeros((2, 9000))
    p[0, 0], q[1, 8999] = 1, 1
    assert emd_rectangle(p, q, bounds=(0, 0, 9000, 2)).value == pytest.approx(9000)


@pytest.mark.unit
def test_a_square_is_the_same_by_either_way(rng: np.random.Generator) -> None:
    p, q = rng.random((2, 4, 4))
    whole = emd(p, q, Grid(2), normalize=True)
    assert emd_rectangle(p, q, normalize=True).value == pytest.approx(whole.value)


@pytest.mark.unit
def test_a_picture_of_any_size_is_compared_on_a_grid(tmp_path: Path) -> None:
    a, b = np.zeros((3, 6)), np.zeros((3, 6))
    a[0, 0], b[2, 5] = 1, 1
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    told: list[str] = []
    found = compare_masses(
        tmp_path / "a.npy", tmp_path / "b.npy", space="grid", bounds=(0, 0, 12, 6), flow=True,
        watch=told.append,
    )  # fmt: skip
    assert found.value == pytest.approx(10 + 4)
    assert told == ["on a grid of 6 x 3 cells, l1 metric"]
