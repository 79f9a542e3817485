from __future__ import annotations

import copy
import math
import pickle
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, sparse, stats
from scipy.sparse.linalg import aslinearoperator

from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.sensors import Sensors
from sfumato.spaces import Graph, Grid, Line, Points

RING = Graph([(i, (i + 1) % 12) for i in range(12)] + [(0, 6), (2, 9)])


def all_kinds(rng: np.random.Generator) -> list[Operator]:
    matrix = rng.standard_normal((5, 40))
    return [
        heat_line(sources=40, sensors=7, diffusion_time=0.02),
        heat_line(
            sources=np.sort(rng.random(40)), sensors=2 * rng.random(7) - 0.5, diffusion_time=0.02
        ),
        heat_plane(
            sources=Grid(3, (-1.0, 0.0, 1.0, 4.0)),
            sensors=rng.standard_normal((6, 2)),
            diffusion_time=0.1,
        ),
        heat_plane(sources=rng.random((30, 2)), sensors=rng.random((6, 2)), diffusion_time=0.1),
        graph_diffusion(RING, 0.4),
        graph_diffusion(RING, 0.4, sensors=[7, 3, 3], weights=1 + rng.random(len(RING.edges))),
        linear(matrix, Line(40)),
        linear(sparse.csr_array(matrix), Line(40)),
        linear(aslinearoperator(matrix), Line(40)),
    ]


@pytest.mark.property
def test_readings_adjoint_and_columns_are_one_map(rng: np.random.Generator) -> None:
    for operator in all_kinds(rng):
        m, n = operator.shape
        assert (m, n) == (len(operator.sensors), operator.space.size)
        matrix = operator.columns(np.arange(n))
        assert matrix.shape == (m, n)
        f, z = rng.standard_normal(n), rng.standard_normal(m)
        # Sums of at most 64 products of size 1: 1e-14 is a hundred roundings.
        close = {"rtol": 1e-13, "atol": 1e-13 * np.abs(matrix).max()}
        np.testing.assert_allclose(operator.readings(f), matrix @ f, **close)
        np.testing.assert_allclose(operator.adjoint(z), z @ matrix, **close)
        assert operator.readings(f) @ z == pytest.approx(
            f @ operator.adjoint(z), rel=1e-12, abs=1e-12
        )
        chosen = rng.integers(n, size=5)
        np.testing.assert_allclose(operator.columns(chosen), matrix[:, chosen], **close)
        assert operator.columns([]).shape == (m, 0)


