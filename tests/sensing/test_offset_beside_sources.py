"""The total mass and an offset that nobody knows: each told as surely as the other leaves it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import ndtri
from tests.chance import assert_share

from sfumato._types import FloatArray
from sfumato.privacy import MovedMass
from sfumato.sensing import heat_line, heat_plane, recover_sources
from sfumato.sensing.diagnostics.field_offset import contrasts_of
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of, weighted
from sfumato.sensing.planning import synthetic_site
from sfumato.sensing.planning.synthetic import block_graph
from sfumato.sensing.recovery.estimators import posterior as drawing
from sfumato.sensing.render import recovery_text
from sfumato.sensing.results import RecoveryResult
from sfumato.spaces import Grid, Line

SIGMA = 0.03
HALL = heat_line(sources=30, sensors=15, diffusion_time=0.01)


def town(rng: np.random.Generator) -> Operator:
    """A network of two communities, which keeps all mass: sensors together read all that there is."""
    graph, _ = block_graph([30, 30], inside=0.2, across=0.01, rng=rng)
    return graph_diffusion(graph, 0.5)


def recovered(operator: Operator, readings: FloatArray, estimator: str) -> RecoveryResult:
    """With an offset fitted; the noise is that of every reading."""
    site = synthetic_site("town", operator, MovedMass("1/8", operator.space.metric))
    values = dict(zip(site.sensors.names, readings.tolist(), strict=True))
    return recover_sources(
        values, site=site, noise=SIGMA, estimator=estimator, fit=["offset"], certify=False, seed=1
    )


@pytest.mark.reference
def test_draws_beside_an_offset_are_those_of_contrasts(rng: np.random.Generator) -> None:
    """The scalar products of moves are those of readings whose offset a rotation took out."""
    plane = heat_plane(sources=Grid(2), sensors=rng.random((5, 2)), diffusion_time=0.02)
    for made in (HALL, plane, town(rng), linear(rng.random((4, 9)), Line(9))):
        for operator in (made, weighted(made, np.exp2(rng.uniform(-2, 2, len(made.sensors))))):
            level, cells = gains_of(operator), np.arange(operator.space.size)
            y = rng.standard_normal(len(level))
            columns = contrasts_of(operator.columns(cells), level)
            gram, *_ = drawing._gram(operator, cells, level)
            assert gram == pytest.approx(columns.T @ columns, abs=1e-9)
            assert (np.diag(gram) >= 0).all()
            score = operator.adjoint(drawing._beside(y, level))
            assert score == pytest.approx(columns.T @ contrasts_of(y, level), abs=1e-9)


@pytest.mark.unit
def test_a_source_that_all_sensors_read_alike_tells_nothing(rng: np.random.Generator) -> None:
    flat = linear(np.full((4, 3), 0.5), Line(3))
    gram, *_ = drawing._gram(flat, np.arange(3), np.ones(4))
    assert gram == pytest.approx(np.zeros((3, 3)), abs=1e-15)
    found = drawing.posterior(
        flat, 0.5 + 0.1 * rng.standard_normal(4), sigma=0.1, rng=rng, max_sources=1, masses="free", offset=True
    )  # fmt: skip
    low, high = found.total()
    # The prior: a floor uniform in (0, 1), and a mass uniform above it; P(mass < w) = w + (1 - w) log(1 - w).
    assert low == pytest.approx(0.3, abs=0.1)
    assert high == pytest.approx(0.995, abs=0.02)


@pytest.mark.unit
def test_the_offset_of_one_draw_is_normal_around_what_it_leaves(rng: np.random.Generator) -> None:
    y = HALL.columns([3])[:, 0] + 2.0
    found = drawing.posterior(
        HALL, y, sigma=1e-3, rng=rng, max_sources=1, masses="known", offset=True
    )
    told = found.offset(0.9)
    error = 1e-3 * found.widened * found.off_center / 15**0.5
    assert told.value == pytest.approx(2.0, abs=1e-9)
    assert told.error == pytest.approx(error, rel=1e-9)
    for end, share in zip(told.interval, (0.05, 0.95), strict=True):
        # Of 64 equally likely quantiles, one is taken.
        assert abs((end - 2.0) / error - ndtri(share)) < 0.2


@pytest.mark.unit
@pytest.mark.parametrize("offset", [0.0, 0.4])
def test_total_and_offset_are_told_as_far_as_they_can_be(
    rng: np.random.Generator, offset: float
) -> None:
    operator = town(rng)
    y = operator.columns([7])[:, 0] + offset + SIGMA * rng.standard_normal(60)
    found = recovered(operator, y, "bayes-median")
    field, answer = found.diagnostics.field, found.answer
    assert field is not None
    assert answer is not None
    assert answer.beliefs is not None
    assert field.offset_interval is not None
    assert field.offset_error is not None
    # Mass that is not known is offset that is not known: a unit adds 1/60 to the mean of all sensors.
    low, high = answer.beliefs.total
    known = SIGMA / 60**0.5
    assert field.offset_error >= known
    assert field.offset_interval[1] - field.offset_interval[0] >= (high - low) / 60
    assert found.verdict.kind == "care"
    assert "what differs between sensors alone" in recovery_text(found)
    assert "takes the fitted field for known" not in recovery_text(found)
    assert "with 90 %, sources being unknown too" in recovery_text(found)
    data = json.loads(json.dumps(found.to_json()))
    assert data["field"]["offset_interval"] == list(field.offset_interval)
    assert RecoveryResult.from_json(data).diagnostics.field == field
    del data["field"]["offset_interval"]  # as files of before
    older = RecoveryResult.from_json(data).diagnostics.field
    assert older is not None
    assert older.offset_interval is None


@pytest.mark.unit
@pytest.mark.parametrize("estimator", ["least", "mixture"])
def test_who_takes_the_offset_for_known_says_so(rng: np.random.Generator, estimator: str) -> None:
    operator = HALL
    y = 0.8 * operator.columns([7])[:, 0] + 0.4 + SIGMA * rng.standard_normal(15)
    found = recovered(operator, y, estimator)
    assert found.diagnostics.field is not None
    assert found.diagnostics.field.offset_interval is None
    said = recovery_text(found)
    assert "the total mass and the offset cannot be told apart here" in said
    assert "takes the fitted field for known" in said
    assert json.loads(json.dumps(found.to_json()))["verdict"]["kind"] == "care"


@pytest.mark.statistical
@pytest.mark.parametrize("offset", [0.0, 0.2])
def test_intervals_hold_what_is_so_in_a_town(rng: np.random.Generator, offset: float) -> None:
    """One source, of mass 1, in a network where sensors far away read nearly as much as those beside it.

    Where the fitted offset was taken for known, the total was held in 5 of 30 such releases.
    """
    graph, _ = block_graph([100, 100], inside=0.2, across=0.005, rng=rng)
    made, sigma, trials = graph_diffusion(graph, 0.5), 0.017, 60
    totals = offsets = 0
    for _ in range(trials):
        y = made.columns([int(rng.integers(200))])[:, 0] + offset
        y += sigma * rng.standard_normal(200)
        found = drawing.posterior(made, y, sigma=sigma, rng=rng, offset=True)
        low, high = found.total_beside_offset(0.9)
        totals += low <= 1 + 1e-9 and high >= 1 - 1e-9
        low, high = found.offset(0.9).interval
        offsets += low <= offset <= high
    # At least 90 %; more where masses of exactly 1 are believed in, of which an interval holds all.
    for held in (totals, offsets):
        assert_share(held, trials, 0.95, rivals=[0.3])
