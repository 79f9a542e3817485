"""Will it work? The first sentence of a plan, what would, and a plain no where nothing tried does."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.privacy import ZCDP, ApproxDP, MovedMass
from sfumato.sensing import heat_plane
from sfumato.sensing.model.operators.places import even_places
from sfumato.sensing.pipeline import plan_sensors
from sfumato.sensing.planning import synthetic_site
from sfumato.sensing.planning.forecast import ErrorForecast, RecoveryForecast
from sfumato.sensing.planning.outlook import Outlook
from sfumato.sensing.planning.requirement import Requirement
from sfumato.sensing.release.noise_plan import NoisePlan
from sfumato.sensing.render import plan_text
from sfumato.sensing.render.plan import outlook_line
from sfumato.sensing.render.plan_required import required_lines
from sfumato.sensing.results import SensorPlan
from sfumato.spaces import Grid

pytestmark = pytest.mark.unit
SIDE = 20.0
FLOOR = heat_plane(
    sources=Grid(3, (0, 0, SIDE, SIDE)),
    sensors=even_places(36, np.zeros(2), np.full(2, SIDE)),
    diffusion_time=2.0,
)
SITE = synthetic_site("floor", FLOOR, MovedMass("1", FLOOR.space.metric))


@pytest.fixture(scope="module")
def hourly() -> SensorPlan:
    return plan_sensors(SITE, ApproxDP(8, "1e-5"), readings=24)


def test_a_day_of_hourly_readings_of_a_floor_will_not_work(hourly: SensorPlan) -> None:
    found = hourly.outlook
    assert found.kind == "no"
    assert found.seen < 1 < found.needed
    said, *_ = plan_text(hourly).splitlines()
    assert said == outlook_line(hourly)
    assert said.startswith("will it work? no: one source is read as up to 0.0")
    assert "it would with about epsilon" in said
    data = hourly.to_json()
    assert data["outlook"]["kind"] == "no"
    assert data["outlook"]["said"] == said
    assert SensorPlan.from_json(data).outlook == found


@pytest.mark.parametrize("loss", [ApproxDP(1, "1e-6"), ZCDP("1/50")])
def test_what_would_work_does(loss: ZCDP | ApproxDP) -> None:
    found = plan_sensors(SITE, loss).outlook
    assert found.cost is not None
    more: ZCDP | ApproxDP = (
        ZCDP(str(found.cost * 1.02))
        if isinstance(loss, ZCDP)
        else ApproxDP(str(found.cost * 1.02), loss.delta)
    )
    better = plan_sensors(SITE, more).outlook
    assert better.kind == "yes"
    assert better.seen == pytest.approx(found.needed, rel=0.05)
    assert (better.cost, better.radius) == (None, None)


def forecast(mean: float) -> RecoveryForecast:
    return RecoveryForecast(ErrorForecast("least mass", mean, mean, mean, 1.0, 100, 0), None, 1.0)


def test_who_sees_one_source_and_not_several_is_advised_nothing() -> None:
    """As it was: told to pay the epsilon that was asked, and to take a larger radius."""
    plan = plan_sensors(SITE, ApproxDP(10_000, "1e-6"), sources=4, trials=0)
    plan = replace(plan, forecast=forecast(0.8))
    found = plan.outlook
    assert found.kind != "yes"
    assert found.seen >= found.needed
    assert (found.cost, found.readings, found.radius, found.averaged) == (None, None, None, False)
    said = outlook_line(plan)
    assert said.endswith("one source is seen, but 4 sources are not told apart")
    assert "it would" not in said


@pytest.mark.parametrize("sigma", [1e4, 1e200, 1e308])
@pytest.mark.parametrize("loss", [ApproxDP(8, "1e-5"), ZCDP(1)])
@pytest.mark.parametrize("readings", [None, 24])
def test_what_no_budget_would_see_is_said(
    sigma: float, loss: ZCDP | ApproxDP, readings: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hopeless = plan_sensors(SITE, loss, readings=readings, trials=0)
    monkeypatch.setattr(NoisePlan, "sigma", property(lambda _: sigma))
    assert (hopeless.outlook.kind, hopeless.outlook.cost) == ("no", None)
    name = "rho" if isinstance(loss, ZCDP) else "epsilon"
    assert outlook_line(hopeless).endswith(f"; no budget would, not even {name} 1,000,000")


def test_an_outlook_comes_back_from_its_file(hourly: SensorPlan) -> None:
    saved = json.loads(json.dumps(hourly.to_json()["outlook"]))
    assert Outlook.from_json(saved) == hourly.outlook
    with pytest.raises(InvalidInput, match="no outlook 'maybe'"):
        Outlook.from_json(saved | {"kind": "maybe"})


def test_what_is_reached_by_nothing_tried_is_a_plain_no(hourly: SensorPlan) -> None:
    error = ErrorForecast("least mass", 6.0, 5.0, 7.0, 1.0, 100, 0)
    needs = tuple(
        Requirement(axis, 2.0, "least mass", None, None, None, (9, 576), 36, error, 36, {36: error})
        for axis in ("sensors", "cost")
    )  # fmt: skip
    lines = required_lines(
        hourly.design, needs, even=10.0, total=hourly.total, readings=hourly.readings
    )
    assert any(line.startswith("so no: no number of sensors tried") for line in lines)
    assert not any("so buy" in line for line in lines)
