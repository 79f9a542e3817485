"""Estimates off the cells: their distance to the truth is that of the cells they stand on."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.sensing import Recovery, emd_of, graph_diffusion, heat_line, heat_plane, recover
from sfumato.sensing.recovery import Estimate
from sfumato.spaces import Graph, Grid, Points
from sfumato.transport import emd, emd_apart, emd_euclidean

PLANE = heat_plane(sources=Grid(3), sensors=[[0.3, 0.3], [0.7, 0.6]], diffusion_time=0.1)
RING = graph_diffusion(
    Graph([(i, (i + 1) % 9) for i in range(9)], [1, 2, 1, 3, 1, 1, 2, 1, 1]), 0.3
)
DESKS = heat_plane(
    sources=Points([(0.1, 0.2), (0.8, 0.3), (0.5, 0.9), (0.4, 0.4)]),
    sensors=[[0.5, 0.5]],
    diffusion_time=0.1,
)


@pytest.mark.reference
@pytest.mark.parametrize(
    "operator",
    [heat_line(sources=12, sensors=3, diffusion_time=0.1), PLANE, RING, DESKS],
    ids=["line", "grid", "graph", "points"],
)
def test_on_cells_it_is_the_distance_of_the_space(
    operator: object, rng: np.random.Generator
) -> None:
    space = operator.space  # type: ignore[attr-defined]
    for _ in range(5):
        truth, found = rng.random((2, space.size)) * (rng.random((2, space.size)) < 0.4) + 1e-3
        cells = np.arange(space.size)
        estimate = Estimate(operator, space.places(cells), found)  # type: ignore[arg-type]
        if isinstance(space, Points):
            wanted = emd_euclidean(found, truth, space.positions, normalize=True).value
        else:
            wanted = emd(found, truth, space, normalize=True).value
        assert emd_of(estimate, truth) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.unit
def test_between_cells_it_is_how_far_mass_moves() -> None:
    line = heat_line(sources=10, sensors=3, diffusion_time=0.1)
    truth = np.zeros(10)
    truth[4] = 2  # at 0.5
    assert emd_of(Estimate(line, np.array([[0.47], [0.53]]), np.ones(2)), truth) == pytest.approx(
        0.03
    )
    corner = np.zeros(64)
    corner[0] = 1  # at (1/16, 1/16)
    assert emd_of(Estimate(PLANE, np.array([[0.5, 0.75]]), np.ones(1)), corner) == pytest.approx(
        1.125
    )


@pytest.mark.unit
def test_rows_of_distances_are_those_from_one_node() -> None:
    apart = RING.space.distances_between(
        np.array([[3.0], [0.0], [3.0]]), np.arange(9.0)[:, np.newaxis]
    )
    assert np.array_equal(apart[0], RING.space.distances_from(3))
    assert np.array_equal(apart[0], apart[2])
    assert np.array_equal(apart[1], RING.space.distances_from(0))


@pytest.mark.unit
def test_mistakes_are_told() -> None:
    line = heat_line(sources=10, sensors=3, diffusion_time=0.1)
    with pytest.raises(InvalidParameter, match="a place and a mass for each source"):
        Estimate(line, np.zeros((2, 1)), np.ones(3))
    with pytest.raises(InvalidParameter, match="the estimate has none"):
        emd_of(Estimate(line, np.zeros((0, 1)), np.ones(0)), np.ones(10))
    with pytest.raises(InvalidParameter, match="one mass for each of 10 cells"):
        emd_of(Estimate(line, np.zeros((1, 1)), np.ones(1)), np.ones(4))
    nothing = recover(line, np.zeros(3), sigma=1.0)
    assert isinstance(nothing, Recovery)
    with pytest.raises(InvalidParameter, match="the status is zero"):
        emd_of(nothing, np.ones(10))
    with pytest.raises(InvalidInput, match="a table of finite numbers"):
        emd_apart([1], [1], [[-1.0]])
    with pytest.raises(InvalidInput, match="one mass for each of 1 places"):
        emd_apart([1, 2], [1], [[1.0]])
