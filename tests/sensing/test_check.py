from __future__ import annotations

import ast
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from tests.sensing.problems import attempt, problem, problems
from tests.sensing.referees import clarabel_solution, hull_distance

from sfumato import sensing
from sfumato._types import FloatArray
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.certificate import Recovery, Status
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.recovery.solver import certify, long_diffusion
from sfumato.sensing.recovery.solver.exchange import Problem
from sfumato.sensing.recovery.verify import LONG, _diffused, _length, _some, check, tolerance
from sfumato.sensing.recovery.verify import _value as dual_value
from sfumato.spaces import Graph, Grid, Line


def said(
    operator: Operator,
    y: list[float] | FloatArray,
    *,
    radius: float,
    max_mass: float = 1.0,
    status: Status = "optimal",
    estimate: list[float] | FloatArray | None = None,
    dual: list[float] | FloatArray,
    gap: float = 0.0,
) -> Recovery:
    f = np.zeros(operator.shape[1]) if estimate is None else np.asarray(estimate, dtype=float)
    objective = math.inf if status == "infeasible" else math.fsum(f)
    gap = math.inf if status == "infeasible" else gap
    return Recovery(
        operator, np.asarray(y, float), radius, max_mass, status, f, objective, gap, np.array(dual)
    )


# By hand, M = 1 in two cells: min f1 + f2 with |f - y| <= 1 takes off 1 / sqrt 2 from each; z = (1,
# 1).
PAIR = linear(np.eye(2), Line(2))
ROOT = math.sqrt(0.5)
RIGHT = said(PAIR, [3, 4], radius=1, max_mass=5, estimate=[3 - ROOT, 4 - ROOT], dual=[1.0, 1.0])
# With upper 1 the second cell is full: f = (0.6, 1) is 1 away from (1.2, 1.8); z = (1, 4/3).
FULL = said(PAIR, [1.2, 1.8], radius=1, max_mass=1, estimate=[0.6, 1.0], dual=[1.0, 4 / 3])
# The box ends at (1, 1), which is 5 from (4, 5); along the ray (3, 4) / 5 nothing in the box is
# nearer.
RAY = said(PAIR, [4, 5], radius=4.9, max_mass=1, status="infeasible", dual=[0.6, 0.8])
ZERO = said(PAIR, [3, 4], radius=5, max_mass=1, status="zero", dual=[0.0, 0.0])


@pytest.mark.unit
@pytest.mark.parametrize("recovery", [RIGHT, FULL], ids=["inside", "at the box"])
def test_a_right_estimate_holds(recovery: Recovery) -> None:
    found = check(recovery)
    assert found.holds
    assert found.objective == recovery.objective
    assert found.residual == pytest.approx(1.0, abs=1e-15)
    # The estimate and the dual vector are rounded, each by 1e-15 at most; nothing else is.
    assert found.bound == pytest.approx(recovery.objective, abs=1e-14)
    assert abs(found.gap) <= 1e-14
    assert found.why.startswith("no feasible sources have a total below")


@pytest.mark.unit
def test_a_ray_holds_and_its_value_is_by_hand() -> None:
    found = check(RAY)
    assert found.holds
    assert found.bound == pytest.approx(2.4 + 4.0 - 4.9 - 1.4, abs=1e-14)
    assert found.objective == found.gap == math.inf
    assert check(replace(RAY, dual=1e-200 * RAY.dual)).holds
    assert check(replace(RAY, dual=1e200 * RAY.dual)).holds


@pytest.mark.unit
def test_no_sources_hold_where_the_readings_are_within_the_radius() -> None:
    assert check(ZERO).holds
    assert check(ZERO).residual == 5.0
    assert not check(replace(ZERO, radius=4.9999999999)).holds
    assert not check(replace(ZERO, estimate=np.array([0.0, 1e-9]))).holds


