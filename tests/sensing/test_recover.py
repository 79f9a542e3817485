"""Recovery: answers by hand, answers that prove themselves, and failures that are said."""

from __future__ import annotations

import gc
import importlib
import math
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from tests.sensing.problems import attempt, problem, problems
from tests.sensing.referees import clarabel_solver

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import HeatLine, heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.recovery.radius import default_radius, papers_radius
from sfumato.sensing.recovery.solver import certify, compress, exchange, operator_cache
from sfumato.sensing.recovery.solver.norms import LONG, length
from sfumato.sensing.recovery.solver.price import prices, worth_adding
from sfumato.sensing.recovery.verify import check
from sfumato.spaces import Graph, Grid, Line, Points

RECOVER = importlib.import_module(
    "sfumato.sensing.recovery.estimators.least_mass"
)  # the package has a function of that name


def noisy(
    operator: Operator,
    rng: np.random.Generator,
    *,
    sources: int = 4,
    sigma: float = 0.1,
    mass: float = 1.0,
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
        miss = float(length(found.operator.readings(found.estimate) - found.readings))
        assert miss <= found.radius * (1 + 1e-10)
        assert found.estimate.min() >= 0
        assert found.estimate.max() <= found.max_mass


@pytest.mark.unit
@pytest.mark.parametrize(
    ("matrix", "y", "radius", "max_mass", "total"),
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
    matrix: list[list[float]], y: list[float], radius: float, max_mass: float, total: float
) -> None:
    found = recover(linear(matrix, Line(len(matrix[0]))), y, radius=radius, max_mass=max_mass)
    assert_proved(found)
    # The last has its radius 1e-9 wider than the mean needs: f = 2 - sqrt(sqrt(2) 1e-9).
    assert found.objective == pytest.approx(
        total, abs=1e-4 if len(matrix) > len(matrix[0]) else 1e-12
    )


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
@pytest.mark.parametrize(
    "given", [{"radius": 0.0}, {"sigma": 0.0}, {"sigma": 0.0, "radius": "papers"}]
)
def test_nothing_is_within_zero_of_readings_but_zero(given: dict[str, Any]) -> None:
    two = linear([[1.0], [1.0]], Line(1))
    assert recover(two, [0.0, 0.0], **given).status == "zero"
    for y in ([1.0, 2.0], [1.0, 1.0], [0.0, 1e-300]):
        with pytest.raises(InvalidParameter, match="may be 0 only where all readings are 0"):
            recover(two, y, **given)


@pytest.mark.unit
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-10, 1e10, 1e200, 1e300])
def test_units_change_nothing(unit: float, rng: np.random.Generator) -> None:
    one = linear([[1.0]], Line(1))
    tiny = recover(one, [unit], radius=1e-10 * unit, max_mass=2 * unit)
    assert_proved(tiny)
    assert tiny.objective == pytest.approx(unit * (1 - 1e-10), rel=1e-15)
    assert recover(one, [unit], radius=unit).status == "zero"
    assert_proved(recover(one, [unit], radius=unit / 4, max_mass=unit / 2), "infeasible")
    line = heat_line(sources=100, sensors=20, diffusion_time=0.05)
    y = noisy(line, rng)
    plain, other = recover(line, y, radius=1.0), recover(line, unit * y, radius=unit, max_mass=unit)
    assert other.status == plain.status
    assert check(other).holds, check(other).why
    if plain.status == "optimal":
        # Not to the bit: a unit is no power of two, and the line forgets all but some ten digits.
        assert other.objective / unit == pytest.approx(plain.objective, rel=1e-6)


@pytest.mark.unit
@pytest.mark.parametrize("max_mass", [1e3, 1e6, 1e12, 1e100])
def test_a_huge_box_is_no_harder(max_mass: float, rng: np.random.Generator) -> None:
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    y = noisy(line, rng)
    found = recover(line, y, radius=1.0, max_mass=max_mass)
    assert found.status == "infeasible" or found.estimate.max() < 1e3
    assert check(found).holds, check(found).why
    # The largest chi-square of 50 degrees in 1e10 draws is below 2.5 times the mean.
    wide = recover(line, y, radius=0.1 * math.sqrt(2.5 * 50), max_mass=max_mass)
    assert_proved(wide)


@pytest.mark.reference
@pytest.mark.parametrize("away", [10.0, 12.2, 15.0, 25.0])
def test_sensors_far_outside_the_cells(away: float) -> None:
    width = 0.05
    line = heat_line(
        sources=3000,
        sensors=[1 + away * width, 1 + (away + 0.2) * width],
        diffusion_time=width**2 / 2,
    )
    masses = np.zeros(3000)
    masses[[2500, 2900]] = 0.5
    y = line.readings(masses)
    assert_proved(recover(line, y, radius=1e-3 * float(length(y))))


