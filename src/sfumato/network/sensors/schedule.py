"""When rounds are, and when they are sent: by the clock alone. No function here is given a reading."""

from __future__ import annotations

import queue
import re
import time
from dataclasses import dataclass
from typing import Protocol

from sfumato.errors import InvalidParameter

_SPANS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
LOOK = 0.5  # seconds after which a waiting clock is looked at again: it may have jumped


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rounds tile time from 1970 on, in UTC; every sensor of one period has the same ones.

    A packet is made at its round and sent a fixed time later, so that how long it took to make is not
    seen in when it is sent.
    """

    period_ms: int

    @property
    def lead_ms(self) -> int:
        """How long after its round a packet is sent: a quarter of the period, at most a second."""
        return min(self.period_ms // 4, 1000)

    def following(self, now_ms: int, last_ms: int) -> int:
        """The first round after both the present and the last round that was made.

        Where the clock went back, that is the round after the last one: until then nothing is made.

        >>> Schedule(1000).following(12_300, 11_000)
        13000
        >>> Schedule(1000).following(2_300, 11_000)
        12000
        """
        return (max(now_ms, last_ms) // self.period_ms + 1) * self.period_ms

    def is_past(self, round_ms: int, now_ms: int) -> bool:
        """Whether the next round has come already: the clock jumped, or the machine slept."""
        return now_ms >= round_ms + self.period_ms

    def send_at(self, round_ms: int) -> int:
        """When the packet of a round is sent."""
        return round_ms + self.lead_ms


@dataclass(slots=True)
class Pace:
    """No more than a round a period by a clock that nobody can set, whatever the other one says.

    A round may be half a period early, for clocks are adjusted; what it is early, the next ones wait.
    """

    period_ms: int
    _next: int = -(2**62)

    def take(self, elapsed_ms: int) -> bool:
        """Whether there may be a round now.

        >>> pace = Pace(1000)
        >>> [pace.take(ms) for ms in (0, 900, 1100, 1700, 2600)]
        [True, True, False, True, True]
        """
        if elapsed_ms < self._next - self.period_ms // 2:
            return False
        self._next = max(self._next, elapsed_ms) + self.period_ms
        return True


class Clock(Protocol):
    """What tells the time, and waits."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""

    def elapsed_ms(self) -> int:
        """Milliseconds since some moment, which nobody can set."""

    def wait_until(self, moment_ms: int) -> bool:
        """Wait; False if it was told to stop meanwhile."""


class SystemClock:
    """The clock of the system; `stop` ends a wait, from a signal too."""

    def __init__(self) -> None:
        # Not an Event: its `set` waits for a lock that the thread which a signal interrupts may hold.
        self._stop: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_stopped = False

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000

    def elapsed_ms(self) -> int:
        """Milliseconds that the machine ran."""
        return time.monotonic_ns() // 1_000_000

    def wait_until(self, moment_ms: int) -> bool:
        """Wait, and look at the clock again meanwhile; False if it was stopped."""
        while not self._is_stopped:
            left = (moment_ms - self.now_ms()) / 1000
            if left <= 0:
                return True
            try:
                self._stop.get(timeout=min(left, LOOK))
            except queue.Empty:
                continue
            self._stop.put(None)  # for others that wait
        return False

    def stop(self) -> None:
        """End this wait and all others."""
        self._is_stopped = True
        self._stop.put(None)


def parse_period(text: str) -> int:
    """How far apart rounds are, in milliseconds: a whole number of ms, s, m or h.

    >>> parse_period("90s")
    90000
    """
    found = re.fullmatch(r"([1-9][0-9]{0,5})(ms|s|m|h)", text.strip())
    if found is None or int(found[1]) * _SPANS[found[2]] < 20:
        raise InvalidParameter(
            f"a `period` is a number of ms, s, m or h, e.g. 500ms, 1s, 5m, and 20ms or more, got {text!r}"
        )
    return int(found[1]) * _SPANS[found[2]]
