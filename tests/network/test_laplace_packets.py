"""Packets of epsilon alone: Laplace noise is paid, sealed, named, taken off, and known to who recovers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.network.ready import SITE, START, make_sensor, make_site

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.network import decode, encode, unseal_packets
from sfumato.network.collector.closed_rounds import promise_of
from sfumato.network.collector.recoveries import live_round, loss_of
from sfumato.network.collector.rounds import ClosedRound
from sfumato.network.sensors import Sensor, describe_sensor, write_device_table
from sfumato.network.wire import WireLoss
from sfumato.privacy import ApproxDP, Ledger, PureDP
from sfumato.sensing.pipeline import LiveRecovery
from sfumato.sensing.release import read_master_key, read_noise_plan

pytestmark = pytest.mark.unit

NAMES = ("0", "1", "2", "3")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_site(tmp_path)
    return tmp_path


def test_a_sensor_of_epsilon_alone_sends_what_its_key_holder_can_read(folder: Path) -> None:
    config = make_sensor(folder, sensors=NAMES, epsilon="3600", delta="0")
    assert config.budget == PureDP(3600)
    told, plan = describe_sensor(config), read_noise_plan(config.noise_plan)
    assert told.paid_rounds == told.rounds == 3600
    exact = dict(zip(NAMES, SITE.operator.columns([9])[:, 0].tolist(), strict=True))
    sensor = Sensor(config, now_ms=START)
    payload = sensor.make(START + 1000, exact)
    sensor.close()
    packet = decode(payload)
    assert encode(packet) == payload
    assert packet.law == "laplace"
    assert packet.deviation == pytest.approx(plan.sigma, rel=1e-12)
    assert loss_of(packet.cost) == PureDP(packet.cost.amount)
    assert packet.cost.delta == packet.left.delta == 0
    (file,) = (config.state / "windows").glob("*.ledger")
    assert Ledger(file).left() == PureDP(3600 - plan.cost.epsilon)  # type: ignore[union-attr]
    found = unseal_packets([packet], read_master_key(folder / "master.key"), site=SITE)
    assert found.refused == 0
    assert [row.value for row in found.rows] == pytest.approx(
        list(exact.values()), abs=2.0**packet.exponent
    )
    assert packet.numbers() != pytest.approx(list(exact.values()), abs=2.0**packet.exponent)
    # The collector knows the law, and what its rounds cost.
    closed = ClosedRound(
        packet.round_ms, "now", {name: (packet, at) for at, name in enumerate(NAMES)}, ()
    )
    one = live_round(closed)
    assert all(each.laplace and each.cost == loss_of(packet.cost) for each in one.readings.values())
    recovered = LiveRecovery(SITE, estimator="least").recover(one).recovery
    assert recovered is not None
    assert f"epsilon {packet.cost.amount:.4g}"[:9] in recovered.statement
    promise = promise_of([packet], None, 4)
    assert 0 < promise.epsilon_spent <= 4 * packet.cost.amount * (1 + 1e-9)
    # No number bounds costs of different kinds, and Gaussian noise keeps no epsilon alone: nothing is promised.
    other = replace(packet, device="other", law="gaussian", cost=WireLoss("rho", 1e-6))
    lies = replace(packet, law="rounded-gaussian")
    for packets in ([packet, other], [lies]):
        with pytest.raises(InvalidParameter, match="nothing was added up"):
            promise_of(packets, None, 4)


def test_a_round_costs_what_its_least_noise_costs(folder: Path) -> None:
    """Of epsilon with a delta neither number alone says which of two devices has less of it."""
    sensor = Sensor(make_sensor(folder, sensors=NAMES), now_ms=START)
    packet = decode(sensor.make(START + 1000, dict.fromkeys(NAMES, 0.0)))
    sensor.close()
    louder = replace(packet, law="rounded-gaussian", cost=WireLoss("epsilon", 1.0, 1e-9))
    softer = replace(louder, device="other", cost=WireLoss("epsilon", 0.9, 1e-3))
    promise = promise_of([louder, softer], None, 1)
    assert (promise.cost, promise.delta) == (0.9, 1e-3)


def test_a_microcontroller_and_a_budget_of_another_kind_are_refused(folder: Path) -> None:
    pure = make_sensor(folder, sensors=NAMES, epsilon="3600", delta="0")
    with pytest.raises(InvalidInput, match="Gaussian noise alone"):
        write_device_table(pure, folder / "table")
    assert not (folder / "table").exists()
    # Epsilon with a delta pays for epsilon alone, and not the other way round.
    mixed = make_sensor(folder, sensors=NAMES, epsilon="3600", delta="1e-6")
    assert isinstance(mixed.budget, ApproxDP)
    assert describe_sensor(mixed).paid_rounds == 3600
    mixed.noise_plan.unlink()
    make_sensor(folder, sensors=NAMES, epsilon="3600", delta="1e-6")
    with pytest.raises(InvalidInput, match="costs rho"):
        describe_sensor(make_sensor(folder, sensors=NAMES, epsilon="3600", delta="0"))


def test_other_laws_and_scales_that_are_none_are_refused(folder: Path) -> None:
    config = make_sensor(folder, sensors=NAMES, epsilon="3600", delta="0")
    sensor = Sensor(config, now_ms=START)
    payload = bytearray(sensor.make(START + 1000, dict.fromkeys(NAMES, 0.0)))
    sensor.close()
    assert payload[56] == 3
    payload[56] = 4
    with pytest.raises(InvalidInput, match="law"):
        decode(bytes(payload))
    payload[56] = 3
    for scale in (0.0, -1.0, 1e-4, np.inf, np.nan):
        payload[60:68] = np.array(scale, dtype=">f8").tobytes()
        with pytest.raises(InvalidInput):
            decode(bytes(payload))