@pytest.mark.reference
def test_no_cell_escapes_by_sensors_left_out(rng: np.random.Generator) -> None:
    # One sensor within the cells and two far out, with duals as large as a price of 1 takes.
    width = 0.02
    for away in (11.5, 12.5, 14.0, 18.0):
        line = heat_line(
            sources=4000,
            sensors=[0.5, 1 + away * width, 1.2 + away * width],
            diffusion_time=width**2 / 2,
        )
        for share in (1e-14, 1e-6, 1.0, 1e6):
            z = np.array([1e-3, 1.0, 0.0]) * rng.uniform(0.5, 1.5, 3)
            z[1] *= share / float(line.columns([3999])[1, 0])
            every = line.adjoint(z)
            for level in (0.5 * float(every.max()), float(every[3990]), 1.0):
                found = prices(line, z, level)
                assert np.isin(np.flatnonzero(every >= level), found.cells).all()


@pytest.mark.reference
@pytest.mark.parametrize("seed", [2649, 1607])
def test_what_is_returned_holds_on_badly_scaled_matrices(seed: int) -> None:
    # Duals of 1e11: prices are rounded by 1e-5, and cells that look below 1 are above it.
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 600)), int(rng.integers(1, 30))
    if rng.random() < 0.5:
        matrix = rng.standard_normal((m, n)) @ np.diag(10.0 ** rng.uniform(-8, 8, n))
    else:
        matrix = np.diag(10.0 ** rng.uniform(-8, 8, m)) @ rng.random((m, n))
    masses = rng.random(n) * (rng.random(n) < 0.1)
    y = matrix @ masses
    try:
        radius = float(10 ** rng.uniform(-14, -1) * np.linalg.norm(y))
        found = recover(linear(matrix, Line(n)), y, radius=radius)
    except SolverFailed:
        return
    assert check(found).holds, check(found).why


@pytest.mark.unit
def test_all_cells_that_rounding_may_lift_are_priced(rng: np.random.Generator) -> None:
    # Two rows that cancel: |z|'|M| is 1e14, so that doubles tell prices to 1e-2.
    top = rng.random((1, 4000))
    matrix = linear(np.concatenate([top, top + 1e-14 * rng.random((1, 4000))]), Line(4000))
    z = np.array([-1e14, 1e14])
    exact = z.astype(LONG) @ matrix.columns(np.arange(4000)).astype(LONG)
    level = float(np.median(exact))
    assert np.isin(np.flatnonzero(exact >= level), prices(matrix, z, level).cells).all()
    assert (matrix.adjoint(z)[exact >= level] < level - 1e-8).any()  # they do not go without saying


@pytest.mark.unit
def test_nothing_is_kept_on_an_operator(rng: np.random.Generator) -> None:
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    before = set(line.__dict__), pickle.dumps(line)
    recover(line, noisy(line, rng), sigma=0.1)
    assert (set(line.__dict__), pickle.dumps(line)) == before
    key = id(line)
    assert {"range", "first block", "directions"} <= set(operator_cache._CACHE[key][1])
    del line
    gc.collect()
    assert key not in operator_cache._CACHE


@pytest.mark.unit
def test_a_map_may_change_between_recoveries(rng: np.random.Generator) -> None:
    matrix = rng.random((4, 30))
    changing = linear(aslinearoperator(matrix), Line(30))
    for _ in range(3):
        y = noisy(changing, rng, sigma=0.01)
        assert_proved(recover(changing, y, radius=0.2 * float(np.linalg.norm(y))))
        assert default_radius(changing, y, 0.1) == default_radius(
            linear(matrix.copy(), Line(30)), y, 0.1
        )
        matrix[:] = rng.random((4, 30)) * [[1], [1], [1], [0]]


@pytest.mark.unit
def test_points_that_a_sample_does_not_span_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every other point is left out at first, and those lie elsewhere.
    near, far = np.linspace(0, 1, 40), np.linspace(0, 1, 40) + 5
    places = np.stack([np.stack([near, far], axis=1).ravel(), np.zeros(80)], axis=1)
    sensors = np.stack([np.concatenate([near, far]), np.zeros(80)], axis=1)
    plane = heat_plane(sources=Points(places), sensors=sensors, diffusion_time=0.05)
    whole = compress.range_of(plane)
    assert whole.basis is not None
    monkeypatch.setattr(compress, "LARGE", 80 * 40)
    again = heat_plane(sources=Points(places), sensors=sensors, diffusion_time=0.05)
    found = compress.range_of(again)
    assert found.basis is not None
    columns = again.columns(np.arange(80))
    left = columns - found.basis @ (found.basis.T @ columns)
    assert np.linalg.norm(left, axis=0).max() <= 1e-13 * np.linalg.norm(columns, axis=0).max()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [1.0, 2.0]}, r"readings must be one number for each of 3 sensors, got shape \(2,\)"),
        ({"y": [1.0, math.nan, 2.0]}, "readings must be finite, got nan from sensor '1'"),
        ({"y": ["a", "b", "c"]}, "readings must be real numbers"),
        ({"radius": -1.0}, "radius must be positive, or 'papers', and finite, got -1"),
        ({"radius": math.nan}, "radius must be positive, or 'papers', and finite, got nan"),
        ({"radius": "mine"}, "got mine"),
        ({"radius": None}, "needs the noise sigma of a reading or a radius, got neither"),
        ({"radius": "papers"}, "needs the noise sigma of a reading or a radius, got neither"),
        ({"sigma": 0.1}, "give sigma or a radius, not both"),
        ({"radius": None, "sigma": -0.1}, "sigma must be positive and finite, got -0.1"),
        ({"max_mass": 0.0}, "`max_mass` must be positive and finite, got 0"),
        ({"max_mass": math.inf}, "`max_mass` must be positive and finite, got inf"),
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
    wrong = [
        f"{found.problem.label}: {found.why}" for found in outcomes if found.verdict == "wrong"
    ]
    assert not wrong, wrong
    # The promise is 99.5 % of 2,000, kept by benchmarks; if it held with equality, more than 5 of
    # 100 would raise in 2 runs of 1e5.
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
    found = attempt(problem(seed, wild=False))
    assert found.verdict == "right", found.why


