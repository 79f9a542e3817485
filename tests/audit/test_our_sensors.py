"""We audit ourselves: sensors keep the guarantee that their readings state, together and each alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit.ours import FAST, Pairs, Rows, audited, breach, claimed, refuted

import sfumato.sensing as sensing
from sfumato.audit.assertion import assert_claim
from sfumato.audit.boxes.box import Pair, SampleBox
from sfumato.privacy import ZCDP, ApproxDP, Guarantee, Ledger, MovedMass
from sfumato.sensing.model.operators import HeatLine
from sfumato.sensing.release import Device, MasterKey, Snapshot, unit_of, write_device_key

pytestmark = pytest.mark.statistical

FEW = 1_200

MASS = 3.0


def hall(step: str = "0") -> sensing.Site:
    sensors = sensing.Sensors([0.2, 0.7], ["a", "b"])
    operator = sensing.heat_line(sources=10, sensors=sensors, diffusion_time=0.05)
    return sensing.Site(
        "hall",
        operator,
        MovedMass("1/10", "line"),
        Fraction(step),
        unit="mass",
        per_source=Fraction(1),
    )


def worst_move(site: sensing.Site, plan: sensing.NoisePlan) -> Pair:
    """Sources at the largest earth mover's distance that is promised for, where it changes readings most."""
    assert isinstance(site.neighbors, MovedMass)
    assert isinstance(site.operator, HeatLine)
    assert plan.sensitivity.place is not None
    half = float(site.neighbors.radius) / MASS / 2
    ways = site.sensors.positions[:, 0] - plan.sensitivity.place[0]
    before, after = (MASS * site.operator.kernel(ways - way) for way in (-half, half))
    return Pair(before, after, "a source moved by the radius")


def readings(
    site: sensing.Site, plan: sensing.NoisePlan, device: Device | None = None
) -> tuple[Callable[[Any], Snapshot], Guarantee]:
    def once(values: Any) -> Snapshot:
        ledger = Ledger.rehearsal(plan.cost, unit=unit_of(site.sensors), neighbors=site.neighbors)
        return sensing.release_snapshot(
            values, site, plan, ledger=ledger, device=device, public=True
        )

    return once, once(np.zeros(2)).guarantee


def all_sensors(once: Callable[[Any], Snapshot]) -> Pairs:
    return lambda values, runs: np.array([once(values).release.value for _ in range(runs)])


@pytest.fixture
def device(tmp_path: Path, key: bytes) -> Device:
    write_device_key(tmp_path / "d.key", MasterKey(key), "gateway")
    return Device(tmp_path / "d.key")


SENSED = ApproxDP(1, "1e-2")


def test_sealed_readings_keep_what_they_state_together_and_each(device: Device) -> None:
    """The seal itself is not looked at: it is a number that nobody without the key can tell from chance."""
    site = hall()
    plan = sensing.plan(site, SENSED)
    pair = worst_move(site, plan)
    once, stated = readings(site, plan, device)
    assert stated.loss == SENSED
    drawn = [all_sensors(once)(values, FEW // 2) for values in (pair.first, pair.second)]
    recorded(drawn, stated)
    for at, epsilon in enumerate(plan.per_sensor_loss("1e-2").tolist()):
        assert epsilon < 1
        recorded([one[:, at] for one in drawn], replace(stated, loss=ApproxDP(epsilon, "1e-2")))


def recorded(drawn: list[Rows], guarantee: Guarantee) -> None:
    """The audit of outputs that are there already: each claim about them is one audit."""
    box = SampleBox(drawn[0], drawn[1], "readings", [0, 0])
    verdict = assert_claim(box, claimed(guarantee), pairs=[Pair(0, 1, "a source moved")], runs=FEW)
    assert verdict.kind == "NOT_REFUTED"
    assert breach(verdict) <= 3


def test_readings_with_a_step_of_their_own_keep_what_they_state() -> None:
    """A reading rounded to a step moves by the whole of it, however little the source did."""
    site = hall("1/4")
    plan = sensing.plan(site, ZCDP("1/8"))
    smooth = worst_move(site, plan)
    step = float(site.step)
    rounded = [step * np.rint(np.asarray(one) / step) for one in (smooth.first, smooth.second)]
    once, stated = readings(site, plan)
    audited(
        all_sensors(once), Pair(rounded[0], rounded[1] + step, "rounded apart"), stated, runs=FEW
    )


def test_a_third_of_the_noise_of_a_sensor_is_refuted(device: Device) -> None:
    site = hall()
    plan = sensing.plan(site, SENSED)
    pair = worst_move(site, plan)
    once, stated = readings(site, plan, device)
    # Three times the readings with the same noise is the same as a third of it.
    triple = Pair(3 * pair.first, 3 * pair.second, pair.name)
    refuted(all_sensors(once), triple, stated, runs=FAST)
