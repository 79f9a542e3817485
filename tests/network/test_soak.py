"""The short form of `make soak`: real processes of a sensor, the broker and the collector, each killed once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.network.soak.kills import kill_cycles
from tests.network.soak.system import running


@pytest.mark.fault
def test_kills_of_real_processes_repeat_nothing_and_lose_nothing_accepted(tmp_path: Path) -> None:
    with running(tmp_path, sensors=2) as network:
        is_sound, told = kill_cycles(network, 3, seed=1, wait=0.5)
    assert is_sound, told
