"""Noise for each sensor beside an offset of all readings that nobody knows: fitted by 1 / sigma_k**2."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator
from tests.sensing.test_noise_each import network, two_rings

from sfumato._types import FloatArray
from sfumato.privacy import ApproxDP
from sfumato.sensing import (
    check_recovery,
    graph_diffusion,
    open_ledger,
    plan_sensors,
    recover_sources,
    release_readings,
)
from sfumato.sensing.diagnostics.field import fit_field
from sfumato.sensing.diagnostics.field_offset import remove_offset, whitened
from sfumato.sensing.diagnostics.field_sensors import faulty_sensors
from sfumato.sensing.diagnostics.shared_level import shared_level
from sfumato.sensing.model.level import Level
from sfumato.sensing.model.operators.weighted import Weighted, weighted
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.certified_error import strong_directions
from sfumato.sensing.recovery.error_bound import certify_error
from sfumato.sensing.recovery.verify_error import check_error

NET = graph_diffusion(two_rings(), rate=0.5)


@pytest.fixture
def gains(rng: Generator) -> FloatArray:
    return np.exp2(rng.uniform(-2, 2, 26))


def test_contrasts_of_weighted_readings_know_no_offset(gains: FloatArray) -> None:
    made = weighted(NET, gains)
    turned = np.array([remove_offset(made, unit)[1] for unit in np.eye(26)]).T
    assert turned @ turned.T == pytest.approx(np.eye(25), abs=1e-14)
    assert turned @ gains == pytest.approx(np.zeros(25), abs=1e-13)
    white = whitened(np.eye(26), 0.3, 0.7, gains)
    covariance = 0.09 * np.eye(26) + 0.49 * np.outer(gains, gains)
    assert white @ covariance @ white.T == pytest.approx(0.09 * np.eye(26), abs=1e-13)


def test_a_large_weighted_operator_is_never_formed(
    gains: FloatArray, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = weighted(NET, gains)
    whole, _ = remove_offset(made, np.zeros(26))
    monkeypatch.setattr("sfumato.sensing.diagnostics.field_offset.LARGE", 0)
    lazy, _ = remove_offset(made, np.zeros(26))
    f, z = rng.random(26), rng.standard_normal(25)
    assert lazy.readings(f) == pytest.approx(whole.readings(f), abs=1e-12)
    assert lazy.readings(f) @ z == pytest.approx(f @ lazy.adjoint(z), abs=1e-11)


def test_the_offset_is_the_weighted_mean_with_its_error(gains: FloatArray, rng: Generator) -> None:
    """Without sources: sum b / sigma_k**2 over sum 1 / sigma_k**2, and no better with the plain mean."""
    made, sigma = weighted(NET, gains), 0.05
    y = gains * 0.2 + sigma * rng.standard_normal(26)
    found = fit_field(made, y, sigma=sigma, offset=np.inf, sources=1, max_mass=1e-9)
    weights = (gains / sigma) ** 2
    assert found.offset == pytest.approx(weights @ (y / gains) / weights.sum(), rel=1e-6)
    assert found.offset_error >= weights.sum() ** -0.5
    assert found.readings == pytest.approx(y - found.offset * gains, abs=1e-12)


def test_no_answer_and_no_certificate_hangs_on_the_offset(
    gains: FloatArray, rng: Generator
) -> None:
    made, sigma = weighted(NET, gains), 0.01
    y = made.columns([4])[:, 0] + sigma * rng.standard_normal(26)
    truth = Estimate(made, made.space.places(np.array([4])), np.ones(1))
    bounds = []
    for offset in (0.0, 50.0):
        read = y + offset * gains
        found = certify_error(made, read, truth, sigma=sigma, offset=True)
        assert found is not None
        assert check_error(found, made, read, truth, sigma=sigma, max_mass=1.0) == ""
        plain = replace(found, offset=False)
        assert check_error(plain, made, read, truth, sigma=sigma, max_mass=1.0) != ""
        bounds.append(found.bound)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-3)
    seen = strong_directions(made, sigma=sigma, max_mass=1.0, offset=True)
    assert np.abs(gains @ seen).max() < 1e-12
    # Directions that know nothing of a plain constant see this offset, and are refused.
    wrong = strong_directions(NET, sigma=sigma, max_mass=1.0, offset=True)
    assert np.abs(gains @ wrong).max() > 0.01


def test_a_shared_level_is_told_in_the_sensors_own_unit(gains: FloatArray) -> None:
    made = weighted(NET, gains)
    found = shared_level(made, 5.0 * gains, sigma=0.01)
    assert found is not None
    assert found.offset == pytest.approx(5.0)
    assert found.share == pytest.approx(1.0)
    assert found.offset_error == pytest.approx(0.01 / np.linalg.norm(gains))
    assert shared_level(made, np.full(26, 5.0) - 6 * gains, sigma=0.01) is None


def test_a_stuck_sensor_is_told_in_its_own_unit(gains: FloatArray) -> None:
    made = weighted(NET, gains)
    y = made.columns([3])[:, 0] + 2.0 * gains
    y[7] += 30.0 * gains[7]
    plain, *_ = faulty_sensors(NET, y / gains, sigma=0.05, offset=True)
    found, *_ = faulty_sensors(made, y, sigma=0.05, offset=True)
    assert found.sensor == plain.sensor == made.sensors.names[7]
    assert found.off == pytest.approx(30.0, rel=0.05)
    assert found.off == pytest.approx(plain.off, rel=0.05)


def test_a_release_with_an_unknown_offset_is_recovered_and_checked(tmp_path: Path) -> None:
    """Planned for an offset, released, fitted: the same whatever the offset was; the answer is checked."""
    before = replace(network(0.5), level=Level(Fraction(20)))
    loss = ApproxDP(10**4, "1e-6")
    told = plan_sensors(before, loss, offset=True, trials=0)
    site = told.design.site
    assert isinstance(site.operator, Weighted)
    book = open_ledger(before, tmp_path / "net.ledger", ApproxDP(10**6, "1e-2")).ledger
    # The room is 3 warmer than anybody said.
    exact = before.operator.columns([3])[:, 0] + 23.0
    read = dict(zip(site.sensors.names, exact.tolist(), strict=True))
    out = tmp_path / "noisy.json"
    release_readings(read, site, ledger=book, loss=loss, out=[out])
    found = recover_sources(out, fit=["offset"])
    assert found.diagnostics.field is not None
    assert found.diagnostics.field.offset == pytest.approx(3.0, abs=0.02)
    assert found.answer is not None
    assert found.answer.estimate.places[0] == pytest.approx([3.0])
    assert found.diagnostics.error is not None
    assert found.diagnostics.error.offset
    found.write(tmp_path / "found.json")
    assert check_recovery(tmp_path / "found.json").holds
    level = recover_sources(out, estimator="least").diagnostics.level
    assert level is not None
    assert level.offset == pytest.approx(3.0, abs=0.1)