@pytest.mark.unit
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (
            replace(RIGHT, estimate=RIGHT.estimate + np.array([-0.01, 0.01])),
            "from the readings, more than the radius",
        ),
        (replace(RIGHT, estimate=RIGHT.estimate - 1e-8), "from the readings, more than the radius"),
        (replace(RIGHT, max_mass=3.0), "leaves the box"),
        (replace(RIGHT, estimate=np.array([-1e-12, 4.0])), "leaves the box"),
        (replace(FULL, estimate=np.array([0.6, 1.0 + 1e-15])), "leaves the box"),
        (replace(RIGHT, objective=RIGHT.objective - 1e-9), "the estimate's total is"),
        (replace(RIGHT, objective=math.nan), "the estimate's total is"),
        (replace(RIGHT, gap=-1.0), "the gap is said to be -1"),
        (replace(RIGHT, gap=math.nan), "the gap is said to be nan"),
        (replace(RIGHT, gap=-1e-30), "the gap is said to be"),
        (
            replace(RIGHT, dual=(1 - 5e-10) * RIGHT.dual),
            "the gap is said to be 0, the dual vector proves",
        ),
        (replace(ZERO, objective=7.0), "the total 0 and the gap 0, not 7 and 0"),
        (replace(ZERO, gap=3.0), "the total 0 and the gap 0, not 0 and 3"),
        (replace(ZERO, gap=math.nan), "the total 0 and the gap 0"),
        (replace(RAY, objective=0.0), "total and gap are inf"),
        (replace(RAY, gap=0.0), "total and gap are inf"),
        (replace(RIGHT, dual=np.array([1.0, 1.0 + 1e-8])), "proves no total below"),
        (replace(RIGHT, dual=np.array([0.5, 0.5])), "proves no total below"),
        (replace(RIGHT, dual=np.array([0.0, 0.0])), "proves no total below"),
        (replace(FULL, dual=np.array([1.0, 1.0])), "proves no total below"),
        (replace(RAY, dual=np.array([1.0, 0.0])), "proves nothing"),
        (replace(RAY, dual=np.array([0.0, 0.0])), "proves nothing"),
        (replace(RAY, dual=-RAY.dual), "proves nothing"),
        (replace(RAY, radius=5.0), "proves nothing"),
        (replace(RAY, estimate=np.array([1.0, 1.0])), "not zero everywhere"),
        (replace(RIGHT, status="infeasible", estimate=np.zeros(2)), "proves nothing"),
        (replace(RIGHT, status="zero"), "not zero everywhere"),
        (replace(RIGHT, status="zero", estimate=np.zeros(2)), "from nothing, more than the radius"),
        (replace(RAY, status="optimal", objective=0.0), "from the readings, more than the radius"),
        (replace(RIGHT, status="solved"), "status must be"),  # type: ignore[arg-type]
        (replace(RIGHT, radius=math.nan), "radius must be finite"),
        (replace(RIGHT, radius=-1.0), "radius must be finite and not negative"),
        (replace(RIGHT, max_mass=math.inf), "upper must be positive and finite"),
        (replace(RIGHT, max_mass=0.0), "upper must be positive"),
    ],
)
def test_a_wrong_claim_is_refused(wrong: Recovery, why: str) -> None:
    found = check(wrong)
    assert not found.holds
    assert why in found.why


@pytest.mark.unit
@pytest.mark.parametrize("part", ["readings", "estimate", "dual"])
@pytest.mark.parametrize("recovery", [RIGHT, FULL, RAY, ZERO], ids=lambda r: r.status)
def test_what_is_not_a_number_or_has_the_wrong_length_is_refused(
    recovery: Recovery, part: str
) -> None:
    for value in (math.nan, math.inf):
        found = check(replace(recovery, **{part: np.array([1.0, value])}))  # type: ignore[arg-type]
        assert not found.holds
        assert found.why == f"{part} must be finite, got a number that is not"
    found = check(replace(recovery, **{part: np.zeros(3)}))  # type: ignore[arg-type]
    assert not found.holds
    assert found.why == f"{part} must be 2 numbers, got shape (3,)"


@pytest.mark.unit
def test_the_slack_of_the_radius_buys_no_total() -> None:
    # M = 1e-6: to overstep the radius by 5e-10 of it lowers the total 1 by 5e-4.
    flat = linear([[1e-6]], Line(1))
    right = said(flat, [1 + 1e-6], radius=1, max_mass=5, estimate=[1.0], dual=[1e6], gap=1e-10)
    assert check(right).holds
    low = replace(right, estimate=np.array([1 - 5e-4]), objective=1 - 5e-4)
    assert check(low).residual <= 1 + 1e-9
    assert "not feasible enough" in check(low).why
    assert not check(low).holds


