"""Readings that a changed level explains are no sources to rely on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm
from tests.chance import LEVEL

from sfumato.privacy import MovedMass
from sfumato.sensing import Site, heat_plane, recover_sources
from sfumato.sensing.diagnostics.shared_level import MUCH, SharedLevel, evenness, shared_level
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
    assert "above the level of the site, in units of 0.1 C" in found.diagnostics.remarks[0]
    assert found.verdict.kind == "care"
    assert "above their level, and that is" in found.verdict.message
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
    plain = recovered(warmer, replace(ROOM, unit="mass", level=None)).diagnostics
    assert (plain.level, plain.remarks) == (None, ())
    assert shared_level(FLOOR, warmer, sigma=0.0) is None
    told = SharedLevel(1.0, 0.1, 0.75, 0.25)
    assert SharedLevel.from_json(told.to_json()) == told


@pytest.mark.unit
def test_what_a_source_makes_even_is_no_level() -> None:
    """Two sensors, or heat that has spread all over, read about the same of a single source."""
    wide = heat_plane(sources=Grid(4), sensors=SPOTS, diffusion_time=1.0)
    masses = np.zeros(wide.space.size)
    masses[100] = 3.0
    read = wide.readings(masses)
    assert evenness(read[:, np.newaxis], np.ones(read.size))[0] > MUCH
    assert shared_level(wide, read, sigma=1e-3) is None
    narrow = heat_plane(sources=Grid(4), sensors=SPOTS, diffusion_time=0.001)
    found = shared_level(narrow, read, sigma=1e-3)
    assert found is not None
    assert found.share == pytest.approx(
        evenness(read[:, np.newaxis], np.ones(read.size))[0], rel=1e-3
    )
    pair = heat_plane(sources=Grid(4), sensors=SPOTS[:2], diffusion_time=0.001)
    assert shared_level(pair, np.ones(2), sigma=1e-3) is None


@pytest.mark.unit
def test_evenness_is_the_share_of_a_constant() -> None:
    columns = np.array([[1.0, 3.0, 0.0], [1.0, 1.0, 0.0]])
    assert evenness(columns, np.ones(2)) == pytest.approx([1.0, 16 / 20, 0.0])


@pytest.mark.statistical
def test_noise_around_a_level_is_seldom_an_offset(rng: np.random.Generator) -> None:
    """Three standard errors: 0.13 % of rounds; a person in one place is none either."""
    rounds = 2_000
    noise = rng.normal(0, SIGMA, (rounds, len(SPOTS)))
    found = sum(shared_level(FLOOR, one, sigma=SIGMA) is not None for one in noise)
    assert binom.sf(found - 1, rounds, norm.sf(3)) > LEVEL
    masses = np.zeros(FLOOR.space.size)
    masses[77] = 1.0
    one = FLOOR.readings(masses)
    assert not any(shared_level(FLOOR, one + some, sigma=SIGMA) for some in noise[:300])
    # The rival has an offset of eight errors, and is found nearly always.
    high = 8 * SIGMA / np.sqrt(len(SPOTS))
    assert (
        sum(shared_level(FLOOR, high + some, sigma=SIGMA) is not None for some in noise[:300]) > 250
    )
