"""Sources between cells: exact scenes come back, errors are as large as they say, and R is the rival."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from tests.chance import assert_share

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing import Operator, emd_of, heat_line, heat_plane, linear, off_grid, recover
from sfumato.sensing.model.operators.heat_line import HeatLine
from sfumato.sensing.model.operators.heat_plane import HeatPlane
from sfumato.sensing.recovery import Estimate
from sfumato.sensing.recovery.estimators.heat_scene import Scene, scene_of
from sfumato.sensing.recovery.estimators.off_grid import OffGrid
from sfumato.spaces import Grid, Line, Points

OFF_GRID = importlib.import_module(
    "sfumato.sensing.recovery.estimators.off_grid"
)  # the package has a function of that name


def line(time: float = 0.01) -> HeatLine:
    return heat_line(sources=100, sensors=50, diffusion_time=time)


def plane(space: Grid | Points | None = None, *, time: float = 0.01) -> HeatPlane:
    across = (np.arange(7) + 0.5) / 7
    sensors = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
    return heat_plane(sources=space or Grid(4), sensors=sensors, diffusion_time=time)


def read(operator: Operator, places: FloatArray, masses: FloatArray) -> FloatArray:
    """What sources between cells read, by the definition of heat."""
    apart = operator.sensors.positions[:, np.newaxis] - places
    time = operator.time or 0.0
    heat = np.exp(-(apart**2).sum(axis=2) / (4 * time)) / (4 * math.pi * time) ** (
        places.shape[1] / 2
    )
    return np.asarray(heat @ masses)


def no_proof(*_: object, **__: object) -> None:
    raise SolverFailed("no proof")


def emd_on_line(found: Estimate, truth: FloatArray) -> float:
    """By scipy: to load the solver for any distances takes longer than all else here."""
    at = (np.flatnonzero(truth) + 1) / truth.size
    return float(stats.wasserstein_distance(found.places[:, 0], at, found.masses, truth[truth > 0]))


def misfit(found: OffGrid, y: FloatArray, sigma: float) -> float:
    operator = found.estimate.operator
    assert isinstance(operator, HeatLine | HeatPlane)
    rest = (read(operator, found.estimate.places, found.estimate.masses) - y) / sigma
    return float(rest @ rest)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("operator", "places", "masses"),
    [
        (line(), [[0.3137]], [0.7]),
        (line(), [[0.2071], [0.8049]], [0.4, 0.9]),
        (plane(), [[0.3137, 0.7212]], [0.7]),
        (plane(), [[0.2071, 0.3333], [0.8049, 0.6161]], [0.9, 0.4]),
        (plane(Points([(0, 0), (1, 0), (0.3, 1), (0.9, 0.8)])), [[0.3137, 0.7212]], [0.7]),
    ],
)
def test_sources_between_cells_come_back(
    operator: HeatLine | HeatPlane, places: list[list[float]], masses: list[float]
) -> None:
    sigma, y = 1e-3, read(operator, np.array(places), np.array(masses))
    found = off_grid(operator, y, sigma=sigma)
    assert found.converged
    assert len(found.estimate.masses) == len(masses)
    assert found.place_errors is not None
    assert found.mass_errors is not None
    # Without noise, a chi-square of c leaves each number within sqrt(c) of its standard errors.
    left = math.sqrt(misfit(found, y, sigma))
    assert left < 0.5
    assert (abs(found.estimate.places - places) <= 1.01 * left * found.place_errors + 1e-12).all()
    assert (abs(found.estimate.masses - masses) <= 1.01 * left * found.mass_errors + 1e-12).all()


@pytest.mark.unit
def test_the_scores_are_the_criterion_and_the_least_one_wins(rng: np.random.Generator) -> None:
    sigma = 0.05
    y = read(line(), np.array([[0.3], [0.7]]), np.array([0.5, 0.8])) + sigma * rng.standard_normal(
        50
    )
    found = off_grid(line(), y, sigma=sigma)
    best = len(found.estimate.masses)
    assert best == 2
    assert found.scores[0] == pytest.approx(float(y @ y) / sigma**2)
    assert found.scores[2] == pytest.approx(misfit(found, y, sigma) + 2 * 2 * math.log(50))
    assert min(found.scores, key=lambda count: found.scores[count]) == best
    assert list(found.scores) == [0, 1, 2, 3, 4]  # two in a row that are no better end it
    assert list(off_grid(line(), y, sigma=sigma, max_sources=1).scores) == [0, 1]
    for count in (1, 3, 6):
        asked = off_grid(line(), y, sigma=sigma, count=count, max_sources=1)
        assert (len(asked.estimate.masses), list(asked.scores)) == (count, [count])


@pytest.mark.unit
def test_two_sources_too_near_to_tell_apart_are_one_in_their_middle() -> None:
    y = read(line(), np.array([[0.49], [0.51]]), np.array([0.4, 0.4]))
    found = off_grid(line(), y, sigma=0.05)
    assert found.estimate.places == pytest.approx(np.array([[0.5]]), abs=1e-3)
    assert found.estimate.masses == pytest.approx(np.array([0.8]), abs=1e-2)


@pytest.mark.unit
def test_a_mass_above_upper_takes_two_sources() -> None:
    y = read(line(), np.array([[0.5]]), np.array([1.6]))
    found = off_grid(line(), y, sigma=0.01, max_mass=1.0)
    assert len(found.estimate.masses) == 2
    assert found.estimate.masses.max() <= 1.0
    assert len(off_grid(line(), y, sigma=0.01, max_mass=2.0).estimate.masses) == 1


@pytest.mark.unit
def test_nothing_is_an_empty_estimate(rng: np.random.Generator) -> None:
    for y in (np.zeros(50), 0.1 * rng.standard_normal(50)):
        assert recover(line(), y, sigma=0.2).status == "zero"
        found = off_grid(line(), y, sigma=0.2)
        assert (found.estimate.places.shape, found.converged) == ((0, 1), True)
        assert found.scores == {0: pytest.approx(float(y @ y) / 0.04)}
        assert found.place_errors is found.mass_errors is None


@pytest.mark.unit
def test_where_r_has_no_answer_the_search_begins_without(monkeypatch: pytest.MonkeyPatch) -> None:
    few = heat_line(sources=[0.4, 0.6], sensors=50, diffusion_time=0.01)
    y = read(few, np.array([[0.5]]), np.array([0.9]))
    assert recover(few, y, sigma=0.01, max_mass=0.3).status == "infeasible"
    found = off_grid(few, y, sigma=0.01, max_mass=0.3)
    assert found.estimate.masses.sum() == pytest.approx(0.9, rel=0.01)
    assert found.estimate.places == pytest.approx(np.full((3, 1), 0.5), abs=0.02)
    monkeypatch.setattr(OFF_GRID, "recover", no_proof)
    again = off_grid(few, y, sigma=0.01, max_mass=0.3)
    assert np.array_equal(again.estimate.places, found.estimate.places)


@pytest.mark.unit
def test_fewer_readings_than_numbers_have_no_errors() -> None:
    one = heat_line(sources=10, sensors=[0.5], diffusion_time=0.01)
    found = off_grid(one, [2.0], sigma=0.1)
    assert len(found.estimate.masses) == 1
    assert found.place_errors is found.mass_errors is None


@pytest.mark.unit
@pytest.mark.parametrize("unit", [1e-120, 1e-3, 1e80])
def test_units_change_nothing(unit: float, rng: np.random.Generator) -> None:
    y = read(line(), np.array([[0.3], [0.7]]), np.array([0.5, 0.8])) + 0.05 * rng.standard_normal(
        50
    )
    plain = off_grid(line(), y, sigma=0.05)
    other = off_grid(line(), unit * y, sigma=0.05 * unit, max_mass=unit)
    assert other.estimate.places == pytest.approx(plain.estimate.places, rel=1e-6)
    assert other.estimate.masses / unit == pytest.approx(plain.estimate.masses, rel=1e-6)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigma": 0.0}, "sigma must be positive and finite, got 0.0; nothing was recovered"),
        ({"sigma": math.nan}, "sigma must be positive"),
        ({"max_mass": math.inf}, "`max_mass` must be positive"),
        ({"max_sources": 0}, "`max_sources` must be a whole number, at least 1"),
        ({"y": [1.0]}, "one finite number for each of 50 sensors, got shape"),
        ({"y": [math.nan] * 50}, "got one that is not finite"),
        (
            {"operator": linear(np.eye(50), Line(50))},
            "need heat on a line or in a plane, got Matrix",
        ),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"operator": line(), "y": np.ones(50), "sigma": 0.1} | wrong
    with pytest.raises(InvalidParameter, match=message):
        off_grid(given.pop("operator"), given.pop("y"), **given)


@pytest.mark.reference
@pytest.mark.parametrize("operator", [line(), plane()])
def test_the_jacobian_is_that_of_differences(
    operator: HeatLine | HeatPlane, rng: np.random.Generator
) -> None:
    scene = scene_of(operator, np.zeros(operator.shape[0]), sigma=1.0, max_mass=1.0)
    at = rng.random((2, 3 * (scene.axes + 1)))
    jacobian, _ = OFF_GRID._linear(scene, at, 3)
    for column in range(at.shape[1]):
        step = np.zeros(at.shape[1])
        step[column] = 1e-5
        ahead, behind = (OFF_GRID._linear(scene, at + way * step, 3)[1] for way in (1, -1))
        # Third derivatives are below 1e5 here, so differences err by 1e-5**2 / 6 times that.
        assert jacobian[..., column] == pytest.approx((ahead - behind) / 2e-5, abs=1e-5)


def scipy_gain(scene: Scene, places: FloatArray, masses: FloatArray, chi_square: float) -> float:
    """How much lower a chi-square scipy's least squares reaches from an answer."""
    count = len(places)
    low = np.concatenate([np.tile(scene.low, count), np.zeros(count)])
    high = np.concatenate([np.tile(scene.high, count), np.full(count, scene.max_mass)])
    start = np.concatenate([places.ravel(), masses])
    inside = np.clip(start, low + 1e-9 * (high - low), high - 1e-9 * (high - low))

    def residual(at: FloatArray) -> FloatArray:
        return np.asarray(OFF_GRID._linear(scene, at[np.newaxis], count)[1][0])

    def jacobian(at: FloatArray) -> FloatArray:
        return np.asarray(OFF_GRID._linear(scene, at[np.newaxis], count)[0][0])

    found = optimize.least_squares(residual, inside, jacobian, bounds=(low, high), x_scale="jac")
    return chi_square - 2 * float(found.cost)


