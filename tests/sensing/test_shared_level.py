"""Readings that a changed level explains are no sources to rely on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from tests.chance import LEVEL

from sfumato.privacy import MovedMass
from sfumato.sensing import Site, heat_plane, recover_sources
from sfumato.sensing.diagnostics.shared_level import LIKELY, SharedLevel, shared_level
from sfumato.sensing.model.level import Level
from sfumato.sensing.results import RecoveryResult, read_recovery
from sfumato.spaces import Grid

SIGMA = 0.25
SPOTS = [(x / 6 + 1 / 12, y / 6 + 1 / 12) for y in range(6) for x in range(6)]
FLOOR = heat_plane(sources=Grid(4), sensors=SPOTS, diffusion_time=0.005)
ROOM = Site(
    "room", FLOOR, MovedMass("1/4", FLOOR.space.metric), unit="C", per_source=Fraction(1, 10),
    level=Level(Fraction(20)),
)  # fmt: skip


def recovered(readings: np.ndarray, site: Site = ROOM) -> RecoveryResult:
    """From readings as the operator has them, all with the same noise."""
    values = dict(zip(site.sensors.names, readings.tolist(), strict=True))
    return recover_sources(values, site=site, noise=SIGMA, estimator="least", max_mass=4)


@pytest.mark.unit
def test_a_level_that_rose_is_no_crowd(rng: np.random.Generator, tmp_path: Path) -> None:
    warmer = 2 * SIGMA + rng.normal(0, SIGMA, len(SPOTS))
    found = recovered(warmer)
    assert found.verdict.kind == "care"
    assert "above their level, which explains the readings as well" in found.verdict.message
    level = found.diagnostics.level
    assert level is not None
    assert level.offset == pytest.approx(warmer.mean())
    assert level.message in found.verdict.message
    found.write(tmp_path / "r.json")
    again = read_recovery(tmp_path / "r.json").diagnostics
    assert (again.level, again.verdict) == (level, found.verdict)


@pytest.mark.unit
def test_a_person_is_told_from_a_level(rng: np.random.Generator) -> None:
    masses = np.zeros(FLOOR.space.size)
    masses[5 * 16 + 5] = 1.0
    read = FLOOR.readings(masses) + rng.normal(0, SIGMA, len(SPOTS))
    assert recovered(read).diagnostics.level is None


@pytest.mark.unit
def test_who_has_no_level_to_change_is_not_asked(rng: np.random.Generator) -> None:
    warmer = 2 * SIGMA + rng.normal(0, SIGMA, len(SPOTS))
    assert recovered(warmer, replace(ROOM, unit="mass", level=None)).diagnostics.level is None
    assert shared_level(warmer[:2], SIGMA) is None
    assert shared_level(warmer, 0.0) is None
    assert SharedLevel.from_json(SharedLevel(1.0, 0.1, 0.5).to_json()) == SharedLevel(1.0, 0.1, 0.5)


@pytest.mark.statistical
def test_a_level_is_missed_as_seldom_as_it_says(rng: np.random.Generator) -> None:
    """An offset of 8 errors is found but in 1 of 100; noise around the level, and a slope, are none."""
    rounds, sensors = 400, 30
    noise = rng.normal(0, SIGMA, (rounds, sensors))
    high = 8 * SIGMA / np.sqrt(sensors)
    missed = sum(shared_level(high + one, SIGMA) is None for one in noise)
    assert binom.sf(missed - 1, rounds, LIKELY) > LEVEL
    slope = np.linspace(-3, 3, sensors) * SIGMA
    assert not any(shared_level(high + slope + one, SIGMA) for one in noise)
    assert sum(shared_level(one, SIGMA) is not None for one in noise) < rounds / 50
