"""A small plan with its keys, and a session of it in threads of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from sfumato.heatmap.shuffled import Device, Keys, ShufflePlan, Shuffler, plan_shuffled
from sfumato.privacy import Shuffled
from sfumato.spaces import area_in_degrees

ADDER, SHUFFLER = Keys(bytes(range(32))), Keys(bytes(range(1, 33)))
SESSION = bytes(range(16))
BOUNDS = (11.2, 43.74, 11.32, 43.81)
PLACE, FAR = (11.21, 43.75), (11.31, 43.80)


def small_plan(trust: Shuffled | None = None, *, levels: int = 1, **changed: Any) -> ShufflePlan:
    """Four cells in one round, and few messages: at an epsilon and a delta that nobody should ask for."""
    asked: dict[str, Any] = {"epsilon": 4, "delta": "1/10", "width": 4, "units": 1, **changed}
    return plan_shuffled(
        area_in_degrees(BOUNDS, levels),
        trust=trust or Shuffled(16, 20, 1),
        adder=ADDER.public,
        shuffler=SHUFFLER.public,
        **asked,
    ).plan


def devices_of(plan: ShufflePlan, many: int) -> list[Device]:
    """Devices at one place."""
    return [Device(plan, [PLACE]) for _ in range(many)]


@contextmanager
def running(plan: ShufflePlan, **options: Any) -> Iterator[str]:
    """The address of a shuffler that runs in a thread."""
    ports: list[int] = []
    ready, loops = Event(), []

    def found(port: int) -> None:
        ports.append(port)
        ready.set()

    def run() -> None:
        async def serve() -> None:
            shuffler = Shuffler(plan, SHUFFLER, **{"wait": 600.0, "enrolled": None, **options})
            loops.append((asyncio.get_running_loop(), shuffler))
            await shuffler.serve("127.0.0.1", 0, ready=found)

        asyncio.run(serve())

    thread = Thread(target=run)
    thread.start()
    assert ready.wait(600)
    try:
        yield f"127.0.0.1:{ports[0]}"
    finally:
        loop, shuffler = loops[0]
        if loop.is_running():
            asyncio.run_coroutine_threadsafe(shuffler._end(), loop).result(600)
        thread.join(600)
        assert not thread.is_alive()
