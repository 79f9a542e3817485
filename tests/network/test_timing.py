"""When a packet is sent tells nothing of what was read; a sensor that takes longer for more is found."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.chance import LEVEL
from tests.network.ready import make_sensor, make_site

from sfumato.network.sensors import Sensor, SystemClock, keep_rounds
from sfumato.network.sensors.outbox import Outbox

PERIOD = 20


class Read:
    """Readings drawn from 0 to 1, remembered; each takes `slow` seconds times its value."""

    def __init__(self, rng: np.random.Generator, slow: float) -> None:
        self.values: list[float] = []
        self._rng, self._slow = rng, slow

    def take(self) -> Mapping[str, float]:
        self.values.append(float(self._rng.random()))
        time.sleep(self._slow * self.values[-1])
        return {"0": self.values[-1]}

    def close(self) -> None:
        """Nothing to close."""


class Sent:
    """How long after its round each packet was sent, and of what size it was; it is acknowledged at once."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.after: list[float] = []
        self.sizes: set[int] = set()

    def publish(self, _: str, payload: bytes, *, tag: int = 0) -> None:
        self.after.append(time.time() * 1000 - tag)
        self.sizes.add(len(payload))
        self._outbox.sent(tag)


def run(sensor: Sensor, source: Read, sent: Sent, rounds: int) -> float:
    """So many rounds more; how likely such a rank correlation would be if times told nothing."""
    keep_rounds(sensor, source, sent, clock=SystemClock(), rounds=rounds)
    assert len(source.values) == len(sent.after)
    return float(stats.spearmanr(source.values, sent.after).pvalue)


@pytest.mark.statistical
def test_times_do_not_follow_values_and_a_sensor_that_dawdles_is_caught(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    make_site(tmp_path)
    config = replace(make_sensor(tmp_path), period_ms=PERIOD)
    sensor = Sensor(config)
    sent = Sent(sensor.outbox)
    assert run(sensor, Read(rng, 0.0), sent, 120) > LEVEL
    assert len(sent.sizes) == 1
    # On a busy machine it takes more rounds to tell, up to a minute of them.
    dawdling, late = Read(rng, 0.75 * PERIOD / 1000), Sent(sensor.outbox)
    found = 1.0
    while found > LEVEL and len(late.after) < 3000:
        found = run(sensor, dawdling, late, 40)
    sensor.close()
    assert found < LEVEL


SIGNALS = """
import random, signal
from sfumato.network.sensors import SystemClock

for _ in range(1500):
    clock = SystemClock()
    signal.signal(signal.SIGALRM, lambda *_: clock.stop())
    signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 5e-4))
    assert not clock.wait_until(clock.now_ms() + 3_600_000)
"""


@pytest.mark.fault
def test_a_signal_at_any_moment_ends_a_wait() -> None:
    """It came while the wait held a lock that the handler needs, and the sensor never ended."""
    subprocess.run([sys.executable, "-c", SIGNALS], check=True, timeout=600)
