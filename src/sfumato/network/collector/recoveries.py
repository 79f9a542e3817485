"""Rounds recovered beside the collector, one by one: what does not fit in time is skipped, and said."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sfumato.errors import SfumatoError
from sfumato.network.collector.rounds import ClosedRound
from sfumato.network.wire import Packet, WireLoss
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.sensing.pipeline import LiveReading, LiveRecovery, LiveRound
from sfumato.sensing.results import RecoveredRound, TrackResult

Window = tuple[datetime, timedelta] | None
BACKLOG = 2
"""Rounds that may wait while one is recovered; when another comes, the oldest is put off."""
PUT_OFF = 10_000
"""Packets of rounds that are put off until there is time for them; the oldest rounds of more are skipped."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What came of a round.

    Attributes:
        closed: The round.
        found: Its recovery; None where it was skipped.
        track: The track through the last rounds; None where none is followed.
        problem: Why there is no recovery, or ""; a skipped round says so.
    """

    closed: ClosedRound
    found: RecoveredRound | None
    track: TrackResult | None = None
    problem: str = ""


def loss_of(told: WireLoss) -> ZCDP | ApproxDP | PureDP:
    """The loss that a packet states."""
    if told.kind == "rho":
        return ZCDP(told.amount)
    return ApproxDP(told.amount, told.delta) if told.delta else PureDP(told.amount)


def live_round(closed: ClosedRound) -> LiveRound:
    """A closed round as the pipeline takes it."""
    readings = {
        name: LiveReading(
            packet.numbers()[at],
            packet.deviation,
            loss_of(packet.cost),
            laplace=packet.law == "laplace",
        )
        for name, (packet, at) in closed.packets.items()
    }
    packets = [packet for packet, _ in closed.packets.values()]
    return LiveRound(
        closed.time, readings, window_of(packets), any(one.rehearsal for one in packets)
    )


def window_of(packets: list[Packet]) -> Window:
    """The window that packets are paid from; None where there is none, or devices state different ones."""
    windows = {one.window for one in packets}
    if len(windows) != 1:
        return None
    (one,) = windows
    return None if one is None else (one.began, timedelta(minutes=one.length))


class Recoveries:
    """Recovers rounds in the order in which they come, and follows sources through the last ones."""

    def __init__(self, live: LiveRecovery, *, track: int = 0, count: int = 1) -> None:
        self._live = live
        self._last: deque[LiveRound] = deque(maxlen=track or 1)
        self._track, self._count = track, count
        self._newest = -1

    def recover(self, closed: ClosedRound) -> Recovered:
        """One round now."""
        # A reading that is far from all others may be too much for a logarithm, too: the other rounds, and
        # a recovery without a track, are none the worse for it.
        try:
            one = live_round(closed)
            found = self._live.recover(one)
        except (SfumatoError, ArithmeticError, ValueError) as problem:
            return Recovered(closed, None, None, str(problem))
        try:
            followed = self._follow(one, closed.number)
        except (SfumatoError, ArithmeticError, ValueError):
            followed = None
        return Recovered(closed, found, followed, found.failure)

    def _follow(self, one: LiveRound, number: int) -> TrackResult | None:
        if not self._track or number < self._newest:  # what was put off is not followed any more
            return None
        self._newest = number
        self._last.append(one)
        if len(self._last) < 2:
            return None
        return self._live.track(sorted(self._last, key=lambda each: each.time), count=self._count)


class Worker:
    """A thread that recovers rounds while packets go on to come in.

    New rounds go first. Those that it is behind with, after an outage or a start, are taken up when none
    waits; where that never is, they are skipped once there are too many of them.
    """

    def __init__(
        self, recover: Callable[[ClosedRound], Recovered], *, backlog: int = BACKLOG
    ) -> None:
        self._recover = recover
        self._waiting: deque[ClosedRound] = deque()
        self._backlog = backlog
        self._put_off: deque[ClosedRound] = deque()
        self._packets = 0
        self._done: queue.SimpleQueue[Recovered] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="recoveries", daemon=True)
        self._thread.start()

    def submit(self, closed: ClosedRound) -> None:
        """Take a round; where too many wait, the oldest of them is put off, or skipped."""
        with self._changed:
            self._waiting.append(closed)
            while len(self._waiting) > self._backlog:
                old = self._waiting.popleft()
                self._put_off.append(old)
                self._packets += len(old.packets)
            while self._packets > PUT_OFF:
                self._skip(self._put_off.popleft())
            self._changed.notify()

    @property
    def waiting(self) -> int:
        """How many rounds it has not begun with."""
        with self._changed:
            return len(self._waiting) + len(self._put_off)

    def finished(self) -> list[Recovered]:
        """What came of rounds since the last call."""
        found = []
        while True:
            try:
                found.append(self._done.get_nowait())
            except queue.Empty:
                return found

    def close(self) -> None:
        """Recover the newest rounds, skip those that were put off, and end."""
        with self._changed:
            self._ending = True
            while self._put_off:
                self._skip(self._put_off.popleft())
            self._changed.notify()
        self._thread.join()

    def _skip(self, old: ClosedRound) -> None:
        self._packets -= len(old.packets)
        self._done.put(Recovered(old, None, problem="skipped: there was no time for it"))

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._put_off or self._ending):
                    self._changed.wait()
                if self._waiting:
                    closed = self._waiting.popleft()
                elif self._put_off:
                    closed = self._put_off.popleft()
                    self._packets -= len(closed.packets)
                else:
                    return
            try:
                self._done.put(self._recover(closed))
            except (
                Exception
            ) as problem:  # one round must not end the thread; it is said as its failure
                self._done.put(Recovered(closed, None, problem=type(problem).__name__))


class InTurn:
    """Rounds recovered at once, in the caller's thread: for tests and replays."""

    def __init__(self, recover: Callable[[ClosedRound], Recovered]) -> None:
        self._recover = recover
        self._done: list[Recovered] = []

    def submit(self, closed: ClosedRound) -> None:
        """Recover a round."""
        self._done.append(self._recover(closed))

    @property
    def waiting(self) -> int:
        """None waits."""
        return 0

    def finished(self) -> list[Recovered]:
        """What came of rounds since the last call."""
        found, self._done = self._done, []
        return found

    def close(self) -> None:
        """Nothing waits."""
