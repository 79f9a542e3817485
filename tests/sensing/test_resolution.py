"""Two sources against the nearest single one: by brute force, by hand, by expansion, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import fmin
from scipy.special import ndtri
from tests.chance import assert_share

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.diagnostics.resolution import _cell_gap, gap, resolution
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import HeatLine, heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.spaces import Graph, Grid, Line, Points

Z = float(ndtri(0.95))
LINE = heat_line(sources=100, sensors=50, diffusion_time=0.05)


def column(line: HeatLine, place: float) -> FloatArray:
    return line.kernel(line.sensors.positions[:, 0] - place)


def nearest_single(line: HeatLine, readings: FloatArray) -> FloatArray:
    """What the single source reads that comes nearest, of 20,001 places on the line."""
    low, high = line.space.positions[[0, -1]]
    columns = line.kernel(line.sensors.positions - np.linspace(low, high, 20_001))
    masses = readings @ columns / (columns**2).sum(axis=0)
    off = np.linalg.norm(readings[:, np.newaxis] - masses * columns, axis=0)
    return np.asarray((masses * columns)[:, off.argmin()])


@pytest.mark.reference
@pytest.mark.parametrize("time", [0.05, 0.002])
def test_the_gap_is_that_of_all_single_sources(time: float, rng: np.random.Generator) -> None:
    line = heat_line(sources=100, sensors=np.sort(rng.random(30)), diffusion_time=time)
    first, second = rng.uniform(0.01, 1, (2, 40, 1))
    for a, b, found in zip(first[:, 0], second[:, 0], gap(line, first, second), strict=True):
        two = column(line, a) + column(line, b)
        brute = float(np.linalg.norm(two - nearest_single(line, two)))
        # A place off by half a step of 5e-5 reads off by at most 2.5e-5 |g'| < 2.5e-5 * 0.61 |g| /
        # sqrt(2T).
        slip = 2.5e-5 * float(np.linalg.norm(two)) / math.sqrt(2 * time)
        assert brute - slip <= found <= brute * (1 + 1e-9)


@pytest.mark.reference
def test_the_gap_in_a_plane_is_that_of_a_simplex_search(rng: np.random.Generator) -> None:
    plane = heat_plane(sources=Grid(4), sensors=rng.random((30, 2)), diffusion_time=0.02)
    first, second = rng.uniform(0.1, 0.9, (2, 6, 2))

    def reads(place: FloatArray) -> FloatArray:
        squares = ((plane.sensors.positions - place) ** 2).sum(axis=1)
        return np.asarray(np.exp(-squares / 0.08) / (0.08 * math.pi))

    for a, b, found in zip(first, second, gap(plane, first, second), strict=True):
        two = reads(a) + reads(b)

        def off(place: FloatArray, two: FloatArray = two) -> float:
            one = reads(
                np.clip(place, 1 / 32, 31 / 32)
            )  # cells have their centers from 1/32 to 31/32
            return float(np.linalg.norm(two - (two @ one) / (one @ one) * one))

        starts = [(1 - t) * a + t * b for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
        brute = min(off(fmin(off, start, xtol=1e-9, ftol=1e-12, disp=False)) for start in starts)
        assert found == pytest.approx(brute, rel=1e-6)


@pytest.mark.unit
def test_small_separations_follow_the_second_derivative() -> None:
    place, time = 0.505, LINE.diffusion_time  # the middle of the cells, 0.01 to 1
    ahead = LINE.sensors.positions[:, 0] - place
    reads = column(LINE, place)
    first, second = reads * ahead / (2 * time), reads * ((ahead / (2 * time)) ** 2 - 1 / (2 * time))
    tangent = np.linalg.qr(np.stack([reads, first], axis=1))[0]
    bend = float(np.linalg.norm(second - tangent @ (tangent.T @ second)))
    for sigma in (1e-5, 1e-4):
        expected = math.sqrt(4 * 2 * Z * sigma / bend)
        # The next term of the expansion is smaller by about d**2 / 4T: 1e-4 and 1e-5 of it here.
        assert resolution(LINE, sigma=sigma).separation == pytest.approx(expected, rel=2e-3)
    # A rival that forgets that the single source may move and change its mass is off by far.
    assert bend < 0.7 * float(np.linalg.norm(second))


@pytest.mark.statistical
def test_the_best_test_has_this_level_and_this_power(rng: np.random.Generator) -> None:
    sigma = 0.06598
    d = resolution(LINE, sigma=sigma).separation
    two = column(LINE, 0.505 - d / 2) + column(LINE, 0.505 + d / 2)
    one = nearest_single(LINE, two)
    apart = float(np.linalg.norm(two - one))
    way, middle, draws = (two - one) / apart, (two + one) / 2, 40_000
    noise = sigma * rng.standard_normal((draws, one.size))
    for truth, sign in ((two, 1), (one, -1)):
        right = int((sign * ((truth - middle + noise) @ way) > 0).sum())
        assert_share(right, draws, 0.95, rivals=[0.935, 0.965])


@pytest.mark.unit
def test_the_line_is_hardest_at_its_ends() -> None:
    found = resolution(LINE, sigma=0.06598)
    assert found.best <= found.separation <= found.worst
    assert found.separation == pytest.approx(0.161, abs=1e-3)
    low, high = LINE.space.positions[[0, -1]]
    for end, sign in ((low, 1), (high, -1)):
        pair = np.array([[end]]), np.array([[end + sign * found.separation]])
        assert (
            gap(LINE, *pair)[0] < 2 * Z * 0.06598
        )  # as far apart as in the middle, and not told apart
    more = resolution(LINE, sigma=2 * 0.06598, mass=2)
    assert (more.separation, more.worst) == (found.separation, found.worst)
    assert (
        "closer than 0.161 cannot be told from a single one of any mass with 95 % certainty"
        in found.message
    )


@pytest.mark.unit
def test_noise_and_certainty_move_it_and_much_noise_ends_it() -> None:
    sizes = [resolution(LINE, sigma=sigma).separation for sigma in (0.01, 0.1, 0.3)]
    assert sizes == sorted(sizes)
    assert resolution(LINE, sigma=0.1, confidence=0.8).separation < sizes[1]
    none = resolution(LINE, sigma=100.0)
    assert none.separation == none.best == none.worst == math.inf
    assert "cannot be told from a single one" in none.message
    assert (
        resolution(heat_line(sources=1, sensors=5, diffusion_time=0.1), sigma=0.1).separation
        == math.inf
    )


@pytest.mark.unit
def test_the_worse_axis_of_a_plane_counts() -> None:
    # Sensors far from each other north and south, close east and west: rows blur into each other.
    rows = np.array([(x, y) for x in np.linspace(0, 1, 12) for y in (0.2, 0.5, 0.8)])
    tall = heat_plane(sources=Grid(4), sensors=rows, diffusion_time=0.02)
    wide = heat_plane(sources=Grid(4), sensors=rows[:, ::-1], diffusion_time=0.02)
    found, turned = resolution(tall, sigma=0.1), resolution(wide, sigma=0.1)
    assert found.separation == pytest.approx(turned.separation, rel=1e-3)
    centre = np.array([[0.5, 0.5]])
    told = [
        float(
            gap(tall, centre - found.separation / 2 * way, centre + found.separation / 2 * way)[0]
        )
        for way in np.eye(2)
    ]
    assert min(told) == pytest.approx(2 * Z * 0.1, rel=1e-2)
    assert max(told) > 1.1 * min(told)


@pytest.mark.unit
def test_cells_by_hand() -> None:
    # Each sensor reads its own cell: two units are 1 from the nearest single cell, wherever they
    # are.
    each = linear(np.eye(6), Line(6))
    near, far = 1 / (2 * Z) * 0.999, 1 / (2 * Z) * 1.001
    found = resolution(each, sigma=near)
    assert found.separation == found.best == found.worst == pytest.approx(1 / 6)
    assert all(share == 1 for _, share in found.shares)
    assert resolution(each, sigma=far).separation == math.inf
    # One blind sensor: pairs with its cell read as one cell, so 2 of 3 pairs of neighbors can be
    # told apart.
    blind = linear(np.diag([1.0, 1.0, 1.0, 0.0]), Line(4))
    some = resolution(blind, sigma=near)
    assert some.best == pytest.approx(1 / 4)
    assert some.worst == math.inf
    assert dict(some.shares)[0.25] == pytest.approx(2 / 3)
    assert some.separation == math.inf
    assert "95 % of pairs can be" in resolution(each, sigma=near).message


@pytest.mark.reference
def test_cells_by_least_squares(rng: np.random.Generator) -> None:
    graph = Graph([(i, i + 1) for i in range(19)] + [(0, 10), (5, 15)])
    network = graph_diffusion(graph, 0.7, sensors=[0, 3, 4, 9, 12, 17])
    columns = network.columns(np.arange(20))
    first, second = rng.integers(20, size=(2, 30))
    for i, j, found in zip(first, second, _cell_gap(columns, first, second), strict=True):
        two = columns[:, i] + columns[:, j]
        brute = min(
            math.sqrt(float(np.linalg.lstsq(columns[:, [k]], two)[1][0])) for k in range(20)
        )
        assert found == pytest.approx(brute, rel=1e-6, abs=1e-12)
    farther = [share for _, share in resolution(network, sigma=0.05, confidence=0.8).shares]
    assert farther[0] < max(farther)


@pytest.mark.unit
def test_points_are_cells() -> None:
    places = Points([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
    square = heat_plane(sources=places, sensors=places.positions, diffusion_time=0.01)
    found = resolution(square, sigma=0.1)
    assert found.separation == pytest.approx(1.0)
    # A diagonal of 1.41 is nearer to one step than to two: both are of the first.
    assert found.shares == ((1.0, 1.0),)


@pytest.mark.unit
def test_what_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="sigma must be positive"):
        resolution(LINE, sigma=0)
    with pytest.raises(InvalidParameter, match="mass must be positive"):
        resolution(LINE, sigma=1, mass=math.inf)
    with pytest.raises(InvalidParameter, match="confidence must be above 1/2"):
        resolution(LINE, sigma=1, confidence=0.5)