@pytest.mark.unit
@pytest.mark.parametrize("unit", [1e-200, 1e-10, 1.0, 1e10, 1e200])
def test_units_change_nothing(unit: float) -> None:
    # y, f, radius and upper in other units; the dual vector has none of them.
    right = replace(
        RIGHT,
        readings=unit * RIGHT.readings,
        radius=unit * RIGHT.radius,
        max_mass=unit * RIGHT.max_mass,
        estimate=unit * RIGHT.estimate,
        objective=math.fsum(unit * RIGHT.estimate),
    )
    assert check(right).holds, check(right).why
    assert not check(replace(right, dual=np.zeros(2))).holds
    assert not check(replace(right, dual=0.99999 * right.dual, gap=unit)).holds
    assert not check(replace(right, objective=right.objective * (1 + 1e-9))).holds


@pytest.mark.unit
def test_a_radius_that_swallows_the_readings_is_told_by_their_rounding() -> None:
    # y = 1, radius 1 - 1e-9: the total is 1e-9, and 1e-12 of the readings is a thousandth of it.
    one = linear([[1.0]], Line(1))
    f = 1 - (1 - 1e-9)
    near = said(one, [1.0], radius=1 - 1e-9, estimate=[f], dual=[1.0])
    assert check(near).holds, check(near).why
    assert check(replace(near, dual=np.array([0.9995]), gap=1e-12)).holds
    assert not check(replace(near, dual=np.array([0.99]), gap=1e-9)).holds
    assert not check(replace(near, dual=np.array([0.0]), gap=1e-9)).holds


@pytest.mark.unit
def test_a_box_far_wider_than_sources_are_high_costs_no_proof() -> None:
    # z lifts both cells above 1 by 1e-13: sources of a total up to 5.6 gain at most 5.6e-13 from
    # that.
    wide = replace(RIGHT, max_mass=1e12, dual=(1 + 1e-13) * RIGHT.dual)
    found = check(wide)
    assert found.holds, found.why
    # But what is gained counts: by hand 7 - sqrt 2, times 1 + 1e-6, less as much for the total
    # times 1e-6.
    lifted = check(replace(wide, dual=(1 + 1e-6) * RIGHT.dual))
    assert lifted.bound == pytest.approx(7 - math.sqrt(2), abs=1e-14)
    tilted = check(replace(wide, dual=RIGHT.dual + np.array([0.0, 1e-6])))
    assert not tilted.holds
    assert tilted.objective - tilted.bound == pytest.approx(
        wide.objective * 1e-6 - 4e-6 + math.sqrt(0.5) * 1e-6, rel=1e-5
    )


@pytest.mark.unit
def test_large_problems_may_have_a_larger_gap() -> None:
    assert tolerance(100_000) == 1e-9
    assert tolerance(100_001) == 1e-7


def exact_value(recovery: Recovery, matrix: FloatArray, cost: int) -> mpmath.mpf:
    """The value of a dual vector with no rounding but that of one square root to 60 digits."""
    z = [Fraction(value) for value in recovery.dual.tolist()]
    y = [Fraction(value) for value in recovery.readings.tolist()]
    rows = [[Fraction(value) for value in row] for row in matrix.tolist()]
    eta = [
        sum((a * row[j] for a, row in zip(z, rows, strict=True)), Fraction(0))
        for j in range(matrix.shape[1])
    ]
    linear_part = sum((a * b for a, b in zip(y, z, strict=True)), Fraction(0)) - Fraction(
        recovery.max_mass
    ) * sum((max(value - cost, Fraction(0)) for value in eta), Fraction(0))
    squares = sum((value * value for value in z), Fraction(0))
    with mpmath.workdps(60):
        length = mpmath.sqrt(mpmath.mpf(squares.numerator) / squares.denominator)
        part = mpmath.mpf(linear_part.numerator) / linear_part.denominator
        return part - mpmath.mpf(recovery.radius) * length


