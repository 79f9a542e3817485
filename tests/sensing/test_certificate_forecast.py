"""A plan says how wide certificates will be: about what recoveries then state, and nothing where it is slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.privacy import ApproxDP
from sfumato.sensing import plan_sensors, recover_sources
from sfumato.sensing.planning import SyntheticOptions
from sfumato.sensing.render import plan_text
from sfumato.sensing.results import SensorPlan

SMALL = SyntheticOptions(sensors=20, cells=20, diffusion_time=0.01)


def test_a_plan_states_about_the_certificate_that_recoveries_have(rng: np.random.Generator) -> None:
    made = plan_sensors(SMALL, ApproxDP(8, "0.1"), trials=3, rng=rng)
    found, design = made.certificate, made.design
    assert found is not None
    assert found.draws - found.none > 0
    assert found.low <= found.bound <= found.high  # type: ignore[operator]
    operator = design.site.operator
    bounds = []
    for cell in (3, 9, 16):
        y = operator.columns([cell])[:, 0] + made.noise.sigma * rng.standard_normal(20)
        told = recover_sources(y, site=design.site, noise=made.noise.sigma, estimator="least")
        proved = told.diagnostics.error
        bounds += [] if proved is None else [proved.bound]
    assert found.bound / 3 < np.median(bounds) < 3 * found.bound  # type: ignore[operator]
    # The other arm: with far less noise it is far smaller.
    quiet = plan_sensors(SMALL, ApproxDP(500, "0.1"), trials=3, rng=rng).certificate
    assert quiet is not None
    assert quiet.bound < found.bound / 2  # type: ignore[operator]


def test_what_is_said_and_saved(rng: np.random.Generator) -> None:
    made = plan_sensors(SMALL, ApproxDP(8, "0.1"), trials=2, rng=rng)
    assert "the certificate will be about" in plan_text(made)
    assert SensorPlan.from_json(made.to_json()).certificate == made.certificate
    assert made.certificate is not None
    nothing = replace(made.certificate, bound=None, low=None, high=None, least=None, none=2)
    assert "no answer would be certified" in plan_text(replace(made, certificate=nothing))


def test_where_it_takes_long_it_is_not_tried_and_where_nothing_is_simulated_nothing_is_said(
    rng: np.random.Generator,
) -> None:
    large = SyntheticOptions(sensors=4, cells=600)
    made = plan_sensors(large, ApproxDP(4, "0.1"), trials=2, rng=rng)
    assert made.certificate is not None
    assert made.certificate.bound is None
    assert "was not tried" in plan_text(made)
    assert plan_sensors(SMALL, ApproxDP(4, "0.1"), trials=0, rng=rng).certificate is None
