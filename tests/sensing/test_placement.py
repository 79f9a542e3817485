"""The placement against all sets of sensors, against its own formula, and against what recoveries do."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from unittest import mock

import numpy as np
import pytest

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.privacy import ZCDP, ApproxDP, MovedMass, PureDP, SwappedCells, gaussian_sigma
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.places import even_places
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.sensitivity import sensitivity
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.planning import forecast, placement
from sfumato.sensing.planning.forecast import Estimator, Scene, Trial
from sfumato.sensing.planning.placement import (
    Placement,
    _Goal,
    place_sensors,
    simulated_gain,
    uniform_choice,
)
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.sensing.recovery.distance import emd_of, error_of_nothing
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.recovery.estimators.min_radius import recover_min_radius
from sfumato.spaces import Graph, Grid, Line, Points

LOSS = ApproxDP(4, "0.1")
UNIT = gaussian_sigma(4, "0.1")
NEIGHBORS = SwappedCells(1)


def criterion(
    operator: Operator,
    neighbors: MovedMass | SwappedCells = NEIGHBORS,
    *,
    sigma: float | None = None,
) -> float:
    """The mean distance from the truth under the posterior, from the formula, place by place."""
    cells = operator.space.size
    columns = operator.columns(np.arange(cells))
    if sigma is None:
        sigma = UNIT * sensitivity(operator, neighbors).l2
    logs = np.empty((cells, cells))
    for j in range(cells):
        # Readings M_i, explained by a mass of law N(0, 1) at j under noise: their log density.
        covariance = sigma**2 * np.eye(len(columns)) + np.outer(columns[:, j], columns[:, j])
        explained = np.einsum("si,si->i", columns, np.linalg.solve(covariance, columns))
        logs[:, j] = -explained / 2 - np.linalg.slogdet(covariance)[1] / 2
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    distances = np.array(
        [[operator.space.distance(i, j) for j in range(cells)] for i in range(cells)]
    )
    return float(((weights * distances).sum(axis=1) / weights.sum(axis=1)).mean())


def small_sites(rng: np.random.Generator) -> list[tuple[Operator, MovedMass | SwappedCells]]:
    ring = Graph([(i, (i + 1) % 12) for i in range(12)] + [(0, 6)])
    places = Points(rng.random((10, 2)))
    return [
        (heat_line(sources=20, sensors=np.sort(rng.random(9)), diffusion_time=0.02), NEIGHBORS),
        (
            heat_line(sources=20, sensors=np.sort(rng.random(9)), diffusion_time=0.02),
            MovedMass(0.1, "line"),
        ),
        # Mass moved: how far swapped cells as wide as the blur move readings is only known to a
        # factor of 2.
        (
            heat_plane(sources=Grid(2), sensors=rng.random((9, 2)), diffusion_time=0.02),
            MovedMass(0.25, Grid(2).metric),
        ),
        (
            heat_plane(sources=places, sensors=rng.random((9, 2)), diffusion_time=0.05),
            MovedMass(0.2, places.metric),
        ),
        (graph_diffusion(ring, 0.5, sensors=np.arange(9)), NEIGHBORS),
        (linear(rng.random((9, 8)), Line(8)), NEIGHBORS),
    ]


@pytest.mark.reference
def test_the_criterion_is_its_formula_everywhere(rng: np.random.Generator) -> None:
    for site, neighbors in small_sites(rng):
        found = place_sensors(site, 4, loss=LOSS, neighbors=neighbors)
        for operator, error, sigma in (
            (found.operator, found.error, found.sigma),
            (found.uniform_operator, found.uniform_error, found.uniform_sigma),
        ):
            assert error == pytest.approx(criterion(operator, neighbors), rel=1e-6)
            needed = UNIT * sensitivity(operator, neighbors).l2
            assert sigma == pytest.approx(needed, rel=1e-12)


@pytest.mark.reference
def test_all_sets_of_four_hold_none_much_better(rng: np.random.Generator) -> None:
    best = 0
    for site, neighbors in small_sites(rng):
        found = place_sensors(site, 4, loss=LOSS, neighbors=neighbors)
        # Every set by the fast criterion, which the test above compares with its formula.
        goal = _Goal.of(site, neighbors, unit=UNIT, mass=1.0)
        all_of_them = [goal.error(np.array(rows)) for rows in combinations(range(9), 4)]
        reached = goal.error(found.chosen)
        assert min(all_of_them) * (1 - 1e-9) <= reached <= min(all_of_them) * 1.1
        assert reached < np.quantile(
            all_of_them, 0.05
        )  # a rival that picks at random is not so good
        assert found.error <= found.uniform_error
        best += reached <= min(all_of_them) * (1 + 1e-9)
    assert best >= 4


def _only(site: Operator, rows: tuple[int, ...]) -> Operator:
    matrix = site.columns(np.arange(site.space.size))
    return linear(matrix[list(rows)], site.space)


@pytest.mark.unit
def test_a_loud_sensor_is_left_out() -> None:
    # It reads more of one cell than all others together, at the price of noise for all of them.
    line = heat_line(sources=20, sensors=8, diffusion_time=0.02)
    loud = np.zeros((1, 20))
    loud[0, 3] = 50.0
    site = linear(np.concatenate([line.columns(np.arange(20)), loud]), line.space)
    found = place_sensors(site, 5, loss=LOSS, neighbors=NEIGHBORS)
    assert "8" not in found.names
    # At the noise of the others it would only add to what is told: who forgets that noise follows
    # the set takes it in.
    quiet, both = (_only(site, rows) for rows in (tuple(found.chosen), (*found.chosen, 8)))
    assert criterion(both, sigma=found.sigma) < criterion(quiet, sigma=found.sigma)
    assert criterion(both) > 2 * criterion(quiet)


@pytest.mark.unit
def test_it_is_the_same_in_any_order_and_tells_how_it_goes(rng: np.random.Generator) -> None:
    places = np.sort(rng.random(12))
    order = rng.permutation(12)
    names = [f"s{i}" for i in range(12)]
    said: list[str] = []
    one = heat_line(sources=30, sensors=Sensors(places, names), diffusion_time=0.02)
    other = heat_line(
        sources=30, sensors=Sensors(places[order], [names[i] for i in order]), diffusion_time=0.02
    )
    found = place_sensors(one, 5, loss=LOSS, neighbors=NEIGHBORS, progress=said.append)
    again = place_sensors(other, 5, loss=LOSS, neighbors=NEIGHBORS)
    assert set(found.names) == set(again.names)
    assert said[4] == "5 of 5 sensors placed"
    assert found.operator.sensors.names == found.names
    everything = place_sensors(one, 12, loss=LOSS, neighbors=NEIGHBORS)
    assert everything.chosen.tolist() == everything.uniform.tolist() == list(range(12))
    assert "gains nothing" in everything.message


@pytest.mark.unit
def test_rho_and_epsilon_of_the_same_noise_choose_the_same() -> None:
    site = heat_line(sources=30, sensors=np.linspace(0, 1, 14) ** 2, diffusion_time=0.02)
    by_rho = place_sensors(site, 5, loss=ZCDP(1 / (2 * UNIT**2)), neighbors=NEIGHBORS)
    by_epsilon = place_sensors(site, 5, loss=LOSS, neighbors=NEIGHBORS)
    assert by_rho.names == by_epsilon.names
    assert by_rho.sigma == pytest.approx(by_epsilon.sigma, rel=1e-9)


@pytest.mark.unit
def test_uniform_by_hand() -> None:
    line = heat_line(sources=10, sensors=[0.0, 0.1, 0.2, 0.5, 0.9, 1.0], diffusion_time=0.1)
    assert uniform_choice(line, 3).tolist() == [0, 3, 5]
    assert uniform_choice(line, 1).tolist() == [2]
    assert uniform_choice(
        heat_line(sources=10, sensors=10, diffusion_time=0.1), 10
    ).tolist() == list(range(10))
    # A path of 9 nodes: the first, then the other end, then the middle.
    path = graph_diffusion(Graph([(i, i + 1) for i in range(8)]), 0.3)
    assert uniform_choice(path, 3).tolist() == [0, 4, 8]
    corners = heat_plane(
        sources=Grid(2), sensors=[(0, 0), (0.1, 0), (1, 0), (1, 1)], diffusion_time=0.1
    )
    assert uniform_choice(corners, 3).tolist() == [0, 2, 3]


def loud_end() -> Placement:
    """A line where the last candidate reads twenty times as much; spread out evenly, it is always taken."""
    line = heat_line(sources=50, sensors=20, diffusion_time=0.02)
    gains = np.append(np.ones(19), 20.0)[:, np.newaxis]
    site = linear(gains * line.columns(np.arange(50)), line.space, sensors=line.sensors)
    return place_sensors(site, 8, loss=LOSS, neighbors=NEIGHBORS)


@pytest.mark.statistical
def test_the_gain_shows_in_recoveries_and_only_where_there_is_one(rng: np.random.Generator) -> None:
    found = loud_end()
    gain = simulated_gain(found, trials=40, sources=1, rng=rng)
    real = gain.ratio
    assert real is not None
    assert real.value == pytest.approx(gain.chosen / gain.uniform)
    # Half of an interval of 95 % is 1.96 deviations; 2.5 of these halves are one in a million.
    assert real.value + (real.high - real.value) * 2.5 < 1
    none = replace(
        found, uniform=found.chosen, uniform_sigma=found.sigma, uniform_error=found.error
    )
    flat = simulated_gain(none, trials=40, sources=1, rng=rng).ratio
    assert flat is not None
    assert (flat.value, flat.low, flat.high) == (1, 1, 1)  # the same sensors with the same noise


@pytest.mark.unit
def test_both_sets_have_the_same_sources_and_a_sensor_the_same_noise(
    rng: np.random.Generator,
) -> None:
    found = loud_end()
    seen: list[tuple[Scene, Trial]] = []

    def error(scene: Scene, lot: Trial, estimator: Estimator) -> float:
        assert estimator == "least mass"
        seen.append((scene, lot))
        return 1.0

    with mock.patch.object(placement, "error_of", error):
        simulated_gain(found, trials=3, sources=2, rng=rng)
    noises: list[dict[str, float]] = []
    for (scene, lot), sigma in zip(
        seen, [found.sigma] * 3 + [found.uniform_sigma] * 3, strict=True
    ):
        assert (scene.sigma, scene.sources, scene.masses) == (sigma, 2, "known")
        noises.append(dict(zip(scene.operator.sensors.names, lot.noise.tolist(), strict=True)))
    both = set(noises[0]) & set(noises[3])
    assert 0 < len(both) < 8
    for trial in range(3):
        assert np.array_equal(seen[trial][1].cells, seen[trial + 3][1].cells)
        assert all(noises[trial][name] == noises[trial + 3][name] for name in both)
    assert noises[0] != noises[1]


@pytest.mark.unit
def test_trials_without_an_answer_are_told_and_not_counted(rng: np.random.Generator) -> None:
    found, seen = loud_end(), 0

    def some(operator: Operator, y: FloatArray, *, sigma: float) -> Recovery:
        nonlocal seen
        seen += 1
        # The second of the chosen sensors' recoveries, and the last of the others'.
        if seen in (2, 12):
            raise SolverFailed("not proven")
        return recover_min_radius(operator, y, sigma=sigma)

    with mock.patch.object(forecast, "recover_min_radius", some):
        gain = simulated_gain(found, trials=6, sources=1, rng=rng)
    assert (gain.trials, gain.failed, seen) == (4, 2, 12)
    assert gain.ratio is not None
    assert gain.ratio.trials == 4
    whole = simulated_gain(found, trials=2, sources=1, rng=rng)
    assert (whole.trials, whole.failed) == (2, 0)
    with (
        mock.patch.object(
            forecast, "recover_min_radius", mock.Mock(side_effect=SolverFailed("not proven"))
        ),
        pytest.raises(SolverFailed, match="none of 3 trials had an answer"),
    ):
        simulated_gain(found, trials=3, sources=1, rng=rng)


@pytest.mark.unit
def test_even_places_are_as_many_as_were_asked_for() -> None:
    low, high = np.array([-1.0, 2.0]), np.array([3.0, 2.5])
    for count in (*range(1, 120), 900):
        places = even_places(count, low, high)
        assert len({tuple(place) for place in places.tolist()}) == len(places) == count
        assert ((places > low) & (places < high)).all()
        in_row = np.unique(places[:, 1], return_counts=True)[1]
        assert np.ptp(in_row) <= 1
        assert abs(in_row.size - math.sqrt(count)) <= 0.5
        # Even: the middle of the places is that of each row, and of the rectangle.
        assert places[:, 0].mean() == pytest.approx(1.0)
        assert np.unique(places[:, 1]).mean() == pytest.approx(2.25)
        side = math.isqrt(count)
        if side**2 == count:  # the papers' squares, to the last digit
            middle = (np.arange(side) + 0.5) / side
            boxes = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
            assert np.array_equal(places, low + boxes * (high - low))


@pytest.mark.unit
def test_every_recovery_has_an_error() -> None:
    line = heat_line(sources=20, sensors=8, diffusion_time=0.02)
    truth = np.zeros(20)
    truth[9] = 1.0
    assert emd_of(recover_min_radius(line, line.readings(truth), sigma=1e-3), truth) < 0.05
    # Nothing read: mass anywhere, on average |x - 0.5| = 5 of 20 cells off.
    assert error_of_nothing(line, truth) == pytest.approx(0.25)
    # Out of reach: the smallest radius that can be had, and what it finds is where most was read.
    assert recover(line, 5 * line.readings(truth), sigma=1e-3).status == "infeasible"
    assert emd_of(recover_min_radius(line, 5 * line.readings(truth), sigma=1e-3), truth) < 0.2


@pytest.mark.unit
def test_sets_without_an_error_gain_nothing() -> None:
    exact = replace(loud_end(), error=0.0, uniform_error=0.0)
    assert "gains nothing" in exact.message


@pytest.mark.unit
def test_what_is_refused(rng: np.random.Generator) -> None:
    line = heat_line(sources=20, sensors=8, diffusion_time=0.02)
    with pytest.raises(InvalidParameter, match="count must be"):
        place_sensors(line, 9, loss=LOSS, neighbors=NEIGHBORS)
    with pytest.raises(InvalidParameter, match="mass must be"):
        place_sensors(line, 3, loss=LOSS, neighbors=NEIGHBORS, mass=math.nan)
    with pytest.raises(InvalidParameter, match="rho above 0"):
        place_sensors(line, 3, loss=ZCDP(0), neighbors=NEIGHBORS)
    with pytest.raises(InvalidParameter, match="Gaussian noise"):
        place_sensors(line, 3, loss=PureDP(1), neighbors=NEIGHBORS)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="two cells"):
        place_sensors(
            heat_line(sources=1, sensors=8, diffusion_time=1), 3, loss=LOSS, neighbors=NEIGHBORS
        )
    with pytest.raises(InvalidParameter, match="trials"):
        simulated_gain(loud_end(), trials=1, sources=1, rng=rng)
