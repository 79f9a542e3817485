"""Bregman iteration does what theorem 8.4 says, and not what the thesis hopes."""

from __future__ import annotations

import math
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from experiments.sensors.bregman import GAP, BregmanPath, _penalised, bregman
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from tests.sensing.referees import clarabel_solution

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.spaces import Line


def papers_problem(rng: np.random.Generator) -> tuple[Operator, FloatArray, FloatArray, float]:
    """Four sources, T = 0.05, sigma = 0.1, half the papers' cells and sensors, a radius that admits them."""
    operator = heat_line(sources=50, sensors=25, diffusion_time=0.05)
    sources = np.zeros(50)
    sources[rng.choice(50, 4, replace=False)] = 1
    noise = 0.1 * rng.standard_normal(25)
    radius = max(0.1 * math.sqrt(25), 1.01 * float(np.linalg.norm(noise)))
    return operator, operator.readings(sources) + noise, sources, radius


def never_grows(path: BregmanPath, readings: FloatArray) -> None:
    """Theorem 8.4, up to what inexact inner answers can spoil.

    An inner value is at most weight |b|^2 / 2 with |b_k| <= (k + 1) |y|, as f = 0 shows; the share
    GAP of it, once for the step and once for the subgradient before it, over the weight, is what H
    may grow by.
    """
    halves = path.residuals**2 / 2
    for k, (before, after) in enumerate(pairwise(halves), start=1):
        assert after <= before + GAP * ((k + 1) * float(np.linalg.norm(readings))) ** 2


@pytest.mark.unit
def test_one_cell_by_hand() -> None:
    """The answer (2 b - 1) / 4 is 1/4 at b = 1, then 1/2 at b = 3/2, where the residual is 0 and stays."""
    path = bregman(linear([[2.0]], Line(1)), [1.0], weight=1, steps=3)
    assert path.iterates.ravel() == pytest.approx([0.25, 0.5, 0.5])
    assert path.residuals == pytest.approx([0.5, 0, 0])
    assert path.objectives == pytest.approx([0.25, 0.5, 0.5])
    assert path.stopped_at is None
    boxed = bregman(linear([[2.0]], Line(1)), [1.0], weight=1, max_mass=0.4, radius=0.3)
    assert boxed.estimate == pytest.approx([0.4])
    assert boxed.stopped_at == 1


@pytest.mark.reference
@pytest.mark.parametrize("papers_lambda", [0.2, 0.5, 3.0])
def test_the_papers_lambda_is_half_the_weight(papers_lambda: float) -> None:
    """They minimise |f|_1 + lambda |M f - p|^2; by brute force, on a lattice of step 1e-6."""
    lattice = np.linspace(0, 1, 1_000_001)
    values = lattice + papers_lambda * (2 * lattice - 1) ** 2
    found = bregman(linear([[2.0]], Line(1)), [1.0], weight=2 * papers_lambda, steps=1)
    assert found.estimate[0] == pytest.approx(lattice[values.argmin()], abs=2e-6)


@pytest.mark.unit
def test_a_small_weight_begins_at_nothing() -> None:
    path = bregman(linear([[2.0]], Line(1)), [1.0], weight=0.4, steps=4)
    # f = (2 * 0.4 b - 1) / 1.6 is positive from b > 1.25 on: b = 1 gives 0, b = 2 gives 0.375.
    assert path.iterates.ravel()[:2] == pytest.approx([0, 0.375])
    hidden = bregman(linear(np.zeros((2, 3)), Line(3)), [1.0, 2.0], steps=2)
    assert not hidden.iterates.any()


@pytest.mark.property
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 6),
    n=st.integers(1, 10),
    max_mass=st.sampled_from([0.3, 1]),
)
def test_the_residual_never_grows(seed: int, m: int, n: int, max_mass: float) -> None:
    draw = np.random.default_rng(seed)
    operator = linear(draw.normal(size=(m, n)), Line(n))
    readings = draw.normal(size=m)
    path = bregman(operator, readings, max_mass=max_mass, steps=8)
    never_grows(path, readings)
    assert path.iterates.min() >= 0
    assert path.iterates.max() <= max_mass


@pytest.mark.unit
def test_without_adding_back_the_residual_stays() -> None:
    """What makes the residual fall is b: begun at their own answer, penalised answers to y stay there."""
    operator = heat_line(sources=20, sensors=10, diffusion_time=0.05)
    readings = operator.readings(np.eye(20)[7])
    path = bregman(operator, readings, steps=2)
    assert path.residuals[1] < 0.9 * path.residuals[0]
    matrix = operator.columns(np.arange(20))
    curvature = path.weight * float(np.linalg.norm(matrix, 2)) ** 2

    def answer(start: FloatArray) -> FloatArray:
        return _penalised(
            matrix, readings, start, weight=path.weight, max_mass=1.0, curvature=curvature
        )

    first = answer(np.zeros(20))
    assert np.array_equal(first, path.iterates[0])
    assert np.array_equal(answer(first), first)


