"""What all tests of parties in one process have in common."""

from __future__ import annotations

import pytest
from tests.heatmap.distributed.in_threads import count_one_at_a_time


@pytest.fixture(autouse=True)
def one_count_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads do not count at once."""
    count_one_at_a_time(monkeypatch)
