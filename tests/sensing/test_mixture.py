"""Mixtures of known width: likelihood never falls, exact scenes come back, negative readings do no harm."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from tests.sensing.test_off_grid import emd_on_line, line, plane, read

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.sensing import emd_of, graph_diffusion, heat_line, mixture, recover
from sfumato.sensing.model.operators.heat_line import HeatLine
from sfumato.sensing.model.operators.heat_plane import HeatPlane
from sfumato.sensing.recovery.estimators.heat_scene import Scene, equal_parts, scene_of
from sfumato.spaces import Graph

MIXTURE = importlib.import_module(
    "sfumato.sensing.recovery.estimators.mixture"
)  # the package has a function of that name


def noisy(
    operator: HeatLine | HeatPlane, rng: np.random.Generator, *, sources: int, sigma: float
) -> tuple[FloatArray, FloatArray]:
    truth = np.zeros(operator.space.size)
    truth[rng.choice(truth.size, sources, replace=False)] = rng.uniform(0.3, 1, sources)
    return truth, operator.readings(truth) + sigma * rng.standard_normal(operator.shape[0])


@pytest.mark.unit
@pytest.mark.parametrize(
    ("operator", "places", "masses"),
    [
        (line(), [[0.3137]], [0.7]),
        (line(), [[0.2071], [0.8049]], [0.4, 0.9]),
        (line(), [[0.5]], [1.0]),  # at upper
        (plane(), [[0.3137, 0.7212]], [0.7]),
        (plane(), [[0.2071, 0.3333], [0.8049, 0.6161]], [0.9, 0.4]),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_sources_between_cells_come_back(
    operator: HeatLine | HeatPlane, places: list[list[float]], masses: list[float], known: bool
) -> None:
    y = read(operator, np.array(places), np.array(masses))
    found = mixture(operator, y, sigma=0.01, count=len(masses) if known else None)
    assert found.converged
    # Rounds that gain less than GAIN end it: the noise would move places by some hundredths of the
    # width.
    assert found.estimate.places == pytest.approx(np.array(places), abs=1e-3)
    assert found.estimate.masses == pytest.approx(np.array(masses), abs=5e-3)
    if known:
        assert list(found.scores) == [len(masses)]
    else:
        assert list(found.scores) == list(range(9))
        assert min(found.scores, key=lambda count: found.scores[count]) == len(masses)


@pytest.mark.property
@pytest.mark.parametrize("operator", [line(0.05), line(0.001), plane()])
@pytest.mark.parametrize("reckless", [False, True])
def test_likelihood_never_falls(
    operator: HeatLine | HeatPlane,
    reckless: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if reckless:  # whatever a move is, a round that loses by it takes it back
        monkeypatch.setattr(
            MIXTURE,
            "_move",
            lambda scene, state, *_: scene.width * rng.standard_normal(state.places.shape),
        )
    for sigma in (0.02, 1.0):
        _, y = noisy(operator, rng, sources=3, sigma=sigma)
        for count in (1, 4):
            found = mixture(operator, y, sigma=sigma, count=count, max_mass=0.8)
            assert (np.diff(found.likelihoods) >= 0).all()
            assert (found.estimate.masses >= 0).all()
            assert (found.estimate.masses <= 0.8).all()


@pytest.mark.unit
def test_a_round_without_a_way_back_would_lose_likelihood(rng: np.random.Generator) -> None:
    _, y = noisy(line(), rng, sources=3, sigma=0.02)
    scene = scene_of(line(), y, sigma=0.02, max_mass=1.0)
    before = MIXTURE._state(scene, *MIXTURE._even_starts(scene, [3]))
    held = np.full((1, 3), float(scene.readings.sum()) / 3)
    after = MIXTURE._moved(scene, before, held, np.full((1, 3, 1), 0.5))
    assert after.likelihood[0] < before.likelihood[0]


@pytest.mark.reference
@pytest.mark.parametrize("operator", [line(), plane()])
@pytest.mark.parametrize("max_mass", [1.0, 0.6])  # the second holds one mass
def test_scipy_finds_nothing_likelier_from_an_answer(
    operator: HeatLine | HeatPlane,
    max_mass: float,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MIXTURE, "GAIN", 1e-7)
    monkeypatch.setattr(MIXTURE, "ROUNDS", 5000)
    places = np.repeat([[0.2], [0.7]], operator.sensors.positions.shape[1], axis=1)
    y = read(operator, places, np.array([0.5, 0.8])) + 0.1 * rng.standard_normal(operator.shape[0])
    scene = scene_of(operator, y, sigma=0.1, max_mass=max_mass)
    found = mixture(operator, y, sigma=0.1, count=2, max_mass=max_mass)
    at = np.concatenate([found.estimate.places.ravel(), found.estimate.masses / 0.1])
    split = found.estimate.places.size
    assert log_likelihood(scene, at, split) == pytest.approx(found.likelihoods[-1], rel=1e-12)

    def loss(numbers: FloatArray) -> float:
        return -log_likelihood(scene, numbers, split)

    box = optimize.Bounds([0.01] * split + [0.0] * 2, [1.0] * split + [scene.max_mass] * 2)
    best = optimize.minimize(loss, at, method="L-BFGS-B", bounds=box)
    # A hundredth is far below the 1 / 2 by which a standard error changes the logarithm.
    assert -best.fun - found.likelihoods[-1] < 0.01
    assert log_likelihood(scene, at + 0.05, split) < found.likelihoods[-1] - 0.5


def log_likelihood(scene: Scene, at: FloatArray, split: int) -> float:
    """Of counts y + b in units of sigma**2 / b, without what does not depend on sources: b = 10 sigma."""
    places = at[:split].reshape(-1, scene.axes)
    expected = read(scene.operator, places, at[split:]) + 10
    return float(10 * (np.maximum(scene.readings + 10, 0) * np.log(expected) - expected).sum())


@pytest.mark.statistical
def test_the_shift_keeps_negative_readings_from_adding_mass(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenes = [read(line(), rng.uniform(0.3, 0.7, (1, 1)), np.array([0.5])) for _ in range(80)]
    readings = [exact + 0.3 * rng.standard_normal(50) for exact in scenes]

    def bias() -> float:
        masses = np.array(
            [mixture(line(), y, sigma=0.3, count=1).estimate.masses.sum() for y in readings]
        )
        return float((masses.mean() - 0.5) / (masses.std() / math.sqrt(masses.size)))

    assert abs(bias()) < 5  # a false alarm in a million
    monkeypatch.setattr(
        MIXTURE, "SHIFT", 1e-6
    )  # negative readings cut to 0, as a histogram would have them
    assert bias() > 10


@pytest.mark.unit
@pytest.mark.filterwarnings("error")
def test_nothing_is_no_sources(rng: np.random.Generator) -> None:
    for y in (np.zeros(50), np.full(50, -1.0), 0.1 * rng.standard_normal(50), np.full(50, -100.0)):
        found = mixture(line(), y, sigma=0.1)
        assert (found.estimate.places.shape, found.likelihoods, found.converged) == (
            (0, 1),
            (),
            True,
        )
        assert found.scores[0] == pytest.approx(100 * float(y @ y))
        assert mixture(line(), y, sigma=0.1, count=2).estimate.masses.shape == (2,)


@pytest.mark.unit
def test_a_start_that_ends_far_off_is_not_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = heat_line(sources=100, sensors=100, diffusion_time=2e-4)
    y = read(narrow, np.array([[0.1], [0.15], [0.9]]), np.array([1.0, 1.0, 0.3]))
    found = mixture(narrow, y, sigma=0.1, count=3)
    assert found.estimate.places[:, 0] == pytest.approx([0.1, 0.15, 0.9], abs=1e-3)
    monkeypatch.setattr(MIXTURE, "SURPRISE", 0.0)
    assert mixture(narrow, y, sigma=0.1, count=3).scores[3] > found.scores[3] + 100


@pytest.mark.unit
def test_equal_parts_by_hand() -> None:
    places = np.arange(4.0)[:, np.newaxis]
    assert equal_parts(places, np.ones(4), 2).tolist() == [[0.5], [2.5]]
    assert equal_parts(places, np.ones(4), 4).tolist() == [[0], [1], [2], [3]]
    assert equal_parts(places, np.array([1.0, 2, 0, 0]), 2) == pytest.approx(
        np.array([[1 / 3], [1]])
    )
    assert equal_parts(places, np.zeros(4), 1).tolist() == [[1.5]]
    square = np.array([[0, 0], [0, 1], [2, 0], [2, 1.0]])
    assert equal_parts(square, np.ones(4), 4).tolist() == square.tolist()


@pytest.mark.property
def test_equal_parts_have_the_mean_of_all(rng: np.random.Generator) -> None:
    for _ in range(100):
        places = rng.random((int(rng.integers(1, 30)), int(rng.integers(1, 3))))
        weights, count = rng.exponential(size=len(places)) + 1e-6, int(rng.integers(1, 12))
        parts = equal_parts(places, weights, count)
        assert parts.shape == (count, places.shape[1])
        assert parts.mean(axis=0) == pytest.approx(weights @ places / weights.sum(), rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("count", [4, None])
def test_four_sources_are_nearer_than_by_r(count: int | None, rng: np.random.Generator) -> None:
    sigma, wide = 0.06598, line(0.05)
    ours, rival = [], []
    for _ in range(12):
        truth = np.zeros(100)
        truth[rng.choice(100, 4, replace=False)] = 1
        y = wide.readings(truth) + sigma * rng.standard_normal(50)
        found = recover(wide, y, sigma=sigma)
        if found.status == "optimal":
            ours.append(emd_on_line(mixture(wide, y, sigma=sigma, count=count).estimate, truth))
            rival.append(emd_of(found, truth))
    # Over 400 scenes the ratio is 0.3.
    assert np.mean(ours) < 0.7 * np.mean(rival)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigma": -1.0}, "sigma must be positive and finite, got -1.0; nothing was recovered"),
        ({"max_mass": 0.0}, "`max_mass` must be positive"),
        ({"count": 0}, "count must be a whole number, at least 1"),
        ({"max_sources": 1.5}, "`max_sources` must be a whole number"),
        ({"y": np.ones(3)}, "one finite number for each of 50 sensors"),
        ({"operator": graph_diffusion(Graph([(0, 1)]), 0.3)}, "got GraphDiffusion"),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"operator": line(), "y": np.ones(50), "sigma": 0.1} | wrong
    with pytest.raises(InvalidParameter, match=message):
        mixture(given.pop("operator"), given.pop("y"), **given)