@pytest.mark.reference
def test_it_approaches_feasible_sources_while_outside_the_radius(rng: np.random.Generator) -> None:
    """Theorem 8.4, second half: D(f0, f_t) = J(f0) - J(f_t) - <p_t, f0 - f_t> falls while outside.

    p_t = weight M' (sum of the residuals so far). A step outside lowers it by weight (H(f_t) -
    H(f0)), here at least 0.01 * 0.01 |noise|^2 = 1e-5; gaps of the inner answers are below 1e-7.
    """
    operator, readings, sources, radius = papers_problem(rng)
    path = bregman(operator, readings, radius=radius, weight=0.01, steps=30)
    matrix = operator.columns(np.arange(50))
    left = readings - path.iterates @ matrix.T
    pulls = path.weight * np.cumsum(left, axis=0) @ matrix
    distances = [
        float(sources.sum() - f.sum() - p @ (sources - f))
        for f, p in zip(path.iterates, pulls, strict=True)
    ]
    outside = distances[: path.stopped_at]
    assert len(outside) >= 3
    assert all(after < before for before, after in pairwise([float(sources.sum()), *outside]))
    assert min(distances) > -1e-6
    never_grows(path, readings)


@pytest.mark.reference
def test_it_leads_to_the_least_squares_fit(rng: np.random.Generator) -> None:
    """Not to the answer of the constrained problem: the residual goes below every feasible radius."""
    operator = heat_line(sources=20, sensors=20, diffusion_time=0.002)
    readings = operator.readings(np.eye(20)[[4, 11]].sum(axis=0)) + 0.5 * rng.standard_normal(20)
    path = bregman(operator, readings, steps=100)
    fit = lsq_linear(operator.columns(np.arange(20)), readings, (0, 1), tol=1e-12)
    halves = path.residuals**2 / 2
    steps = np.arange(1, halves.size + 1)
    # The theorem's rate, with room for the gap of the inner answers as above.
    slack = GAP * (101 * float(np.linalg.norm(readings))) ** 2
    assert (halves - fit.cost <= fit.x.sum() / (path.weight * steps) + slack).all()
    assert (halves >= fit.cost * (1 - 1e-9)).all()
    assert (
        fit.cost > 0.1
    )  # min H = 0, which the thesis assumes, is far off: |noise|^2 / 2 is about 2.5
    assert halves[-1] - fit.cost < 0.01 * fit.cost
    never_grows(path, readings)


@pytest.mark.reference
def test_stopping_at_the_radius_is_not_the_minimiser(rng: np.random.Generator) -> None:
    worse, finer = [], []
    for _ in range(3):
        operator, readings, _, radius = papers_problem(rng)
        matrix = operator.columns(np.arange(50))
        least = clarabel_solution(matrix, readings, radius=radius, max_mass=1.0).objective
        path = bregman(operator, readings, radius=radius)
        slow = bregman(operator, readings, radius=radius, weight=path.weight / 5, steps=100)
        assert path.stopped_at is not None
        assert slow.stopped_at is not None
        assert slow.stopped_at > path.stopped_at
        worse.append(path.objectives[-1] / least - 1)
        finer.append(slow.objectives[-1] / least - 1)
    # Clarabel's objective is right to 1e-6; both answers are feasible, so neither is below the
    # least.
    assert min(*worse, *finer) > -1e-6
    assert 0.003 < np.mean(worse) < 0.05
    assert 0.003 < np.mean(finer) < 0.05


@pytest.mark.unit
def test_an_inner_problem_without_an_answer_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    # By its full name: the room hands out the function of the same name.
    monkeypatch.setattr(import_module("experiments.sensors.bregman"), "INNER_STEPS", 3)
    operator = heat_line(sources=50, sensors=20, diffusion_time=0.05)
    with pytest.raises(SolverFailed, match="no path was returned"):
        bregman(operator, operator.readings(np.eye(50)[20]))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"readings": [1.0]}, "one finite number for each of 5 sensors"),
        ({"readings": [1, 2, 3, 4, math.nan]}, "one finite number for each of 5 sensors"),
        ({"radius": 0.0}, "radius must be positive"),
        ({"max_mass": -1.0}, "max_mass must be positive"),
        ({"weight": math.inf}, "weight must be positive"),
        ({"steps": 0}, "steps must be"),
    ],
)
def test_bad_input_gets_one_sentence(changes: dict[str, object], message: str) -> None:
    operator = heat_line(sources=10, sensors=5, diffusion_time=0.05)
    given: dict[str, object] = {"readings": np.ones(5)} | changes
    with pytest.raises(InvalidParameter, match=message):
        bregman(operator, **given)  # type: ignore[arg-type]


@pytest.mark.unit
def test_bregman_refuses_matrices_it_cannot_form() -> None:
    line = heat_line(sources=1_000_000, sensors=50, diffusion_time=0.05)
    with pytest.raises(
        InvalidParameter, match="forms the whole matrix, at most 33554432 entries, got 50"
    ):
        bregman(line, np.ones(50))