@pytest.mark.reference
def test_three_sensors_and_full_cells(rng: np.random.Generator) -> None:
    for _ in range(40):
        n = int(rng.integers(5, 60))
        line = heat_line(sources=n, sensors=3, diffusion_time=float(np.exp(rng.uniform(-7, -1))))
        y = noisy(line, rng, sources=int(rng.integers(1, n // 2)), mass=0.5)
        found = recover(line, y, radius=0.1, max_mass=0.5)
        assert check(found).holds, check(found).why


@pytest.mark.reference
@pytest.mark.parametrize("m", [3, 50])
def test_clarabel_agrees(m: int, rng: np.random.Generator) -> None:
    line = heat_line(sources=100, sensors=m, diffusion_time=0.05)
    y = noisy(line, rng)
    found = recover(line, y, radius=0.1 * math.sqrt(m) + 0.2)
    solver = clarabel_solver(line.columns(np.arange(100)), y, radius=found.radius, max_mass=1.0)
    # Its own tolerance is 1e-8, and its objective is off by up to 1e-6 on badly conditioned
    # problems.
    assert found.objective == pytest.approx(solver.solve().obj_val, abs=3e-6)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("sources", "sensors", "time"),
    [
        (1000, 50, 0.05),
        (100_000, 50, 0.05),
        (100_000, 3, 0.001),
        (20_000, 200, 5e-4),
        (5000, 20, 0.5),
    ],
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
    found = recover(line, line.readings(masses), radius=1e-3, max_mass=0.01)
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
    anywhere, evenly = (
        Line.at(np.sort(rng.random(8000))),
        Line(8001),
    )  # evenly: cells on borders of pieces
    for trial in range(20):
        line = heat_line(sources=evenly if trial % 2 else anywhere, sensors=30, diffusion_time=time)
        z = rng.standard_normal(30)
        every = line.adjoint(z)
        for level in (float(every.max()) - 1e-9, float(np.quantile(every, 0.99)), 0.0):
            found = prices(line, z, level)
            assert np.isin(np.flatnonzero(every >= level), found.cells).all()
            assert np.unique(found.cells).size == found.cells.size
            # Sums of 30 terms in another order: each within 30 units of rounding of |z| times a
            # column.
            assert found.values == pytest.approx(
                every[found.cells], abs=1e-13 * np.abs(z).sum() / math.sqrt(time)
            )
            over = math.fsum(np.maximum(found.values - level, 0.0))
            assert over == pytest.approx(
                math.fsum(np.maximum(every - level, 0.0)), rel=1e-9, abs=1e-9
            )


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
def test_a_wrong_estimate_is_not_returned(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
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
        recover(line, y, radius=1e-3, max_mass=0.01)


@pytest.mark.unit
def test_an_operator_is_compressed_once(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
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


# --- an array in place of an operator


@pytest.mark.unit
def test_an_array_is_an_operator_on_a_line_unless_told() -> None:
    line = heat_line(sources=20, sensors=10, diffusion_time=0.01)
    matrix = line.columns(np.arange(20))
    truth = np.zeros(20)
    truth[7] = 1
    readings = line.readings(truth)
    wanted = recover(linear(matrix, Line(20)), readings, radius=0.1)
    for given in (matrix, matrix.tolist()):
        found = recover(given, readings, radius=0.1)
        assert found.operator.space == Line(20)
        np.testing.assert_array_equal(found.estimate, wanted.estimate)
        assert check(found).holds
    path = Graph([(i, i + 1) for i in range(19)])
    assert recover(matrix, readings, radius=0.1, space=path).operator.space == path


@pytest.mark.unit
def test_an_array_that_is_no_matrix_gets_one_sentence() -> None:
    for given in (3.0, [1.0, 2.0], np.zeros((2, 0)), np.zeros((2, 2, 2))):
        with pytest.raises(
            InvalidParameter, match="a row for each sensor and a column for each cell"
        ):
            recover(given, [1, 2], radius=0.1)
    with pytest.raises(InvalidParameter, match="one column for each of 3 cells"):
        recover(np.eye(2), [1, 2], radius=0.1, space=Line(3))
    with pytest.raises(InvalidParameter, match="an operator has its own space"):
        recover(
            heat_line(sources=2, sensors=2, diffusion_time=1), [1, 2], radius=0.1, space=Line(3)
        )
