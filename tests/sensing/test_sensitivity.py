"""Sensitivity is never too small: against 50 digits, brute force, closed forms and pairs of sources.

Heat on lines and planes, wherever people stand, is in `test_heat_changes.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path
from scipy.sparse.linalg import LinearOperator

from sfumato.errors import InvalidParameter
from sfumato.privacy import AddRemoveUser, MovedMass, SwappedCells
from sfumato.privacy.accounting import gaussian_delta
from sfumato.sensing.model.changes import Largest
from sfumato.sensing.model.graph_sensitivity import by_bounds, by_rows, diffusion_error
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.sensitivity import Sensitivity, _up, per_sensor_loss, sensitivity
from sfumato.spaces import Graph, Grid, Line, Points
from sfumato.transport import emd, emd_euclidean

# Rounding up may cost this much, relatively.
SLACK = 1e-11


def slope(operator: Operator) -> Sensitivity:
    return sensitivity(operator, MovedMass(1, operator.space.metric))


def just_above(found: float, truth: Any, slack: float = SLACK) -> bool:
    return bool(truth <= found <= truth * (1 + slack) + mpmath.mpf(10) ** -250)


def exact_slope(columns: Any, distances: dict[tuple[int, int], Any]) -> tuple[Any, list[Any]]:
    """The largest change over distance, of all readings and of each, in mpmath."""
    sensors = len(columns[0])
    moved = {
        (i, j): [abs(columns[i][s] - columns[j][s]) / d for s in range(sensors)]
        for (i, j), d in distances.items()
    }
    joint = max(mpmath.sqrt(mpmath.fsum(x * x for x in move)) for move in moved.values())
    return joint, [max(move[s] for move in moved.values()) for s in range(sensors)]


def heat(distance: Any, time: Any) -> Any:
    return mpmath.exp(-(distance**2) / (4 * time)) / mpmath.sqrt(4 * mpmath.pi * time)


def random_graph(rng: np.random.Generator, nodes: int, *, degree: int = 4) -> Graph:
    tree = np.column_stack([np.arange(1, nodes), rng.integers(0, np.arange(1, nodes))])
    more = rng.integers(0, nodes, (nodes * (degree - 2) // 2, 2))
    edges = np.sort(np.concatenate([tree, more[more[:, 0] != more[:, 1]]]), axis=1)
    return Graph(np.unique(edges, axis=0))


# by hand


@pytest.mark.unit
def test_a_matrix_by_hand() -> None:
    places = Line.at([0, 2, 3])
    operator = linear([[1, 0, 0], [0, 4, 2], [7, 7, 7]], places)
    found = sensitivity(operator, MovedMass("1/2", "line"))
    # Steps: (1, 4) over 2, so sqrt(17) / 2; 2 over 1.
    assert just_above(found.l2, mpmath.mpf(0.5) * mpmath.sqrt(17) / 2, 1e-14)
    assert found.worst == (0, 1)
    assert found.exact
    np.testing.assert_allclose(found.per_sensor, [0.25, 1.0, 0.0], rtol=1e-14)
    assert (found.per_sensor >= [0.25, 1.0, 0.0]).all()
    assert found.per_sensor[2] == 0
    swapped = sensitivity(operator, SwappedCells(3))
    assert just_above(swapped.l2, 3 * mpmath.sqrt(17), 1e-14)
    with pytest.raises(ValueError, match="read-only"):
        found.per_sensor[0] = 0


@pytest.mark.unit
def test_steps_on_the_unit_line_are_not_of_length_one() -> None:
    # The papers' formula, radius times the largest difference of neighbors, misses the factor n.
    operator = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    moved, swapped = (
        sensitivity(operator, MovedMass(0.1, "line")),
        sensitivity(operator, SwappedCells(1)),
    )
    assert swapped.l2 == pytest.approx(0.135906, rel=1e-5)
    assert moved.l2 == pytest.approx(0.1 * 100 * swapped.l2, rel=1e-4)
    assert swapped.per_sensor.max() == pytest.approx(0.0242, abs=5e-5)


@pytest.mark.unit
def test_numbers_that_leave_the_doubles_are_refused_or_bounded() -> None:
    with pytest.raises(InvalidParameter, match="within 1e150"):
        Points([(0.0, 0.0), (1e200, 0.0)])
    for time in (1e-60, 1e60, 0.0, -1.0, math.nan):
        with pytest.raises(InvalidParameter, match="between 1e-20 and 1e20"):
            heat_line(sources=3, sensors=2, diffusion_time=time)
    with pytest.raises(InvalidParameter, match="between 1e-20 and 1e20"):
        graph_diffusion(Graph([(0, 1), (1, 2)]), 1.0, weights=[1e200, 1e200])
    # Weights as extreme as are allowed end in a bound, not in a loop: sqrt(2) is always one.
    wild = graph_diffusion(Graph([(0, 1), (1, 2)]), 1.0, weights=[1e20, 1e-20])
    assert by_bounds(wild, wild.space.lengths).l2 <= math.sqrt(2) * (1 + 1e-12)


@pytest.mark.unit
def test_one_place_has_nowhere_to_go() -> None:
    found = slope(linear([[2]], Points([[0.0, 0.0]])))
    assert (found.l2, found.worst) == (0.0, None)
    assert not found.per_sensor.any()
    # A line of one cell is as long as one of two: people walk in it.
    assert slope(heat_line(sources=1, sensors=3, diffusion_time=1)).l2 > 0.2


@pytest.mark.unit
def test_refusals() -> None:
    operator = heat_line(sources=4, sensors=3, diffusion_time=1)
    with pytest.raises(
        InvalidParameter, match=r"metric of the sources, 'line', got 'graph'; no sens"
    ):
        sensitivity(operator, MovedMass(1, "graph"))
    with pytest.raises(InvalidParameter, match="are MovedMass or SwappedCells, got AddRemoveUser"):
        sensitivity(operator, AddRemoveUser())  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="finite amounts, got one beyond any double"):
        slope(linear([[1e308, -1e308]], Line(2)))
    with pytest.raises(InvalidParameter, match="at least 1e-140 apart"):
        slope(linear([[1, 2]], Points([[0.0, 0.0], [0.0, 1e-200]])))


@pytest.mark.unit
def test_numbers_far_from_one_keep_their_size() -> None:
    for size in (1e-300, 1e-170, 1e170, 1e300):
        found = slope(linear([[3 * size, 0], [4 * size, 0]], Line.at([0, 1])))
        assert just_above(found.l2, 5 * mpmath.mpf(size), 1e-14)


# against 50 digits


@pytest.mark.reference
@pytest.mark.parametrize("time", [1e-6, 1e-3, 0.05, 2.0, 1e4])
def test_the_line_against_fifty_digits(time: float, rng: np.random.Generator) -> None:
    sensors = np.array([*rng.random(3), 0.97, -0.2])
    found = slope(heat_line(sources=12, sensors=sensors, diffusion_time=time))
    assert found.place is not None
    with mpmath.workdps(50):
        at, to, t = mpmath.mpf(found.place[0]), [mpmath.mpf(s) for s in sensors], mpmath.mpf(time)
        changes = [(s - at) / (2 * t) * heat(s - at, t) for s in to]
        joint = mpmath.sqrt(mpmath.fsum(x * x for x in changes))
        assert just_above(found.l2, joint, 3e-6)


@pytest.mark.reference
@pytest.mark.parametrize("rate", [1e-3, 0.4, 9.0])
def test_graphs_against_fifty_digits(rate: float, rng: np.random.Generator) -> None:
    graph = random_graph(rng, 9)
    graph = Graph(graph.edges, 0.5 + rng.random(len(graph.edges)))
    weights = 0.2 + 3 * rng.random(len(graph.edges))
    operator = graph_diffusion(graph, rate, weights=weights, sensors=[0, 5, 8, 3])
    with mpmath.workdps(50):
        laplacian = mpmath.zeros(9)
        for (i, j), w in zip(graph.edges.tolist(), weights.tolist(), strict=True):
            laplacian[i, i] += w
            laplacian[j, j] += w
            laplacian[i, j] -= w
            laplacian[j, i] -= w
        spread = mpmath.expm(-mpmath.mpf(rate) * laplacian)
        error = mpmath.norm(spread - mpmath.matrix(operator.diffuse(np.eye(9)).tolist()))
        assert error <= 3 * diffusion_error(operator)  # nine columns together: sqrt 9
        assert diffusion_error(operator) < 1e-11
        for nodes in ([0, 5, 8, 3], list(range(9))):
            operator = graph_diffusion(graph, rate, weights=weights, sensors=nodes)
            columns = [[spread[s, i] for s in nodes] for i in range(9)]
            lengths = zip(graph.edges.tolist(), graph.lengths.tolist(), strict=True)
            joint, alone = exact_slope(columns, {(i, j): mpmath.mpf(d) for (i, j), d in lengths})
            found, bound = slope(operator), by_bounds(operator, graph.lengths)
            # The series is accurate absolutely, not relatively: sqrt(2 m) times its error, over a
            # length.
            assert joint <= found.l2 <= joint * (1 + SLACK) + 10 * diffusion_error(operator)
            assert all(
                a <= f <= a * (1 + SLACK) + 10 * diffusion_error(operator)
                for f, a in zip(found.per_sensor, alone, strict=True)
            )
            assert joint <= bound.l2 * (1 + bound.error)
            assert max(alone) <= bound.per_sensor.min() * (1 + bound.error)
            assert bound.exact == (len(nodes) == 9)


# against brute force


def anywhere(rng: np.random.Generator) -> list[Operator]:
    """Heat, where people also stand between the cells."""
    return [
        heat_line(sources=14, sensors=5, diffusion_time=0.01),
        heat_plane(
            sources=Grid(2, bounds=(0, 0, 3, 1)), sensors=rng.random((4, 2)), diffusion_time=0.05
        ),
    ]


def on_cells(rng: np.random.Generator) -> list[Operator]:
    """Operators whose cells are all the places there are."""
    graph = random_graph(rng, 14)
    graph = Graph(graph.edges, rng.integers(1, 6, len(graph.edges)))
    matrix = rng.normal(size=(3, 16))
    return [
        graph_diffusion(graph, 0.3),
        graph_diffusion(graph, 0.3, sensors=[2, 2, 7]),
        linear(matrix, Grid(2)),
        linear(matrix[:, :14], graph),
    ]


@pytest.mark.property
def test_no_two_sources_move_the_readings_further(rng: np.random.Generator) -> None:
    for operator in [*anywhere(rng), *on_cells(rng)]:
        space, found = operator.space, slope(operator)
        assert not isinstance(space, Points)
        closest = 0.0
        for trial in range(40):
            before = rng.integers(0, 4, space.size)
            after = before.copy()
            for _ in range(1 + trial % 3):
                begin, end = int(rng.choice(np.flatnonzero(after))), int(rng.integers(space.size))
                if trial % 2:
                    end = int(rng.choice(space.neighbors(begin)))
                if trial == 0 and found.worst:
                    begin, end = found.worst
                    before[begin] += 1
                    after[begin] += 1
                after[begin] -= 1
                after[end] += 1
            change = operator.readings(before) - operator.readings(after)
            far = emd(before, after, space).upper
            # A computed reading is off by 1e-13 or so of a sum of at most 64 entries.
            loose = 1e-11
            assert np.linalg.norm(change) <= found.l2 * far + loose
            assert (np.abs(change) <= found.per_sensor * far + loose).all()
            closest = max(closest, float(np.linalg.norm(change)) / (found.l2 * far) if far else 0.0)
        if found.worst is None:
            continue
        i, j = found.worst
        units = np.zeros((2, space.size))
        units[0, i] = units[1, j] = 1 / space.distance(i, j)
        attained = np.linalg.norm(operator.readings(units[0]) - operator.readings(units[1]))
        assert emd(units[0], units[1], space).value == pytest.approx(1)
        assert attained == pytest.approx(found.l2, rel=1e-9)
        assert closest > 1 - 1e-9, "a unit along the worst pair does not attain the bound"


@pytest.mark.property
def test_sources_at_places_too(rng: np.random.Generator) -> None:
    places = rng.random((12, 2))
    operator = heat_plane(sources=places, sensors=rng.random((4, 2)), diffusion_time=0.03)
    found = slope(operator)
    for _ in range(20):
        before, after = rng.integers(0, 3, 12), np.zeros(12, int)
        np.add.at(after, rng.integers(0, 12, before.sum()), 1)
        far = emd_euclidean(before, after, places).upper
        change = operator.readings(before) - operator.readings(after)
        assert np.linalg.norm(change) <= found.l2 * far + 1e-11


@pytest.mark.reference
def test_steps_are_enough_where_they_realise_the_metric(rng: np.random.Generator) -> None:
    for operator in on_cells(rng):
        n = operator.space.size
        columns = operator.columns(np.arange(n))
        rates = [
            np.linalg.norm(columns[:, i] - columns[:, j]) / operator.space.distance(i, j)
            for i in range(n)
            for j in range(i)
        ]
        assert max(rates) <= slope(operator).l2
        assert slope(operator).l2 == pytest.approx(max(rates), rel=1e-9)


@pytest.mark.reference
def test_an_edge_longer_than_the_way_around_does_no_harm(rng: np.random.Generator) -> None:
    for _ in range(20):
        graph = random_graph(rng, 12, degree=5)
        graph = Graph(graph.edges, rng.choice([0.1, 1.0, 40.0], len(graph.edges)))
        matrix = rng.normal(size=(4, 12))
        lengths = np.zeros((12, 12))
        lengths[tuple(graph.edges.T)] = graph.lengths
        apart = shortest_path(lengths, directed=False)
        assert (apart[tuple(graph.edges.T)] < graph.lengths).any(), (
            "no edge is longer than the way around"
        )
        all_pairs = max(
            np.linalg.norm(matrix[:, i] - matrix[:, j]) / apart[i, j]
            for i in range(12)
            for j in range(i)
        )
        assert slope(linear(matrix, graph)).l2 == pytest.approx(all_pairs, rel=1e-12)
        assert slope(linear(matrix, graph)).l2 >= all_pairs * (1 - 1e-15)
    # The edge of length 5 joins nodes at distance 2: 6 over 5 is not the answer, 6 over 2 is.
    triangle = Graph([(0, 1), (1, 2), (2, 0)], [1, 1, 5])
    assert just_above(slope(linear([[0, 3, 6]], triangle)).l2, mpmath.mpf(3), 1e-14)


@pytest.mark.unit
def test_neighbors_alone_are_too_few_on_a_euclidean_plane() -> None:
    # Readings grow along the diagonal: a step to the side changes them by 1, a diagonal by 2 over
    # sqrt 2.
    spots = np.array([(x, y) for y in range(3) for x in range(3)], dtype=float)
    matrix = spots.sum(axis=1)[np.newaxis]
    assert just_above(slope(linear(matrix, Points(spots))).l2, mpmath.sqrt(2), 1e-14)
    assert just_above(slope(linear(matrix, Points(spots, "l1"))).l2, mpmath.mpf(1), 1e-14)


@pytest.mark.property
def test_swapped_cells(rng: np.random.Generator) -> None:
    for operator in [*anywhere(rng), *on_cells(rng)]:
        found, space = sensitivity(operator, SwappedCells(2)), operator.space
        for _ in range(30):
            before = 2 * rng.random(space.size)
            i = int(rng.integers(space.size))
            j = int(rng.choice(space.neighbors(i)))
            after = before.copy()
            after[[i, j]] = before[[j, i]]
            change = np.abs(operator.readings(before) - operator.readings(after))
            assert np.linalg.norm(change) <= found.l2 + 1e-12
            assert (change <= found.per_sensor + 1e-12).all()
        if found.worst is None:
            continue
        columns = operator.columns(list(found.worst))
        assert 2 * np.linalg.norm(columns[:, 0] - columns[:, 1]) == pytest.approx(
            found.l2, rel=1e-9
        )


# closed forms, as the study corrects them


@pytest.mark.reference
@pytest.mark.parametrize(("n", "rate"), [(3, 0.2), (8, 0.5), (40, 0.03)])
def test_complete_and_star_graphs(n: int, rate: float) -> None:
    complete = Graph([(i, j) for i in range(n) for j in range(i)])
    star = Graph([(0, i) for i in range(1, n)])
    q = (math.exp(-rate * n) - math.exp(-rate)) / (n - 1)
    wanted = [
        (complete, 2 * math.exp(-2 * rate * n)),
        (star, math.exp(-2 * rate * n) + (n - 2) * q**2 + (q + math.exp(-rate)) ** 2),
    ]
    for graph, square in wanted:
        operator = graph_diffusion(graph, rate)
        for found in (by_rows(operator, graph.lengths), by_bounds(operator, graph.lengths)):
            # The series is off by less than 1e-12, times sqrt(2 n); bounds count as met within
            # 2e-9.
            assert (
                math.sqrt(square) * (1 - 1e-14)
                <= found.l2
                <= math.sqrt(square) * (1 + 3e-9) + 1e-11
            )
    printed = math.sqrt(math.exp(-2 * rate * n) + q**2 + (q + math.exp(-rate)) ** 2)
    if n > 3:
        assert slope(graph_diffusion(star, rate)).l2 > printed * 1.0001, (
            "the printed form is too small"
        )


@pytest.mark.reference
def test_lemma_18_in_its_simple_form(rng: np.random.Generator) -> None:
    for rate in (0.05, 0.5, 2.0):
        graph = random_graph(rng, 60)
        second = float(np.linalg.eigvalsh(graph.laplacian().toarray())[1])
        assert slope(graph_diffusion(graph, rate)).l2 <= math.sqrt(2) * math.exp(-rate * second)
    star = Graph([(0, i) for i in range(1, 16)])
    assert slope(graph_diffusion(star, 0.05)).l2 == pytest.approx(1.030, abs=5e-4)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("time", "ratio"),
    [(0.002, 1.0), (0.01, 1.0), (0.05, 0.91)],
    ids=["small", "larger", "too large"],
)
def test_small_times_on_the_line(time: float, ratio: float) -> None:
    # (sqrt m / n) (sqrt(2 pi) / 16 pi)**(1/2) T**(-3/4): T to the -3/4, where the papers bound by
    # -3/2.
    found = sensitivity(
        heat_line(sources=2000, sensors=2000, diffusion_time=time), SwappedCells(1)
    ).l2
    law = math.sqrt(2000) / 2000 * math.sqrt(math.sqrt(2 * math.pi) / (16 * math.pi)) * time**-0.75
    assert found / law == pytest.approx(ratio, abs=0.005)


@pytest.mark.reference
def test_large_times_on_the_line() -> None:
    found = sensitivity(
        heat_line(sources=2000, sensors=2000, diffusion_time=50), SwappedCells(1)
    ).l2
    assert found / (math.sqrt(2000) / 2000 * (48 * math.pi) ** -0.5 * 50**-1.5) == pytest.approx(
        0.996, abs=0.002
    )


# large


@pytest.mark.reference
def test_a_line_of_a_million_cells() -> None:
    operator = heat_line(sources=10**6, sensors=20, diffusion_time=0.05)
    found = slope(operator)
    # The derivative of the columns bounds every difference quotient.
    x = np.linspace(0, 1, 20_001)[:, np.newaxis] - operator.sensors.positions[:, 0]
    derivative = np.linalg.norm(x / 0.1 * operator.kernel(x), axis=1).max()
    assert derivative <= found.l2 <= derivative * (1 + 2e-6)


def lattice(side: int) -> Graph:
    node = np.arange(side * side).reshape(side, side)
    across, up = (node[:, :-1], node[:, 1:]), (node[:-1], node[1:])
    return Graph(np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in (across, up)]))


@pytest.mark.reference
def test_bounds_close_on_large_graphs(rng: np.random.Generator) -> None:
    for graph, rate in ((lattice(120), 0.5), (random_graph(rng, 20_000), 0.3)):
        operator = graph_diffusion(graph, rate)
        found = slope(operator)
        assert found.worst is not None
        columns = operator.columns(list(found.worst))
        assert found.exact
        assert np.linalg.norm(columns[:, 0] - columns[:, 1]) == pytest.approx(found.l2, rel=3e-9)
        assert found.l2 >= np.linalg.norm(columns[:, 0] - columns[:, 1]) * (1 - 1e-13)
        assert (found.per_sensor >= found.l2 * (1 - 1e-15)).all()


@pytest.mark.reference
@pytest.mark.parametrize("rate", [0.05, 0.7, 4.0])
def test_bounds_hold_against_all_rows(rate: float, rng: np.random.Generator) -> None:
    graph = random_graph(rng, 400)
    graph = Graph(graph.edges, rng.choice([1.0, 2.5], len(graph.edges)))
    weights = 0.1 + rng.random(len(graph.edges))
    for nodes in (None, rng.permutation(400), rng.integers(0, 400, 300)):
        operator = graph_diffusion(graph, rate, weights=weights, sensors=nodes)
        exact, bound = by_rows(operator, graph.lengths), by_bounds(operator, graph.lengths)
        truth = exact.l2 - 40 * diffusion_error(
            operator
        )  # sqrt(2 * 400) times the error that was added
        assert bound.l2 >= truth
        assert (bound.per_sensor >= exact.per_sensor - 40 * diffusion_error(operator)).all()
        if nodes is None or len(nodes) == 400:
            assert bound.exact
            assert bound.l2 == pytest.approx(exact.l2, rel=3e-9)
            assert bound.worst == exact.worst
        else:
            assert not bound.exact  # some nodes have no sensor, some have several


@pytest.mark.unit
def test_bounds_that_do_not_meet_are_not_called_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.sensing.model import graph_sensitivity

    monkeypatch.setattr(graph_sensitivity, "BOUNDS", 0)
    graph = lattice(8)
    operator = graph_diffusion(graph, 0.8)
    bound: Largest = by_bounds(operator, graph.lengths)
    assert not bound.exact
    assert by_rows(operator, graph.lengths).l2 * 1.001 < bound.l2 < math.sqrt(2)


@pytest.mark.unit
def test_a_linear_operator_is_its_matrix(rng: np.random.Generator) -> None:
    matrix = rng.normal(size=(3, 30))
    right: Any = LinearOperator(
        (3, 30), matvec=lambda f: matrix @ f, rmatvec=lambda z: matrix.T @ z, dtype=np.float64
    )
    wrong: Any = LinearOperator(
        (3, 30), matvec=lambda f: matrix @ f, rmatvec=lambda z: 0.5 * matrix.T @ z, dtype=np.float64
    )
    assert slope(linear(right, Line(30))).l2 == pytest.approx(
        slope(linear(matrix, Line(30))).l2, rel=1e-12
    )
    # Its adjoint is another map's: it is not asked.
    assert slope(linear(wrong, Line(30))).l2 == slope(linear(right, Line(30))).l2
    tall: Any = LinearOperator(
        (30, 3), matvec=lambda f: matrix.T @ f, dtype=np.float64
    )  # and no adjoint
    assert slope(linear(tall, Line(3))).l2 == pytest.approx(
        slope(linear(matrix.T, Line(3))).l2, rel=1e-12
    )


# the loss of one sensor


@pytest.mark.reference
@pytest.mark.parametrize(("sigma", "delta"), [(0.5, 0.1), (2.0, 1e-6), (0.01, 1e-3), (30.0, 1e-9)])
def test_the_loss_of_one_sensor_is_the_least(sigma: float, delta: float) -> None:
    found = slope(heat_line(sources=30, sensors=6, diffusion_time=0.05))
    losses = per_sensor_loss(found, sigma, delta)
    assert losses.shape == (6,)
    for moved, epsilon in zip(found.per_sensor.tolist(), losses.tolist(), strict=True):
        said: dict[str, Any] = {"sigma": sigma, "sensitivity": Fraction(moved)}
        assert gaussian_delta(Fraction(epsilon), **said) <= Fraction(str(delta))
        assert epsilon == 0 or gaussian_delta(Fraction(epsilon * (1 - 1e-7)), **said) > Fraction(
            str(delta)
        )
    order = np.argsort(found.per_sensor)
    assert (np.diff(losses[order]) >= 0).all()


@pytest.mark.unit
def test_a_reading_that_never_moves_loses_nothing() -> None:
    found = slope(linear([[1, 1], [1, 3], [0, 1e-9]], Line(2)))
    losses = per_sensor_loss(found, 1, 1e-5)
    assert losses[0] == 0
    assert losses[1] > 1
    assert losses[2] == 0  # a delta of 1e-5 covers a change of 2e-9
    assert per_sensor_loss(found, 1, 1e-12)[2] > 0
    joint = Sensitivity(found.l2, np.array([found.l2]), True, found.worst, found.neighbors)
    assert per_sensor_loss(joint, 1, 1e-5)[0] >= losses.max()
    with pytest.raises(InvalidParameter, match="needs delta above 0, got 0; no loss was computed"):
        per_sensor_loss(found, 1, 0)
    with pytest.raises(InvalidParameter, match="sigma must be above 0"):
        per_sensor_loss(found, 0, 0.1)


@pytest.mark.unit
def test_the_answer_covers_its_shortest_decimal(rng: np.random.Generator) -> None:
    # `privacy` reads a float as its shortest decimal: it must not fall below what was proven.
    values = [float(value) for value in rng.random(2000) * 10.0 ** rng.integers(-5, 6, 2000)]
    below = sum(Fraction(repr(value)) < Fraction(value) for value in values)
    assert below > 500  # where a rounding to the double alone would not do
    for value in values:
        for factor in (Fraction(1), Fraction(1, 3)):
            assert Fraction(repr(_up(value, factor))) >= Fraction(value) * factor
