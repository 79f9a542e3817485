"""Certified errors where noise is Laplace: how far it moves a direction, its means, and what checks refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from tests.chance import LEVEL

from sfumato._types import IntArray
from sfumato.privacy import PureDP
from sfumato.privacy.noise import SystemNoise
from sfumato.sensing import (
    check_recovery,
    describe_site,
    graph_diffusion,
    heat_line,
    open_ledger,
    plan_sensors,
    read_recovery,
    recover_sources,
    release_readings,
)
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.planning import SyntheticOptions
from sfumato.sensing.recovery import ErrorCertificate, check_error
from sfumato.sensing.recovery.certified_error import (
    LaplaceNoise,
    direction_quantiles,
    laplace_quantile,
    noise_quantile,
    strong_directions,
)
from sfumato.sensing.recovery.merging import _mean_of_laplace
from sfumato.sensing.render import plan_text, recovery_text
from sfumato.spaces import Graph

ONE = LaplaceNoise()
LINE = heat_line(sources=30, sensors=12, diffusion_time=0.01)
RING = graph_diffusion(Graph([(i, (i + 1) % 24) for i in range(24)]), 0.1)


@pytest.mark.unit
@pytest.mark.parametrize("failure", [0.1, 0.01, 0.001])
def test_quantiles_are_those_of_laws_that_are_known(failure: float) -> None:
    """One number; a mean of two, P(|S| > x) = e^-2x (1 + x) in units of its scale; and many, near Gaussian."""
    assert laplace_quantile(np.ones(1), ONE, failure) == pytest.approx(
        -math.log(failure) / math.sqrt(2), rel=1e-3
    )
    two = laplace_quantile(np.ones(2), LaplaceNoise(0.5), failure) * 2 * math.sqrt(2) / 2
    assert math.exp(-2 * two) * (1 + two) == pytest.approx(failure, rel=3e-3)
    assert laplace_quantile(np.ones(1), LaplaceNoise(0.5, 2), failure) == pytest.approx(
        laplace_quantile(np.ones(2), LaplaceNoise(0.5), failure), rel=1e-5
    )
    many = laplace_quantile(np.full(4000, 4000**-0.5), ONE, failure)
    assert many == pytest.approx(stats.norm.isf(failure / 2), rel=2e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("operator", [LINE, RING], ids=["line", "graph"])
def test_noise_stays_within_the_directions_as_often_as_stated(
    operator: Operator, rng: Generator
) -> None:
    """And not much oftener; what Gaussian noise stays within, Laplace noise leaves too often on the graph."""
    directions = strong_directions(operator, sigma=0.05, max_mass=1.0, offset=False)
    within = direction_quantiles(directions, 0.9, ONE)
    noise = rng.laplace(scale=math.sqrt(0.5), size=(20_000, operator.shape[0])) @ directions
    held = int((np.abs(noise) <= within).all(axis=1).sum())
    assert stats.binomtest(held, 20_000, 0.9, alternative="less").pvalue > LEVEL
    assert held < 0.93 * 20_000
    rival = noise_quantile(directions.shape[1], 0.9)
    if operator is RING:
        held = int((np.abs(noise) <= rival).all(axis=1).sum())
        assert stats.binomtest(held, 20_000, 0.9, alternative="less").pvalue < LEVEL


@pytest.mark.statistical
def test_means_of_rounds_are_no_wider_than_is_counted(rng: Generator) -> None:
    """Rounds of several widths, and sensors that miss some: each mean leaves the quantile no oftener."""
    rounds = [[1.0, 1.0, 2.0], [1.0, 1.0], [2.0, 1.0, 1.0, 1.0]]
    sigma = max(np.power(one, -2.0).sum() ** -0.5 for one in rounds)
    counted = _mean_of_laplace(sigma, rounds)
    assert counted.share**2 * counted.terms >= 1
    within = sigma * laplace_quantile(np.ones(1), counted, 0.02)
    for one in rounds:
        sigmas = np.array(one)
        noise = rng.laplace(scale=sigmas * math.sqrt(0.5), size=(50_000, sigmas.size))
        mean = noise @ sigmas**-2 / (sigmas**-2).sum()
        beyond = int((np.abs(mean) > within).sum())
        assert stats.binomtest(beyond, 50_000, 0.02, alternative="greater").pvalue > LEVEL
        if one == [1.0, 1.0]:  # the other arm: what Gaussian noise of its width stays within
            rival = int((np.abs(mean) > stats.norm.isf(0.01) * math.sqrt(0.5)).sum())
            assert stats.binomtest(rival, 50_000, 0.02, alternative="greater").pvalue < LEVEL
    # Of equal rounds it is the mean itself: of the fewest, where some are missing.
    assert _mean_of_laplace(0.5, [[1.0] * 4, [1.0] * 6]) == (0.5, 4)


def test_a_recovery_of_laplace_readings_is_certified_saved_checked_and_paid_for(
    tmp_path: Path, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(_: SystemNoise, scale: Fraction, size: int) -> IntArray:
        """The same in every run: one draw in a hundred explains no sources, which is certified nothing."""
        return np.rint(rng.laplace(scale=float(scale), size=size)).astype(np.int64)

    monkeypatch.setattr(SystemNoise, "laplace", drawn)
    line = heat_line(sources=24, sensors=12, diffusion_time=0.01)
    site = describe_site("hall", operator=line, radius="1/40", unit="mass", per_source=1).site
    book = open_ledger(site, tmp_path / "hall.ledger", PureDP(400)).ledger
    exact = dict(zip(site.sensors.names, line.columns([9])[:, 0].tolist(), strict=True))
    rounds = [("1", exact), ("2", exact)]
    made = release_readings(
        rounds, site, ledger=book, loss=PureDP(100), out=[tmp_path / "noisy.json"]
    )
    one = recover_sources(made.readings, estimator="least", time="1")
    both = recover_sources(made.readings, estimator="least", average=True)
    for found, terms in ((one, 1), (both, 2)):
        error = found.diagnostics.error
        assert error is not None
        assert error.laplace == pytest.approx((terms**-0.5, terms))
        assert "at worst: within" in recovery_text(found)
        path = tmp_path / f"{terms}.json"
        found.write(path)
        again = read_recovery(path)
        assert again.diagnostics.error is not None
        assert again.diagnostics.error.laplace == error.laplace
        told = check_recovery(path, readings=tmp_path / "noisy.json", ledgers=[book])
        assert told.holds, told.why
    alone, mean, sigma = one.diagnostics.error, both.diagnostics.error, one.sigma
    assert isinstance(alone, ErrorCertificate)
    assert isinstance(mean, ErrorCertificate)
    assert sigma is not None
    # A mean of two is told within less; of one draw its bound may be the larger one.
    within = [
        float(one.sigma or 0) * direction_quantiles(error.directions, 0.9, error.laplace).max()
        for one, error in ((one, alone), (both, mean))
    ]
    assert within[1] < 0.72 * within[0]
    # As Gaussian noise it would prove less than it says, or be of other readings than these.
    forged = replace(mean, laplace=None)
    whole = replace(both, diagnostics=replace(both.diagnostics, error=forged))
    told = check_recovery(whole, readings=tmp_path / "noisy.json", ledgers=[book])
    assert not told.holds
    # What the ledger paid for is stated as its readings state it.
    for lie in (replace(both, statement="(0.01)-DP"), replace(both, rehearsal=True)):
        told = check_recovery(lie, readings=tmp_path / "noisy.json", ledgers=[book])
        assert not told.holds
        assert "another promise" in told.why
    none = [(0.5, 2), (math.nan, 1), (1.0, 0), (1e300, 1), (1.0, 10**300)]
    for laplace in [LaplaceNoise(*one) for one in none]:
        certified = replace(alone, laplace=laplace)
        wrong = check_error(
            certified, line, one.certificate.readings, one.estimate, sigma=sigma, max_mass=1.0
        )
        assert wrong


def test_a_plan_of_epsilon_alone_says_what_will_be_certified(rng: Generator) -> None:
    small = SyntheticOptions(sensors=20, cells=20, diffusion_time=0.01)
    made = plan_sensors(small, PureDP(80), trials=2, rng=rng)
    assert made.certificate is not None
    assert made.certificate.bound is not None
    assert "the certificate will be about" in plan_text(made)
