"""Recovery: answers by hand, answers that prove themselves, and failures that are said."""

from __future__ import annotations

import importlib
import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from tests.sensing.problems import attempt, problem, problems

from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing.build import graph_diffusion, heat_line, heat_plane, linear
from sfumato.sensing.check import check
from sfumato.sensing.operators import HeatLine, Operator
from sfumato.sensing.radius import default_radius, papers_radius
from sfumato.sensing.recover import recover
from sfumato.sensing.recovery import Recovery
from sfumato.sensing.solver import certify, exchange
from sfumato.sensing.solver.price import prices, worth_adding
from sfumato.spaces import Graph, Grid, Line, Points
from sfumato.spaces.space import FloatArray

RECOVER = importlib.import_module("sfumato.sensing.recover")  # the package has a function of that name


def noisy(
    operator: Operator, rng: np.random.Generator, *, sources: int = 4, sigma: float = 0.1, mass: float = 1.0
) -> FloatArray:
    m, n = operator.shape
    masses = np.zeros(n)
    masses[rng.choice(n, sources, replace=False)] = mass
    return operator.readings(masses) + sigma * rng.standard_normal(m)


def assert_proved(found: Recovery, status: str = "optimal") -> None:
    checked = check(found)
    assert found.status == status, found.status
    assert checked.holds, checked.why
    if status == "optimal":
        miss = float(np.linalg.norm(found.operator.readings(found.estimate) - found.readings))
        assert miss <= found.radius * (1 + 1e-10)
        assert found.estimate.min() >= 0
        assert found.estimate.max() <= found.upper


@pytest.mark.unit
@pytest.mark.parametrize(
    ("matrix", "y", "radius", "upper", "total"),
    [
        ([[1.0]], [3.0], 1.0, 5.0, 2.0),  # 3 - 1
        ([[2.0]], [3.0], 1.0, 5.0, 1.0),  # (3 - 1) / 2
        ([[1.0, 1.0]], [3.0], 1.5, 1.0, 1.5),  # one cell full, the other half
        ([[1.0, 2.0]], [3.0], 1.0, 1.0, 1.0),  # the stronger cell alone, at the box
        ([[1.0, -1.0]], [-3.0], 1.0, 5.0, 2.0),  # a column that points the other way
        ([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0], 2.5, 9.0, 7 - 2.5 * math.sqrt(2)),  # along (1, 1)
        ([[1.0], [1.0]], [1.0, 3.0], math.sqrt(2) + 1e-9, 9.0, 2.0),  # hardly feasible: the mean
    ],
)
def test_small_problems_have_the_answers_of_a_pencil(
    matrix: list[list[float]], y: list[float], radius: float, upper: float, total: float
) -> None:
    found = recover(linear(matrix, Line(len(matrix[0]))), y, radius=radius, upper=upper)
    assert_proved(found)
    # The last has its radius 1e-9 wider than the mean needs: f = 2 - sqrt(sqrt(2) 1e-9).
    assert found.objective == pytest.approx(total, abs=1e-4 if len(matrix) > len(matrix[0]) else 1e-12)


@pytest.mark.unit
def test_readings_within_the_radius_are_nothing() -> None:
    found = recover(linear([[1.0, 2.0]], Line(2)), [0.5], radius=0.5)
    assert (found.status, found.objective, found.gap, found.support.size) == ("zero", 0.0, 0.0, 0)


@pytest.mark.unit
def test_readings_out_of_reach_are_infeasible_with_a_ray() -> None:
    found = recover(linear([[1.0, 1.0]], Line(2)), [3.5], radius=1.0)
    assert_proved(found, "infeasible")
    assert found.objective == found.gap == math.inf
    assert not found.estimate.any()
    assert found.readings @ found.dual - found.radius * abs(found.dual[0]) - 2 * found.dual[0] > 0