@pytest.mark.property
@pytest.mark.parametrize("cost", [0, 1])
def test_the_bound_is_below_the_exact_value_however_much_cancels(
    rng: np.random.Generator, cost: int
) -> None:
    loosest = 0.0
    for _ in range(60):
        m, n = rng.integers(1, 12, size=2)
        if rng.random() < 0.5:
            operator: Operator = heat_line(
                sources=int(n), sensors=int(m), diffusion_time=10 ** rng.uniform(-3, 0)
            )
        else:
            operator = linear(rng.standard_normal((m, n)), Line(int(n)))
        matrix = operator.columns(np.arange(n))
        z = rng.standard_normal(m) * 10 ** rng.uniform(-3, 12)
        y = matrix @ rng.random(n) + 1e-9 * rng.standard_normal(m)
        unit = z / np.linalg.norm(z)
        # A radius at which the value of this very vector is about 0: what remains is rounding.
        radius = max(0.0, float(y @ unit - np.maximum(matrix.T @ unit, 0).sum()))
        recovery = said(operator, y, radius=radius, dual=z)
        exact = exact_value(recovery, matrix, cost)
        found = dual_value(recovery, cost=float(cost), most=math.inf)[0]
        assert found <= exact
        sizes = np.abs(y) @ np.abs(z) + (np.abs(z) @ np.abs(matrix)).sum() + n
        loosest = max(loosest, float((exact - found) / sizes))
    # 4 (m + 4) and 2 (m + n + 2) roundings of a long double, and one of a double on the difference.
    assert loosest <= 120 * np.finfo(np.longdouble).eps + np.finfo(float).eps


@pytest.mark.property
def test_cells_a_rounding_above_their_cost_are_counted(rng: np.random.Generator) -> None:
    # A thousand cells whose value is 1 to a few roundings: the excess is that of rounding, a
    # thousand times.
    for _ in range(5):
        column = rng.standard_normal((3, 1))
        matrix = np.repeat(column, 1000, axis=1)
        z = rng.standard_normal(3)
        z *= (1 + 4e-16) / float(z @ column[:, 0])
        recovery = said(linear(matrix, Line(1000)), column[:, 0], radius=0.0, max_mass=1e9, dual=z)
        assert dual_value(recovery, cost=1.0, most=math.inf)[0] <= exact_value(recovery, matrix, 1)


@pytest.mark.unit
def test_a_ray_of_rounding_errors_proves_nothing(rng: np.random.Generator) -> None:
    # The readings are those of full cells, up to rounding, and the radius is what rounding leaves:
    # feasible.
    line = heat_line(sources=50, sensors=20, diffusion_time=0.01)
    matrix = line.columns(np.arange(50))
    y = matrix @ np.ones(50)
    radius = float(np.linalg.norm(matrix.astype(LONG).sum(axis=1) - y)) * (1 + 1e-9)
    for _ in range(50):
        z = np.abs(rng.standard_normal(20))
        assert not check(said(line, y, radius=radius, status="infeasible", dual=z)).holds


# nothing shared with the solver


def imported(module: str) -> set[str]:
    """The modules of the room that a module of it imports, and those that they import."""
    room = Path(sensing.__file__).parent
    found, todo = set[str](), [module]
    while todo:
        source = room / f"{todo.pop().replace('.', '/')}.py"
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "sfumato.sensing"
            ):
                part = (node.module or "").removeprefix("sfumato.sensing.")
                # Through a folder's door nobody sees who comes in.
                assert (room / f"{part.replace('.', '/')}.py").exists(), node.module
                todo += [part] if part not in found else []
                found.add(part)
            elif isinstance(node, ast.Import):
                assert not any(one.name.startswith("sfumato.sensing") for one in node.names)
    return found


@pytest.mark.unit
def test_the_check_imports_nothing_of_the_solver() -> None:
    parts = imported("recovery.verify")
    assert {name for name in parts if not name.startswith("model.")} == {"recovery.certificate"}
    # The walk sees what is there.
    solver = imported("recovery.estimators.least_mass")
    assert any(name.startswith("recovery.solver.") for name in solver)


@pytest.mark.reference
def test_the_check_catches_a_wrong_length(rng: np.random.Generator) -> None:
    # Readings a little outside the radius: whoever measures them too short says that they are
    # nothing.
    line = heat_line(sources=20, sensors=6, diffusion_time=0.02)
    y = line.readings(np.eye(20)[7])
    found = check(recover(line, y, radius=0.95 * float(np.linalg.norm(y))))
    assert found.holds, f"the check caught the solver: {found.why}"


