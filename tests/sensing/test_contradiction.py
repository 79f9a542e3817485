"""Faulty sensors where each is a direction of its own, as on a floor: named, and not more often than said."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato._types import FloatArray
from sfumato.sensing import heat_plane
from sfumato.sensing.diagnostics import contradiction, faulty_sensors
from sfumato.sensing.diagnostics.contradiction import beside_others
from sfumato.sensing.diagnostics.misfit import box_fit
from sfumato.sensing.model.operators.places import even_places
from sfumato.spaces import Grid

SIDE = 20.0
FLOOR = heat_plane(
    sources=Grid(4, (0, 0, SIDE, SIDE)),
    sensors=even_places(36, np.zeros(2), np.full(2, SIDE)),
    diffusion_time=2.0,
)
SIGMA = 0.006
EVERY = np.arange(36)


def person(rng: np.random.Generator, count: int = 1) -> np.ndarray:
    return np.asarray(FLOOR.columns(rng.integers(0, 256, count)).sum(axis=1))


@pytest.mark.unit
@pytest.mark.parametrize("stuck", [1.0, 0.25, -0.1])
def test_a_stuck_sensor_of_a_floor_is_named_alone(stuck: float, rng: np.random.Generator) -> None:
    """All 36 sensors are directions of their own: no linear combination of readings is free of sources."""
    for _ in range(3):
        bad = int(rng.integers(36))
        y = person(rng) + SIGMA * rng.standard_normal(36)
        y[bad] = stuck
        (found,) = faulty_sensors(FLOOR, y, sigma=SIGMA, level=1e-4)
        assert found.sensor == str(bad)
        assert found.shows == ("above" if stuck > 0 else "below")
        assert found.limit is not None
        assert found.limit + found.off == pytest.approx(stuck)
        assert "beside what the others read sources give it" in found.message


@pytest.mark.unit
def test_several_stuck_sensors_are_named_and_their_neighbors_are_not(
    rng: np.random.Generator,
) -> None:
    """7 and 8 stand side by side, so each alone excuses the other; 14 is between two low ones."""
    for bad, level in (((7, 8, 28), 1.0), ((13, 15), -0.1)):
        y = person(rng) + SIGMA * rng.standard_normal(36)
        y[list(bad)] = level
        found = faulty_sensors(FLOOR, y, sigma=SIGMA, level=1e-4)
        assert {int(one.sensor) for one in found} == set(bad)


@pytest.mark.property
@pytest.mark.parametrize("offset", [False, True])
def test_no_sources_go_beyond_a_bound(offset: bool, rng: np.random.Generator) -> None:
    beside = beside_others(FLOOR, EVERY, sigma=SIGMA, max_mass=1.0, offset=offset)
    assert beside is not None
    masses = rng.random((200, 256)) * (rng.random((200, 256)) < rng.random((200, 1)))
    read = np.array([FLOOR.readings(one) for one in masses]) + (5.0 if offset else 0.0)
    for contrast in beside.contrasts():
        assert np.allclose(np.linalg.norm(contrast.weights, axis=1), 1)
        assert (read @ contrast.weights.T <= contrast.bounds + 1e-9).all()
        if offset:
            assert np.abs(contrast.weights.sum(axis=1)).max() < 1e-9


@pytest.mark.unit
@pytest.mark.parametrize("offset", [False, True])
def test_products_of_columns_are_computed_once_and_change_no_test(
    offset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fits of 36 sensors form no product of columns of their own; without the table they say the same."""
    times = 0

    def counted(*args: Any, **options: Any) -> FloatArray:
        nonlocal times
        times += 1
        return box_fit(*args, **options)

    monkeypatch.setattr(contradiction, "box_fit", counted)
    beside = beside_others(FLOOR, EVERY, sigma=SIGMA, max_mass=1.0, offset=offset)
    assert beside is not None
    once = beside._contrasts()
    assert times == 0
    monkeypatch.setattr(contradiction, "PAIRED", 255)
    each = beside._contrasts()
    assert times > 3 * 36
    for one, other in zip(once, each, strict=True):
        # A fit ends within 1e-4 of its square, whatever is rounded on the way.
        assert one.weights == pytest.approx(other.weights, abs=1e-2)
        assert one.bounds == pytest.approx(other.bounds, abs=1e-2)


@pytest.mark.statistical
def test_well_sensors_are_contradicted_at_the_level_and_no_more(rng: np.random.Generator) -> None:
    """20,000 empty floors: the tests are then nearly exact; the rival has 25 % more noise than stated.

    At 0.2 the share may be 0.2 and 5 deviations of its own; with people in the room it is less.
    """
    beside = beside_others(FLOOR, EVERY, sigma=SIGMA, max_mass=1.0, offset=False)
    assert beside is not None
    contrasts, draws, level = beside.contrasts(), 20_000, 0.2
    noise = SIGMA * rng.standard_normal((draws, 36))

    def share(readings: np.ndarray) -> float:
        least = np.min(
            [one.log_chances(readings.T, SIGMA).min(axis=0) for one in contrasts], axis=0
        )
        return float(np.mean(least < math.log(level / (3 * 36))))

    most = level + 5 * math.sqrt(level * (1 - level) / draws)
    assert share(noise) <= most
    assert share(noise + person(rng, 2)) <= most
    assert share(1.25 * noise) > most


@pytest.mark.unit
def test_a_crowd_of_sensors_is_not_looked_at_one_by_one() -> None:
    crowd = heat_plane(
        sources=Grid(2), sensors=even_places(441, np.zeros(2), np.ones(2)), diffusion_time=0.01
    )
    assert beside_others(crowd, np.arange(441), sigma=1.0, max_mass=1.0, offset=False) is None