@pytest.mark.unit
def test_a_radius_of_zero_is_answered_or_refused() -> None:
    two = linear([[1.0], [1.0]], Line(1))
    assert_proved(recover(two, [1.0, 2.0], radius=0.0), "infeasible")
    assert recover(two, [0.0, 0.0], radius=0.0).status == "zero"
    with pytest.raises(SolverFailed, match="no estimate was made"):
        recover(linear([[1.0]], Line(1)), [1.0], radius=0.0)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [1.0, 2.0]}, r"readings must be one number for each of 3 sensors, got shape \(2,\)"),
        ({"y": [1.0, math.nan, 2.0]}, "readings must be finite, got nan from sensor '1'"),
        ({"y": ["a", "b", "c"]}, "readings must be real numbers"),
        ({"radius": -1.0}, "radius must be 0 or more, or 'papers' and finite, got -1"),
        ({"radius": math.nan}, "radius must be 0 or more, or 'papers' and finite, got nan"),
        ({"radius": "mine"}, "got mine"),
        ({"radius": None}, "needs the noise sigma of a reading or a radius, got neither"),
        ({"radius": "papers"}, "needs the noise sigma of a reading or a radius, got neither"),
        ({"sigma": 0.1}, "give sigma or a radius, not both"),
        ({"radius": None, "sigma": -0.1}, "sigma must be 0 or more and finite, got -0.1"),
        ({"upper": 0.0}, "upper must be positive and finite, got 0"),
        ({"upper": math.inf}, "upper must be positive and finite, got inf"),
    ],
)
def test_bad_input_gets_one_sentence(change: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"y": [1.0, 1.0, 1.0], "radius": 0.5} | change
    line = heat_line(sources=10, sensors=3, diffusion_time=0.05)
    with pytest.raises(InvalidParameter, match=message) as caught:
        recover(line, **given)  # type: ignore[arg-type]
    assert str(caught.value).endswith("nothing was recovered") or "real numbers" in message


@pytest.mark.unit
def test_the_radius_is_the_chosen_one(rng: np.random.Generator) -> None:
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    y = noisy(line, rng)
    assert recover(line, y, sigma=0.1).radius == default_radius(line, y, 0.1)
    assert recover(line, y, sigma=0.1, radius="papers").radius == papers_radius(line, 0.1)
    assert papers_radius(line, 0.1) == pytest.approx(0.1 * math.sqrt(50))
    assert recover(line, y, radius=0.9).radius == 0.9


@pytest.mark.reference
def test_random_problems_prove_themselves(rng: np.random.Generator) -> None:
    outcomes = [attempt(given) for given in problems(rng, 100)]
    wrong = [f"{found.problem.label}: {found.why}" for found in outcomes if found.verdict == "wrong"]
    assert not wrong, wrong
    # The promise is 99.5 % of 2,000, kept by benchmarks; if it held with equality, more than 5 of 100 would
    # raise in 2 runs of 1e5.
    assert sum(found.verdict == "raised" for found in outcomes) <= 5


@pytest.mark.reference
@pytest.mark.parametrize(
    "seed",
    [
        2671772455474831,  # a column 1e-4 of the others: rounding is a share of its own length
        5516704674499624,  # infeasible by 18 %, with thousands of cells at the box
        1615626018027953,  # a radius 3e-9 below the readings: nearly nothing is the answer
        7696256629772429,  # 6,000 full cells that cancel to a radius 1e-7 of the readings
        7316200172913377,
        6675687821367570,  # a cell on the border of two pieces was lost
        7785417132765012,  # and one counted twice
        4114668533084874,  # a radius 1e-6 of the readings: overstepped by the rounding of the estimate
    ],
)
def test_problems_that_once_failed(seed: int) -> None:
    found = attempt(problem(seed))
    assert found.verdict == "right", found.why


