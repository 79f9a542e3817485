"""A misfit is found where there is one, and as often as stated where there is none."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from tests.chance import assert_share

from sfumato.errors import InvalidParameter
from sfumato.sensing.diagnostics.misfit import box_fit, least_square, misfit
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.planning.synthetic import block_graph, synthetic_sources
from sfumato.sensing.recovery.solver.compress import range_of
from sfumato.spaces import Graph, Grid, Line

SIGMA = 0.066
MODULE = sys.modules["sfumato.sensing.diagnostics.misfit"]  # the function has the same name
HALL = heat_line(sources=100, sensors=50, diffusion_time=0.05)


@pytest.mark.statistical
def test_the_outside_has_its_level_and_the_inside_stays_below_its_own(
    rng: np.random.Generator,
) -> None:
    trials, outside, inside = 600, 0, 0
    for _ in range(trials):
        f = synthetic_sources(HALL.space, int(rng.integers(1, 9)), rng=rng)
        found = misfit(HALL, HALL.readings(f) + SIGMA * rng.standard_normal(50), sigma=SIGMA)
        outside += found.outside < 0.5
        inside += found.inside < 0.5
    assert_share(outside, trials, 0.5, rivals=[0.29, 0.71])
    # Conservative, since sources bend to the noise: 0.26 in another run, not 0.5.
    assert_share(inside, trials, 0.26, rivals=[0.09, 0.5])


@pytest.mark.statistical
def test_wrong_physics_is_seen_and_right_physics_is_not(rng: np.random.Generator) -> None:
    sharp = heat_line(sources=100, sensors=50, diffusion_time=0.0125)
    seen = {"well": 0, "sharp": 0, "unit": 0, "quiet": 0, "dead": 0}
    for _ in range(50):
        f = synthetic_sources(HALL.space, 3, rng=rng)
        noise = SIGMA * rng.standard_normal(50)
        exact = HALL.readings(f)
        dead = np.where(np.arange(50) == 25, 0.0, exact)
        for name, y in (
            ("well", exact + noise),
            ("sharp", sharp.readings(f) + noise),
            ("unit", 2.54 * (exact + noise)),
            ("quiet", exact + noise / 2),
            ("dead", dead + noise),
        ):
            seen[name] += misfit(HALL, y, sigma=SIGMA).message != ""
    # By chance at most 0.001 each: four of 50 in 2e-7 of all runs.
    assert seen["well"] <= 3
    assert min(seen["sharp"], seen["unit"]) == 50
    assert min(seen["quiet"], seen["dead"]) >= 40


@pytest.mark.unit
def test_the_warning_says_where_to_look() -> None:
    sharp = heat_line(sources=100, sensors=50, diffusion_time=0.0125)
    assert "diffusion time" in misfit(HALL, sharp.columns([40])[:, 0], sigma=SIGMA).message
    assert "promise of privacy" in misfit(HALL, HALL.columns([40])[:, 0], sigma=SIGMA).message
    assert "sensors" in misfit(HALL, 10.0 * (np.arange(50) % 2), sigma=SIGMA).message
    fine = misfit(linear(np.eye(2), Line(2)), [0.5, 0.5], sigma=0.1)
    assert (fine.message, fine.degrees, fine.outside, fine.inside) == ("", 0, 1.0, 1.0)


@pytest.mark.unit
def test_by_hand() -> None:
    # One source reads (1, 0): of (3, 4) it explains 1 at most, and leaves 2 inside and 4 outside.
    found = misfit(linear([[1.0], [0.0], [0.0]], Line(1)), [3.0, 4.0, 0.0], sigma=2.0)
    assert found.square == pytest.approx((4 + 16) / 4, abs=1e-3)
    assert found.degrees == 2
    assert found.outside == pytest.approx(2 * np.exp(-2.0))  # chi-square with 2 degrees
    assert found.inside == pytest.approx(0.31731, abs=1e-3)  # beyond one deviation


@pytest.mark.reference
def test_the_least_square_is_that_of_another_solver_and_never_above(
    rng: np.random.Generator,
) -> None:
    graph, _ = block_graph([15, 15], inside=0.4, across=0.05, rng=rng)
    plane = heat_plane(sources=Grid(3), sensors=rng.random((20, 2)), diffusion_time=0.02)
    for operator in (
        HALL,
        plane,
        graph_diffusion(graph, 0.5),
        linear(rng.random((9, 30)), Line(30)),
    ):
        m, n = operator.shape
        found = range_of(operator)
        columns = found.into(operator.columns(np.arange(n)))
        for max_mass in (0.2, 1.0, 50.0):
            y = operator.readings(
                synthetic_sources(operator.space, 3, rng=rng)
            ) + 0.3 * rng.standard_normal(m)
            inner = found.into(y[:, np.newaxis])[0]
            bound = least_square(operator, found, inner, max_mass=max_mass, close=1e-6)
            other = (
                2
                * lsq_linear(
                    columns.T, inner, bounds=(0, max_mass), method="bvls", max_iter=2000
                ).cost
            )
            assert other - 1e-5 <= bound <= other * (1 + 1e-9)  # a proven bound, not 1e-6 short


@pytest.mark.unit
def test_a_chance_that_doubles_cannot_hold_is_not_called_0() -> None:
    graph = Graph([(i, i + 1) for i in range(99)])
    assert misfit(graph_diffusion(graph, 0.5), np.full(100, 50.0), sigma=0.1).message == (
        "the readings do not fit the stated physics (p below 1e-300): look at the rate, the unit, the "
        "largest mass of a source, and single sensors"
    )


@pytest.mark.unit
def test_large_sites_are_tested(rng: np.random.Generator) -> None:
    # Fully searched, the first takes 12 s and the second does not end; benchmarks/estimators.py
    # times them.
    line = heat_line(sources=100_000, sensors=500, diffusion_time=0.05)
    path = graph_diffusion(Graph([(i, i + 1) for i in range(19_999)]), 0.5)
    for operator, count in ((line, 200), (path, 4000)):
        m, n = operator.shape
        y = operator.readings(np.isin(np.arange(n), rng.choice(n, count, replace=False)) * 1.0)
        y += SIGMA * rng.standard_normal(m)
        found = misfit(operator, y, sigma=SIGMA)
        assert (found.message, found.inside > 1e-3) == ("", True)
        # Another unit, and sources so small that all cells together are too few.
        assert "do not fit" in misfit(operator, 40 * y, sigma=SIGMA).message
        assert "do not fit" in misfit(operator, y, sigma=SIGMA, max_mass=1e-7).message


@pytest.mark.reference
def test_a_large_site_warns_where_a_full_search_does(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, _ = block_graph([40, 40], inside=0.2, across=0.02, rng=rng)
    warned = 0
    for operator in (HALL, graph_diffusion(graph, 0.5)):
        m, _ = operator.shape
        for max_mass in (0.02, 0.3, 0.6, 1.0):
            for _ in range(5):
                y = operator.readings(synthetic_sources(operator.space, 3, rng=rng))
                y += SIGMA * rng.standard_normal(m)
                full = misfit(operator, y, sigma=SIGMA, max_mass=max_mass)
                with monkeypatch.context() as small:
                    small.setattr(MODULE, "LARGE", 0)
                    soon = misfit(operator, y, sigma=SIGMA, max_mass=max_mass)
                assert (soon.p_value < 1e-3) == (full.p_value < 1e-3)
                assert soon.square <= full.square + 1e-3
                warned += full.message != ""
    assert 5 <= warned <= 35  # both happen


@pytest.mark.unit
def test_what_was_not_found_out_is_said(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "LARGE", 0)
    monkeypatch.setattr(MODULE, "FEW_ROUNDS", 1)
    y = HALL.readings(synthetic_sources(HALL.space, 3, rng=rng)) + SIGMA * rng.standard_normal(50)
    assert misfit(HALL, y, sigma=SIGMA).message == (
        "whether sources explain the readings was not found out: 100 cells and 50 sensors are too many to "
        "search"
    )


@pytest.mark.reference
def test_masses_in_a_box_are_those_of_another_solver(rng: np.random.Generator) -> None:
    for count in (1, 2, 5, 12):
        columns, wanted = rng.standard_normal((count, 15)), 2 * rng.standard_normal(15)
        ours = box_fit(columns, wanted, max_mass=0.3, start=np.full(count, 0.1))
        theirs = lsq_linear(columns.T, wanted, bounds=(0, 0.3), method="bvls", tol=1e-14).x
        assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("y", "sigma", "max_mass", "message"),
    [
        ([1.0], 1.0, 1.0, "each of 50 sensors"),
        ([np.nan] * 50, 1.0, 1.0, "finite"),
        ([0.0] * 50, 0.0, 1.0, "sigma must be positive"),
        ([0.0] * 50, 1.0, 0.0, "`max_mass` must be positive"),
    ],
)
def test_what_cannot_be_tested_is_refused(
    y: list[float], sigma: float, max_mass: float, message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        misfit(HALL, y, sigma=sigma, max_mass=max_mass)


@pytest.mark.statistical
def test_less_noise_in_some_sensors_is_no_misfit_where_it_was_said(
    rng: np.random.Generator,
) -> None:
    """Half of the sensors have a quarter of the noise: taken for the largest, most draws look too quiet."""
    line = heat_line(sources=100, sensors=100, diffusion_time=0.05)
    sigmas = np.where(np.arange(100) < 50, 0.4, 0.1)
    trials, warned, rival = 100, 0, 0
    for _ in range(trials):
        y = line.columns([int(rng.integers(100))])[:, 0] + sigmas * rng.standard_normal(100)
        warned += bool(misfit(line, y, sigma=0.4, min_sigma=0.1).message)
        rival += bool(misfit(line, y, sigma=0.4).message)
    assert warned == 0
    assert_share(rival, trials, 0.53, rivals=[0.05])