@pytest.mark.property
def test_maps_are_the_same_when_formed_in_parts(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = heat_line(sources=101, sensors=7, diffusion_time=0.02)
    f, z = rng.random(101), rng.random(7)
    whole = line.readings(f), line.adjoint(z)
    monkeypatch.setattr("sfumato.sensing.model.operators.protocol.CHUNK", 20)
    np.testing.assert_allclose(line.readings(f), whole[0], rtol=1e-14)
    np.testing.assert_allclose(line.adjoint(z), whole[1], rtol=1e-14)


@pytest.mark.reference
@pytest.mark.parametrize("time", [5e-4, 0.05, 2.0])
def test_heat_on_a_line_is_a_normal_density(time: float) -> None:
    places, sensors = [-0.3, 0.0, 0.5, 1.7], [0.1, 0.5]
    line = heat_line(sources=places, sensors=sensors, diffusion_time=time)
    wanted = [stats.norm.pdf(s, loc=places, scale=math.sqrt(2 * time)) for s in sensors]
    # A rounding of an exponent, up to 700 before all is 0, is 700 roundings of the density; below
    # 1e-300 doubles are coarser than that.
    np.testing.assert_allclose(line.columns(range(4)), wanted, rtol=2e-12, atol=1e-300)


@pytest.mark.unit
def test_a_number_of_sources_and_sensors_means_the_places_of_the_papers() -> None:
    line = heat_line(sources=4, sensors=2, diffusion_time=1.0, length=8.0)
    assert line.space == Line(4, 8.0)
    assert line.sensors.positions.tolist() == [[4.0], [8.0]]
    assert line.sensors.names == ("0", "1")


@pytest.mark.reference
def test_heat_in_a_plane_is_a_normal_density_and_grids_are_points(rng: np.random.Generator) -> None:
    grid = Grid(3, (-1.0, 0.0, 1.0, 4.0))
    sensors = rng.standard_normal((6, 2))
    on_grid = heat_plane(sources=grid, sensors=sensors, diffusion_time=0.3)
    at_points = heat_plane(
        sources=Points(grid.centers(np.arange(grid.size))), sensors=sensors, diffusion_time=0.3
    )
    every = np.arange(grid.size)
    wanted = [
        stats.multivariate_normal.pdf(grid.centers(every), mean=place, cov=2 * 0.3 * np.eye(2))
        for place in sensors
    ]
    # Exponents below 60 here: a hundred roundings of each density.
    np.testing.assert_allclose(on_grid.columns(every), wanted, rtol=1e-13)
    np.testing.assert_allclose(at_points.columns(every), wanted, rtol=1e-13)
    f, z = rng.random(grid.size), rng.standard_normal(6)
    np.testing.assert_allclose(on_grid.readings(f), at_points.readings(f), rtol=1e-12)
    np.testing.assert_allclose(on_grid.adjoint(z), at_points.adjoint(z), rtol=1e-12, atol=1e-13)


@pytest.mark.reference
@pytest.mark.parametrize("rate", [1e-8, 0.01, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_diffusion_on_a_graph_is_the_exponential(
    rng: np.random.Generator, rate: float, weighted: bool
) -> None:
    weights = 10 ** rng.uniform(-2, 1, len(RING.edges)) if weighted else None
    operator = graph_diffusion(RING, rate, weights=weights)
    laplacian = np.zeros((12, 12))
    for (a, b), weight in zip(RING.edges, np.ones(14) if weights is None else weights, strict=True):
        laplacian[[a, b], [b, a]] -= weight
        laplacian[[a, b], [a, b]] += weight
    wanted = linalg.expm(-rate * laplacian)
    # expm squares up to 15 times at the largest rate, each doubling what it has rounded: 2**15 eps
    # = 7e-12.
    np.testing.assert_allclose(operator.columns(range(12)), wanted, rtol=0, atol=1e-11)
    # Heat is kept, whatever the rate: columns add up to 1, by ourselves to a few hundred roundings.
    np.testing.assert_allclose(operator.columns(range(12)).sum(axis=0), 1.0, rtol=1e-12)
    part = graph_diffusion(RING, rate, sensors=[5, 0], weights=weights)
    np.testing.assert_allclose(part.columns(range(12)), wanted[[5, 0]], rtol=0, atol=1e-11)


@pytest.mark.unit
def test_lengths_of_edges_do_not_slow_diffusion() -> None:
    short, long = Graph([(0, 1), (1, 2)]), Graph([(0, 1), (1, 2)], [5.0, 7.0])
    assert np.array_equal(
        graph_diffusion(short, 0.3).columns([0]), graph_diffusion(long, 0.3).columns([0])
    )


@pytest.mark.unit
def test_a_graph_of_one_node_keeps_its_heat() -> None:
    alone = graph_diffusion(Graph([], nodes=1), 5.0)
    assert alone.columns([0]).tolist() == [[1.0]]
    assert alone.readings([3.0]).tolist() == alone.adjoint([3.0]).tolist() == [3.0]


@pytest.mark.unit
def test_two_nodes_by_hand() -> None:
    # L = [[1, -1], [-1, 1]] has eigenvalues 0 and 2: half stays, half decays.
    kept = (1 + math.exp(-0.6)) / 2
    pair = graph_diffusion(Graph([(0, 1)]), 0.3)
    np.testing.assert_allclose(
        pair.columns([0, 1]), [[kept, 1 - kept], [1 - kept, kept]], atol=1e-15
    )


@pytest.mark.unit
def test_a_matrix_is_kept_as_it_was() -> None:
    mine = np.array([[1.0, 2.0]])
    operator = linear(mine, Line(2))
    mine[0, 0] = 9.0
    assert operator.readings([1, 1]).tolist() == [3.0]
    with pytest.raises(ValueError, match="read-only"):
        operator.map[0, 0] = 9.0


SENSORS = [[0.1], [0.2]]
FLAT = [[0.1, 0.2]]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: heat_line(sources=5, sensors=2, diffusion_time=-1.0),
            "diffusion_time must lie between 1e-20 and 1e20",
        ),
        (
            lambda: heat_line(sources=5, sensors=2, diffusion_time=0.0),
            "between 1e-20 and 1e20, got 0.0",
        ),
        (
            lambda: heat_line(sources=5, sensors=2, diffusion_time=math.nan),
            "between 1e-20 and 1e20, got nan",
        ),
        (
            lambda: heat_line(sources=5, sensors=2, diffusion_time=cast(Any, "long")),
            "between 1e-20 and 1e20, got long",
        ),
        (
            lambda: heat_plane(sources=Grid(1), sensors=FLAT, diffusion_time=math.inf),
            "between 1e-20 and 1e20, got inf",
        ),
        (lambda: graph_diffusion(RING, -0.3), "rate must lie between 1e-20 and 1e20, got -0.3"),
        (lambda: heat_line(sources=0, sensors=2, diffusion_time=1.0), "at least 1, got 0"),
        (
            lambda: heat_line(sources=5, sensors=0, diffusion_time=1.0),
            "sensors must be .* at least 1, got 0",
        ),
        (
            lambda: heat_line(sources=5, sensors=[], diffusion_time=1.0),
            "sensors need at least one place",
        ),
        (
            lambda: heat_line(sources=[0.5, 0.1], sensors=2, diffusion_time=1.0),
            "positions must increase",
        ),
        (
            lambda: heat_line(sources=5, sensors=[0.1, math.nan], diffusion_time=1.0),
            "must be finite, got .*nan",
        ),
        (
            lambda: heat_line(sources=5, sensors=FLAT, diffusion_time=1.0),
            "have 1 coordinate, got 2",
        ),
        (
            lambda: heat_line(sources=5, sensors=Sensors(FLAT), diffusion_time=1.0),
            "1 coordinate, got 2",
        ),
        (lambda: heat_line(sources=5, sensors=["a"], diffusion_time=1.0), "must be real numbers"),
        (
            lambda: heat_plane(sources=Grid(1), sensors=SENSORS, diffusion_time=1.0),
            "2 coordinates, got 1",
        ),
        (
            lambda: heat_plane(sources=SENSORS, sensors=FLAT, diffusion_time=1.0),
            "2 coordinates, got 1",
        ),
        (
            lambda: graph_diffusion(Graph([(0, 1)], nodes=3), 1.0),
            "must be connected, got one in several parts",
        ),
        (lambda: graph_diffusion(RING, 1.0, sensors=[12]), "on a node from 0 to 11, got 12"),
        (lambda: graph_diffusion(RING, 1.0, sensors=[-1]), "on a node from 0 to 11, got -1"),
        (lambda: graph_diffusion(RING, 1.0, sensors=[0.5]), "on a node from 0 to 11, got 0.5"),
        (lambda: graph_diffusion(RING, 1.0, sensors=[[0, 1]]), "1 coordinate, got 2"),
        (lambda: graph_diffusion(RING, 1.0, weights=[1.0]), "for each of 14 edges"),
        (lambda: graph_diffusion(RING, 1.0, weights=[0.0] * 14), "for each of 14 edges"),
        (lambda: graph_diffusion(RING, 1.0, weights=[math.nan] * 14), "for each of 14 edges"),
        (lambda: linear([[1.0, math.inf]], Line(2)), "matrix entries must be finite"),
        (
            lambda: linear([[1.0, 2.0]], Line(3)),
            r"one column for each of 3 cells, got shape \(1, 2\)",
        ),
        (lambda: linear([1.0, 2.0], Line(2)), r"one column for each of 2 cells, got shape \(2,\)"),
        (
            lambda: linear(np.zeros((0, 2)), Line(2)),
            r"one column for each of 2 cells, got shape \(0, 2\)",
        ),
        (lambda: linear(aslinearoperator(np.eye(3)), Line(2)), r"2 cells, got shape \(3, 3\)"),
        (
            lambda: linear([[1.0, 2.0]], Line(2), sensors=[0, 1]),
            "one row for each of 2 sensors, got 1",
        ),
        (lambda: linear([["a"]], Line(1)), "must be real numbers"),
        (lambda: linear([[1.0], [1.0, 2.0]], Line(1)), "uneven rows"),
    ],
)
def test_a_wrong_operator_gets_one_clear_sentence(build: Any, message: str) -> None:
    with pytest.raises(
        InvalidParameter, match=rf"{message}.*(was built|nothing was computed)$"
    ) as raised:
        build()
    assert "\n" not in str(raised.value)