@pytest.mark.reference
def test_the_check_catches_a_cell_left_out(rng: np.random.Generator) -> None:
    # A dual vector that lifts the last cell above its cost: whoever leaves it out is promised too
    # much.
    operator = linear(np.abs(rng.standard_normal((6, 9))) * np.linspace(0.1, 1, 9), Line(9))
    y = operator.readings(np.eye(9)[8])
    z = 1.5 * y / float(y @ y)
    assert operator.adjoint(z)[8] == pytest.approx(1.5)
    made = said(operator, y, radius=0.1, max_mass=10.0, estimate=np.eye(9)[8], dual=z)
    value = dual_value(made, cost=1.0, most=made.objective)[0]
    claimed, _ = certify._weigh(Problem(operator, y, 0.1, 10.0), z, made.objective)
    assert claimed <= value + 1e-9, "the check caught the solver: its bound leaves out a cell"
    assert claimed == pytest.approx(value, rel=1e-9)


@pytest.mark.reference
def test_the_check_and_the_solver_diffuse_alike(rng: np.random.Generator) -> None:
    graph = Graph([(i, (i + 1) % 30) for i in range(30)] + [(0, i) for i in range(4, 28, 3)])
    for rate in (0.01, 0.7, 20.0, 1000.0):
        operator = graph_diffusion(graph, rate, weights=0.1 + rng.random(len(graph.edges)))
        masses = rng.standard_normal(30).astype(LONG)
        (one, off), (other, more) = (
            diffuse(operator.diffusion, masses)
            for diffuse in (_diffused, long_diffusion.diffuse_long)
        )
        assert _length(one - other) <= off + more, (
            "the check caught the solver: it diffuses another graph"
        )


@pytest.mark.unit
def test_lengths_and_parts_of_the_check_by_hand() -> None:
    for unit in (1e-300, 1e-160, 1.0, 1e160, 1e300):
        assert float(_length(unit * np.array([3.0, 4.0])) / LONG(unit)) == pytest.approx(
            5, rel=1e-15
        )
    assert _length(np.zeros(3)) == 0
    cells = np.array([4, 7, 9, 100])
    wide = linear(np.ones((2, 101)), Line(101))
    assert np.concatenate(list(_some(wide, cells))).tolist() == cells.tolist()
    assert list(_some(wide, cells[:0])) == []


@pytest.mark.reference
@pytest.mark.parametrize(
    "diffuse", [_diffused, long_diffusion.diffuse_long], ids=["check", "solver"]
)
def test_graph_diffusion_in_long_arithmetic_is_within_its_bound(
    diffuse: Any, rng: np.random.Generator
) -> None:
    # A star with a tail and uneven weights; the truth by mpmath in 40 digits.
    graph = Graph([(0, 1), (0, 2), (0, 3), (3, 4), (4, 5)])
    weights = np.array([0.5, 2.0, 1.0, 3.0, 0.25])
    for rate in (1e-20, 1e-9, 1e-3, 0.3, 4.0, 60.0):
        operator = graph_diffusion(graph, rate, weights=weights)
        masses = rng.standard_normal(6)
        found, error = diffuse(operator.diffusion, masses.astype(LONG))
        with mpmath.workdps(40):
            power = mpmath.expm(
                -mpmath.mpf(rate) * mpmath.matrix(operator.laplacian.toarray().tolist())
            )
            truth = power * mpmath.matrix(masses.tolist())
            # A long double is the sum of two doubles, to the bit.
            parts = [(float(value), float(value - LONG(float(value)))) for value in found]
            off = mpmath.norm(
                mpmath.matrix([mpmath.mpf(a) + mpmath.mpf(b) for a, b in parts]) - truth
            )
        assert off <= error
        assert error <= 1e-11


@pytest.mark.reference
def test_every_operator_is_checked_alike(rng: np.random.Generator) -> None:
    # The same certificate on the operator and on its matrix: only the order of the sums differs.
    graph = Graph([(i, i + 1) for i in range(30)] + [(0, 15), (7, 22)])
    operators: list[Operator] = [
        heat_line(sources=300, sensors=12, diffusion_time=0.01),
        heat_plane(sources=Grid(4), sensors=rng.random((9, 2)), diffusion_time=0.02),
        graph_diffusion(graph, 0.7),
        graph_diffusion(graph, 0.7, sensors=[3, 20, 9, 9]),
        linear(aslinearoperator(rng.standard_normal((7, 40))), Line(40)),
    ]
    for operator in operators:
        m, n = operator.shape
        plain = linear(operator.columns(np.arange(n)), Line(n))
        z, y, f = rng.standard_normal(m), rng.standard_normal(m), rng.random(n)
        for status in ("optimal", "infeasible"):
            one = said(operator, y, radius=0.1, status=status, dual=z, estimate=f)
            first, second = check(one), check(replace(one, operator=plain))
            assert first.residual == pytest.approx(second.residual, rel=1e-12)
            assert first.bound == pytest.approx(second.bound, rel=1e-12)
            assert first.holds is second.holds is False