@pytest.mark.reference
@pytest.mark.parametrize("operator", [line(), plane()])
def test_scipy_goes_no_lower_from_an_answer(
    operator: HeatLine | HeatPlane, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sigma, readings = 0.05, []
    for _ in range(5):
        masses = np.zeros(operator.space.size)
        masses[rng.choice(masses.size, 3, replace=False)] = rng.uniform(0.3, 1, 3)
        readings.append(operator.readings(masses) + sigma * rng.standard_normal(operator.shape[0]))

    def most_gained() -> float:
        gains = []
        for y in readings:
            found = off_grid(operator, y, sigma=sigma)
            scene = scene_of(operator, y, sigma=sigma, max_mass=1.0)
            at, masses = found.estimate.places, found.estimate.masses / sigma
            gains.append(scipy_gain(scene, at, masses, misfit(found, y, sigma)))
        return max(gains)

    # A last step below SMALL can be one of a hundred along a valley; a source costs 8 on the line.
    assert most_gained() < 100 * OFF_GRID.SMALL
    monkeypatch.setattr(OFF_GRID, "recover", no_proof)
    monkeypatch.setattr(OFF_GRID, "ROUNDS", 1)
    assert most_gained() > 100 * OFF_GRID.SMALL


@pytest.mark.statistical
@pytest.mark.parametrize("operator", [line(), plane(time=0.04)])
def test_standard_errors_cover_as_often_as_they_say(
    operator: HeatLine | HeatPlane, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        OFF_GRID, "recover", no_proof
    )  # the other start is as good for one source, and fast
    trials, sigma, reach = 260, 0.05, float(stats.norm.ppf(0.9))
    hits = {"place": 0, "mass": 0}
    axes = operator.sensors.positions.shape[1]
    for _ in range(trials):
        place, mass = rng.uniform(0.2, 0.8, (1, axes)), rng.uniform(0.4, 0.7, 1)
        y = read(operator, place, mass) + sigma * rng.standard_normal(operator.shape[0])
        found = off_grid(operator, y, sigma=sigma, max_sources=1)
        assert found.place_errors is not None
        assert found.mass_errors is not None
        hits["place"] += (
            abs(found.estimate.places[0, 0] - place[0, 0]) < reach * found.place_errors[0, 0]
        )
        hits["mass"] += abs(found.estimate.masses[0] - mass[0]) < reach * found.mass_errors[0]
    half, twice = (2 * float(stats.norm.cdf(scale * reach)) - 1 for scale in (0.5, 2))
    for number in hits.values():
        assert_share(int(number), trials, 0.8, rivals=[half, twice])


@pytest.mark.statistical
def test_two_units_are_nearer_than_by_r(rng: np.random.Generator) -> None:
    sigma, wide = 0.06598, line(0.05)
    ours, rival = [], []
    for _ in range(20):
        truth = np.zeros(100)
        truth[rng.choice(100, 2, replace=False)] = 1
        y = wide.readings(truth) + sigma * rng.standard_normal(50)
        found = recover(wide, y, sigma=sigma)
        if found.status == "optimal":
            ours.append(emd_on_line(off_grid(wide, y, sigma=sigma).estimate, truth))
            rival.append(emd_of(found, truth))
    # Over 400 scenes the ratio is 0.3.
    assert np.mean(ours) < 0.6 * np.mean(rival)


@pytest.mark.unit
def test_many_cells_of_r_are_merged_into_few() -> None:
    places = np.concatenate([np.linspace(0.1, 0.2, 300), np.linspace(0.7, 0.8, 100)])[:, np.newaxis]
    merged = dict(OFF_GRID._merged(places, np.ones(400), 3))
    assert sorted(merged) == [1, 2, 3]
    at, masses = merged[2]
    order = np.argsort(at[:, 0])
    # 64 parts of 6 or 7 cells: the one at the border may take some from either side.
    assert masses[order] == pytest.approx([300, 100], abs=7)
    assert at[order, 0] == pytest.approx([0.15, 0.75], abs=7 / 100 * 0.6)
    assert merged[1][0] == pytest.approx(places.mean(axis=0)[np.newaxis])
    assert isinstance(off_grid(line(), np.full(50, 30.0), sigma=1.0).estimate, Estimate)