@pytest.mark.unit
def test_wrong_lengths_get_one_clear_sentence(rng: np.random.Generator) -> None:
    for operator in all_kinds(rng):
        m, n = operator.shape
        for wrong in (np.ones(n + 1), np.ones((n, 1)), 1.0):
            with pytest.raises(
                InvalidParameter, match=f"one number for each of {n} cells, got shape .*nothing"
            ):
                operator.readings(wrong)
        for wrong in (np.ones(m + 1), np.ones((1, m)), 1.0):
            with pytest.raises(
                InvalidParameter, match=f"one number for each of {m} sensors, got shape .*nothing"
            ):
                operator.adjoint(wrong)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "got 1 names for 2 sensors"),
        (["a", "b", "c"], "got 3 names for 2 sensors"),
        (["a", "a"], "must be named once, got 'a' again"),
        (["a", ""], "printable and not empty, got ''"),
        (["a", "b\n"], r"printable and not empty, got 'b\\n'"),
    ],
)
def test_names_are_checked(names: list[str], message: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{message}; nothing was built"):
        Sensors(SENSORS, names)


@pytest.mark.unit
@pytest.mark.parametrize("positions", [[], [[]], [[[1.0]]], 1.0])
def test_sensors_need_places(positions: Any) -> None:
    with pytest.raises(
        InvalidParameter, match=r"sensors need at least one place.*nothing was built"
    ):
        Sensors(positions)


@pytest.mark.unit
def test_a_moved_or_renamed_sensor_is_another_set() -> None:
    hall = Sensors([[0.25], [0.75]], ["door", "window"])
    assert hall.digest == Sensors([[0.25], [0.75]], ["door", "window"]).digest
    others = [
        Sensors([[0.25], [math.nextafter(0.75, 1)]], ["door", "window"]),
        Sensors([[0.75], [0.25]], ["door", "window"]),
        Sensors([[0.25], [0.75]], ["door", "windows"]),
        Sensors([[0.25]], ["door"]),
        Sensors([[0.25, 0.0], [0.75, 0.0]], ["door", "window"]),
        Sensors([[0.25], [0.75]], ['door",0.5],["a', "window"]),
    ]
    assert len({hall.digest, *(other.digest for other in others)}) == 7
    assert all(hall != other for other in others)


@pytest.mark.property
@given(st.permutations(range(5)))
def test_the_order_of_sensors_does_not_change_their_digest(order: list[int]) -> None:
    places, names = (
        np.array([[3.0], [-1.0], [0.5], [0.0], [7.0]]),
        np.array(["e", "a", "c", "10", "9"]),
    )
    first, second = Sensors(places, names), Sensors(places[order], names[order])
    assert first.digest == second.digest
    assert (first == second) == (order == [0, 1, 2, 3, 4])


@pytest.mark.unit
def test_sensors_do_not_change() -> None:
    places = np.array([[-0.0], [1.0]])
    sensors = Sensors(places)
    places[0] = 9.0
    assert sensors.positions.tolist() == [[0.0], [1.0]]
    assert sensors.digest == Sensors([[0.0], [1.0]]).digest
    for same in (sensors, copy.deepcopy(sensors), pickle.loads(pickle.dumps(sensors))):  # noqa: S301
        assert same == sensors
        assert hash(same) == hash(sensors)
        assert same.digest == sensors.digest
        with pytest.raises(ValueError, match="read-only"):
            same.positions[0] = 1.0