@pytest.mark.reference
def test_three_sensors_and_full_cells(rng: np.random.Generator) -> None:
    for _ in range(40):
        n = int(rng.integers(5, 60))
        line = heat_line(sources=n, sensors=3, diffusion_time=float(np.exp(rng.uniform(-7, -1))))
        y = noisy(line, rng, sources=int(rng.integers(1, n // 2)), mass=0.5)
        found = recover(line, y, radius=0.1, upper=0.5)
        assert check(found).holds, check(found).why


@pytest.mark.reference
@pytest.mark.parametrize("m", [3, 50])
def test_clarabel_agrees(m: int, rng: np.random.Generator) -> None:
    clarabel = pytest.importorskip("clarabel")
    n = 100
    line = heat_line(sources=n, sensors=m, diffusion_time=0.05)
    y = noisy(line, rng)
    found = recover(line, y, radius=0.1 * math.sqrt(m) + 0.2)
    eye = sparse.eye_array(n)
    rows = sparse.vstack([-eye, eye, sparse.csc_array((1, n)), sparse.csc_array(line.columns(np.arange(n)))])
    right = np.concatenate([np.zeros(n), np.ones(n), [found.radius], y])
    cones = [clarabel.NonnegativeConeT(2 * n), clarabel.SecondOrderConeT(m + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    nothing = sparse.csc_matrix((n, n))
    solver = clarabel.DefaultSolver(nothing, np.ones(n), sparse.csc_matrix(rows), right, cones, settings)
    # Its own tolerance is 1e-8, and its objective is off by up to 1e-6 on badly conditioned problems.
    assert found.objective == pytest.approx(solver.solve().obj_val, abs=3e-6)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("sources", "sensors", "time"),
    [(1000, 50, 0.05), (100_000, 50, 0.05), (100_000, 3, 0.001), (20_000, 200, 5e-4), (5000, 20, 0.5)],
)
def test_long_lines(sources: int, sensors: int, time: float, rng: np.random.Generator) -> None:
    line = heat_line(sources=sources, sensors=sensors, diffusion_time=time)
    assert_proved(recover(line, noisy(line, rng), radius=0.1 * math.sqrt(sensors) + 0.4))


@pytest.mark.reference
def test_a_line_of_a_million_cells(rng: np.random.Generator) -> None:
    line = heat_line(sources=1_000_000, sensors=20, diffusion_time=0.05)
    found = recover(line, noisy(line, rng), sigma=0.1, radius="papers")
    assert found.status in ("optimal", "infeasible")
    assert found.status == "infeasible" or found.gap <= 1e-7 * found.objective
    assert check(found).holds


@pytest.mark.reference
def test_any_places(rng: np.random.Generator) -> None:
    places = np.sort(np.concatenate([rng.random(3000) ** 3 * 40 - 5, [90.0]]))
    line = heat_line(sources=Line.at(places), sensors=rng.normal(5, 9, 60), diffusion_time=0.3)
    assert_proved(recover(line, noisy(line, rng, sigma=0.01), radius=0.1))


@pytest.mark.reference
def test_a_stretch_of_full_cells_is_not_called_infeasible() -> None:
    # The first block is a comb that holds 5 of the 300 full cells: alone it is infeasible.
    line = heat_line(sources=3000, sensors=20, diffusion_time=0.01)
    masses = np.zeros(3000)
    masses[1000:1300] = 0.01
    found = recover(line, line.readings(masses), radius=1e-3, upper=0.01)
    assert_proved(found)
    assert found.support.size > 250


@pytest.mark.reference
@pytest.mark.parametrize("rate", [0.3, 5.0])
@pytest.mark.parametrize("part", [None, 60])
def test_graphs(rate: float, part: int | None, rng: np.random.Generator) -> None:
    n = 900
    tree = [(int(rng.integers(node)), node) for node in range(1, n)]
    more = [(min(a, b), max(a, b)) for a, b in rng.integers(n, size=(n, 2)).tolist() if a != b]
    graph = Graph(sorted(set(tree + more)), nodes=n)
    nodes = None if part is None else rng.permutation(n)[:part]
    diffusion = graph_diffusion(graph, rate, sensors=nodes)
    y = noisy(diffusion, rng, sources=5, sigma=0.003)
    if np.linalg.norm(y) > 0.02:
        assert_proved(recover(diffusion, y, radius=0.0033 * math.sqrt(y.size)))


@pytest.mark.reference
def test_a_smooth_road_map(rng: np.random.Generator) -> None:
    # 30 by 30 crossings at a high rate: columns of neighbors are the same to ten digits.
    side = 30
    ids = np.arange(side * side).reshape(side, side)
    along = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    up = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    roads = graph_diffusion(Graph(np.concatenate([along, up])), 50.0)
    assert_proved(recover(roads, noisy(roads, rng, sigma=0.001), radius=0.035))


@pytest.mark.reference
def test_planes_and_points(rng: np.random.Generator) -> None:
    for space in (Grid(5), Grid(7), Points(rng.random((700, 2)))):
        plane = heat_plane(sources=space, sensors=rng.random((40, 2)), diffusion_time=0.01)
        assert_proved(recover(plane, noisy(plane, rng), radius=0.8))


@pytest.mark.reference
@pytest.mark.parametrize(("m", "n"), [(1, 5), (5, 1), (40, 700), (300, 50), (60, 400)])
def test_matrices_of_any_shape_and_sign(m: int, n: int, rng: np.random.Generator) -> None:
    matrix = rng.standard_normal((m, n))
    y = noisy(linear(matrix, Line(n)), rng, sources=min(4, n))
    totals = []
    for held in (matrix, sparse.csr_array(matrix), aslinearoperator(matrix)):
        found = recover(linear(held, Line(n)), y, radius=0.8 * float(np.linalg.norm(y)))
        assert_proved(found)
        totals.append(found.objective)
    assert isinstance(held, LinearOperator)
    assert totals == pytest.approx([totals[0]] * 3, rel=1e-9)


@pytest.mark.reference
@pytest.mark.parametrize("time", [5e-4, 0.05, 0.5])
def test_no_cell_above_the_level_escapes_the_bounds(time: float, rng: np.random.Generator) -> None:
    anywhere, evenly = Line.at(np.sort(rng.random(8000))), Line(8001)  # evenly: cells on borders of pieces
    for trial in range(20):
        line = heat_line(sources=evenly if trial % 2 else anywhere, sensors=30, diffusion_time=time)
        z = rng.standard_normal(30)
        every = line.adjoint(z)
        for level in (float(every.max()) - 1e-9, float(np.quantile(every, 0.99)), 0.0):
            found = prices(line, z, level)
            assert np.isin(np.flatnonzero(every >= level), found.cells).all()
            assert np.unique(found.cells).size == found.cells.size
            # Sums of 30 terms in another order: each within 30 units of rounding of |z| times a column.
            assert found.values == pytest.approx(
                every[found.cells], abs=1e-13 * np.abs(z).sum() / math.sqrt(time)
            )
            over = math.fsum(np.maximum(found.values - level, 0.0))
            assert over == pytest.approx(math.fsum(np.maximum(every - level, 0.0)), rel=1e-9, abs=1e-9)


@pytest.mark.unit
def test_cells_worth_adding_hold_the_peak(rng: np.random.Generator) -> None:
    line = heat_line(sources=50_000, sensors=30, diffusion_time=0.02)
    z = rng.standard_normal(30)
    every = line.adjoint(z)
    best = int(every.argmax())
    none = np.zeros(0, dtype=np.int64)
    assert best in worth_adding(line, z, float(every.max()) - 1e-6, none)
    assert worth_adding(line, z, float(every.max()) + 1e-6, none).size == 0


@pytest.mark.unit
def test_a_wrong_estimate_is_not_returned(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    y = noisy(line, rng)
    right = certify._polish

    def sloppy(*given: object) -> tuple[FloatArray, FloatArray]:
        values, z = right(*given)  # type: ignore[arg-type]
        return values + 1e-6, z

    monkeypatch.setattr(certify, "_polish", sloppy)
    with pytest.raises(SolverFailed, match="no estimate was made"):
        recover(line, y, radius=1.0)


@pytest.mark.unit
def test_an_exchange_that_stops_early_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    line = heat_line(sources=200_000, sensors=50, diffusion_time=0.05)
    y = noisy(line, rng)
    monkeypatch.setattr(exchange, "worth_adding", lambda *_: np.zeros(0, dtype=np.int64))
    monkeypatch.setattr(RECOVER, "fits", lambda _: False)
    with pytest.raises(SolverFailed, match="relative gap"):
        recover(line, y, radius=1.0)


@pytest.mark.unit
def test_no_ray_is_believed_without_its_proof(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    # Upper so small that the comb of the first block explains nothing, and nobody may add cells.
    line = heat_line(sources=3000, sensors=20, diffusion_time=0.01)
    y = line.readings(np.full(3000, 0.005))
    monkeypatch.setattr(exchange, "worth_adding", lambda *_: np.zeros(0, dtype=np.int64))
    monkeypatch.setattr(exchange, "fits", lambda _: False)
    monkeypatch.setattr(RECOVER, "fits", lambda _: False)
    with pytest.raises(SolverFailed, match="without a proof"):
        recover(line, y, radius=1e-3, upper=0.01)


@pytest.mark.unit
def test_an_operator_is_compressed_once(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    first = recover(line, noisy(line, rng), radius=1.0)
    calls: list[int] = []
    whole = HeatLine.columns

    def counted(self: HeatLine, cells: npt.ArrayLike) -> FloatArray:
        calls.append(np.size(cells))
        return whole(self, cells)

    monkeypatch.setattr(HeatLine, "columns", counted)
    again = recover(line, first.readings, radius=1.0)
    assert again.objective == first.objective
    assert calls.count(100) == 1  # the prices of the proof, and nothing else over all cells