@pytest.mark.reference
def test_certificates_of_clarabel_hold_where_it_is_accurate(rng: np.random.Generator) -> None:
    for _ in range(10):
        m, n = 8, 20
        matrix = rng.standard_normal((m, n))
        truth = np.where(rng.random(n) < 0.2, rng.random(n), 0.0)
        y = matrix @ truth + 0.1 * rng.standard_normal(m)
        radius = 0.4 * float(np.linalg.norm(y))
        other = clarabel_solution(matrix, y, radius=radius, max_mass=1.0, accuracy=1e-9)
        assert other.status == "optimal"
        f = np.clip(other.estimate, 0, 1)
        given = said(
            linear(matrix, Line(n)), y, radius=radius, estimate=f, dual=other.dual, gap=1e-9
        )
        found = check(given)
        assert found.holds, found.why
        assert found.bound == pytest.approx(other.objective, abs=1e-9)


@pytest.mark.reference
def test_rays_of_clarabel_prove_and_feasible_problems_have_none(rng: np.random.Generator) -> None:
    for _ in range(10):
        matrix = rng.standard_normal((12, 5))
        y = 3 * rng.standard_normal(12)
        operator = linear(matrix, Line(5))
        low, high = hull_distance(matrix, y, 1.0)
        assert 0 < low <= high <= low * (1 + 1e-6)
        other = clarabel_solution(matrix, y, radius=0.99 * low, max_mass=1.0)
        assert other.status == "infeasible"
        assert check(
            said(operator, y, radius=0.99 * low, status="infeasible", dual=other.dual)
        ).holds
        assert not check(said(operator, y, radius=high, status="infeasible", dual=other.dual)).holds


@pytest.mark.reference
def test_recoveries_prove_themselves_on_random_problems(rng: np.random.Generator) -> None:
    found = [attempt(given) for given in problems(rng, 200)]
    wrong = [
        f"seed {one.problem.seed}: {one.problem.label}: {one.why}"
        for one in found
        if one.verdict == "wrong"
    ]
    assert not wrong, "\n".join(wrong)
    raised = [
        f"seed {one.problem.seed}: {one.problem.label}: {one.why}"
        for one in found
        if one.verdict == "raised"
    ]
    assert len(raised) <= 0.005 * len(found), "\n".join(raised)
    # The generator makes every status; were one missing, the test would say less than it seems to.
    assert {one.recovery.status for one in found if one.recovery} == {
        "optimal",
        "infeasible",
        "zero",
    }


@pytest.mark.reference
def test_clarabel_agrees_on_small_problems(rng: np.random.Generator) -> None:
    compared = 0
    for given in problems(rng, 120):
        if given.operator.shape[1] > 200 or given.wild:
            continue
        ours = attempt(given)
        other = clarabel_solution(
            given.matrix, given.y, radius=given.radius, max_mass=given.max_mass
        )
        if ours.recovery is None or other.status == "unsure":
            continue
        compared += 1
        if other.status == "infeasible":
            assert ours.recovery.status == "infeasible", f"seed {given.seed}: {given.label}"
        else:
            # Off by up to 1e-6 where the matrix is badly conditioned: a second opinion, not a
            # judge.
            assert ours.recovery.objective == pytest.approx(other.objective, rel=1e-5, abs=1e-5), (
                f"seed {given.seed}: {given.label}"
            )
    assert compared >= 30


@pytest.mark.unit
def test_a_problem_is_made_by_its_seed(rng: np.random.Generator) -> None:
    for given in problems(rng, 10):
        again = problem(given.seed)
        assert (again.label, again.radius, again.max_mass, again.status) == (
            given.label,
            given.radius,
            given.max_mass,
            given.status,
        )
        assert np.array_equal(again.y, given.y)
