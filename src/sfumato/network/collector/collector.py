"""The collector: takes packets, keeps them, closes rounds, has them recovered, and says what it knows.

    broker -> take (gate, queue) | turn: keep -> rounds -> recoveries -> store, outputs

`take` may be called from any thread; `turn` from one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sfumato.errors import InvalidInput, SfumatoError
from sfumato.network.collector.closed_rounds import promise_of, row_of, state_of
from sfumato.network.collector.config import NetworkConfig
from sfumato.network.collector.gate import Refusal, gate_of
from sfumato.network.collector.recoveries import (
    InTurn,
    Recovered,
    Recoveries,
    Window,
    Worker,
    loss_of,
    window_of,
)
from sfumato.network.collector.replay_window import SIZE
from sfumato.network.collector.rounds import ClosedRound, Rounds
from sfumato.network.collector.state import CollectorState, DeviceState, Promise
from sfumato.network.collector.store import (
    SqliteStore,
    Store,
    StoredPacket,
    StoredRound,
    StoreFailed,
    open_store,
)
from sfumato.network.wire import Packet, decode
from sfumato.sensing.pipeline import LiveRecovery

QUEUE = 20_000
"""Packets that may wait to be kept; more are refused and not acknowledged."""
AHEAD_MS = 5_000
"""How far ahead of our clock a packet's round may be."""

Acknowledge = Callable[[], None]


class Output(Protocol):
    """Who is told of every round: a file of lines, entities, a page."""

    def round(self, done: Recovered, state: CollectorState) -> None:
        """A round was recovered, skipped or failed."""
        ...

    def close(self) -> None:
        """The collector ends."""
        ...


@dataclass(slots=True)
class _Heard:
    """What was heard of a device."""

    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    packet: Packet | None = None


@dataclass(frozen=True, slots=True)
class _Waiting:
    packet: Packet
    payload: bytes
    now: int
    done: list[Acknowledge]


class Collector:
    """A network's collector, whole but for its connection to a broker."""

    def __init__(
        self,
        config: NetworkConfig,
        *,
        clock: Callable[[], int] | None = None,
        threads: bool = True,
        outputs: Sequence[Output] = (),
        queue_size: int = QUEUE,
    ) -> None:
        """Open the store, and take up where the collector before left off.

        Args:
            config: The network.
            clock: Milliseconds since 1970; the system's unless given.
            threads: Whether rounds are recovered in a thread of their own.
            outputs: Who is told of every round.
            queue_size: Packets that may wait to be kept.

        Raises:
            InvalidInput: The store or the check keys cannot be read.
        """
        self.config = config
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)
        self._gate = gate_of(config)
        self._rounds = Rounds(
            config.site.sensors.names,
            config.period_ms,
            config.grace_ms,
            config.horizon_ms,
            max(AHEAD_MS, 2 * config.period_ms),
        )
        live = LiveRecovery(config.site, estimator=config.estimator, max_mass=config.max_mass)
        recover = Recoveries(live, track=config.track, count=config.count).recover
        self._worker = Worker(recover) if threads else InTurn(recover)
        self._queue: queue.Queue[_Waiting] = queue.Queue(queue_size)
        self._unkept: list[_Waiting] = []
        self._waiting: dict[bytes, _Waiting] = {}  # all of the queue and of what is unkept
        self._unwritten: deque[StoredRound] = deque(maxlen=1000)
        self._outputs = tuple(outputs)
        self._lock, self._arrived = threading.Lock(), threading.Event()
        self._heard: dict[str, _Heard] = {name: _Heard() for name in self._gate.devices}
        self._refused: Counter[str] = Counter()
        self._counted: Counter[str] = Counter(recovered=0, skipped=0, failed=0)
        self._window: tuple[Window, int] = (None, 0)
        self._first = 0  # round of the present window; 0 where none is known yet
        self._last: Recovered | None = None
        self._newest: ClosedRound | None = None
        self._promise: Promise | None = None
        self._problem = self._output_problem = ""
        self._ending = self.connected = False
        self.store: Store = open_store(config.store, site=config.site.digest)
        self._resume()

    def take(self, topic: str, payload: bytes, done: Acknowledge = lambda: None) -> str:
        """Take a message: "taken", or why not. `done` is called when it needs no acknowledgement any more.

        What is refused is done with at once; what is taken (also too late for its round), and what comes
        again meanwhile, when it is in the store; what finds the queue full is not, so that the broker sends
        it again.
        """
        with self._lock:
            if self._ending:
                return "queue-full"  # the broker keeps it for the next start
            found = self._gate.admit(topic, payload)
            if isinstance(found, Packet):
                now = self._clock()
                where = self._rounds.judge(found, now)
                if where == "duplicate" or where == "too-early":
                    found = self._refuse(where, found.device)
                else:
                    one = _Waiting(found, payload, now, [done])
                    try:
                        self._queue.put_nowait(one)
                    except queue.Full:
                        return self._refuse("queue-full", found.device)
                    self._waiting[payload] = one
                    self._gate.remember(found, payload)
                    self._arrived.set()
                    return "taken"
            else:
                self._refuse(found, topic.split("/")[3] if topic.count("/") == 4 else "")
                if found == "resent" and payload in self._waiting:
                    self._waiting[payload].done.append(done)
                    return found
        done()
        return found

    def turn(self) -> None:
        """Keep what came, close rounds that are due, and hand on what was recovered."""
        self._keep()
        with self._lock:
            due = self._rounds.due(self._clock())
            for device in (device for closed in due for device in closed.odd):
                self._refuse("odd-noise", device)
        for closed in due:
            self._worker.submit(closed)
        self._hand_on()

    def wait(self, seconds: float) -> None:
        """Until something comes, or so long: brokers send no more before we acknowledge."""
        self._arrived.wait(seconds)
        self._arrived.clear()

    def now_ms(self) -> int:
        """Milliseconds since 1970, by the collector's clock."""
        return self._clock()

    def forget_before(self, number: int) -> None:
        """Delete packets and rounds before a round from a SQLite store; said where it cannot be."""
        if isinstance(self.store, SqliteStore):
            # No replay may open a round again; the cost of the present window is added up from its rounds.
            old = (self._clock() - 2 * self.config.horizon_ms) // self.config.period_ms
            try:
                self.store.forget_before(min(number, old), rounds=min(number, old, self._first))
            except StoreFailed as problem:
                self._problem = str(problem)

    def close(self) -> None:
        """Keep what is there, finish rounds that wait, and let go of everything."""
        with self._lock:
            self._ending = True
        self._keep()
        self._worker.close()
        self._hand_on()
        for one in self._outputs:
            one.close()
        self.store.close()

    def reload(self, config: NetworkConfig) -> None:
        """Take devices, check keys and revocations anew, while running; the rest stays as it was.

        Raises:
            InvalidInput: It is of another site or period, or its check keys cannot be read; nothing changed.
        """
        if (config.site.digest, config.period_ms) != (
            self.config.site.digest,
            self.config.period_ms,
        ):
            raise InvalidInput(
                "another site or period needs a new start of the collector; nothing was changed"
            )
        with self._lock:
            gate = gate_of(config)
            gate.windows.update(self._gate.windows)
            self._gate = gate
            for name in self._gate.devices:
                self._heard.setdefault(name, _Heard())

    @property
    def state(self) -> CollectorState:
        """What is known at this moment."""
        with self._lock:
            last = self._last
            track = None if last is None else last.track
            faulty: dict[str, list[str]] = {}
            if track is not None:
                for one in track.faulty_sensors:
                    faulty.setdefault(one.sensor, []).append(one.message)
            return CollectorState(
                self.config.site.name,
                len(self.config.site.sensors),
                self.connected,
                sum(one.accepted for one in self._heard.values()),
                dict(self._refused),
                dict(self._counted),
                self._rounds.waiting + self._worker.waiting,
                (self._queue.qsize() + len(self._unkept), self._queue.maxsize),
                self._problem or self._output_problem,
                None if last is None else last.found,
                track,
                tuple(self._device(name, faulty) for name in sorted(self._heard)),
                self._promise,
            )

    def _device(self, name: str, faulty: dict[str, list[str]]) -> DeviceState:
        heard, packet = self._heard[name], self._heard[name].packet
        names = self.config.site.sensors.names
        mine = [names[place] for place in sorted(self._gate.devices.get(name, ()))]
        return DeviceState(
            name,
            "" if packet is None else self._rounds.time_of(self._rounds.number_of(packet)),
            heard.accepted,
            dict(heard.refused),
            "" if packet is None else str(loss_of(packet.left)),
            tuple(said for sensor in mine for said in faulty.get(sensor, ())),
            name in self._gate.revoked,
        )

    def _refuse(self, why: Refusal, device: str) -> Refusal:
        self._refused[why] += 1
        if device in self._heard:
            self._heard[device].refused[why] += 1
        return why

    def _keep(self) -> None:
        """Write all that waits in one batch; only then is it accepted."""
        batch = self._unkept
        while len(batch) < self._queue.maxsize:
            try:
                batch.append(self._queue.get_nowait())
            except queue.Empty:
                break
        if not batch:
            return
        with self._lock:
            places = [self._rounds.judge(one.packet, one.now) for one in batch]
        try:
            self.store.add_packets(
                [
                    _stored(one, self._rounds.number_of(one.packet), late=where != "placed")
                    for one, where in zip(batch, places, strict=True)
                ]
            )
        except StoreFailed as problem:
            self._unkept, self._problem = batch, str(problem)
            return
        self._unkept, self._problem = [], ""
        with self._lock:
            for one in batch:
                where = self._rounds.place(one.packet, one.now)
                heard = self._heard.setdefault(one.packet.device, _Heard())
                heard.accepted += 1
                if heard.packet is None or one.packet.round_ms >= heard.packet.round_ms:
                    heard.packet = one.packet
                if where != "placed":
                    self._refuse(where, one.packet.device)
                self._waiting.pop(one.payload, None)
        for one in batch:
            for done in one.done:
                done()

    def _hand_on(self) -> None:
        finished = self._worker.finished()
        for done in finished:
            with self._lock:
                self._count(done)
            self._unwritten.append(row_of(done))
        if self._unwritten:
            try:
                self.store.add_rounds(list(self._unwritten))
                self._unwritten.clear()
            except StoreFailed as problem:
                self._problem = str(problem)
        if finished and self._outputs:
            self._tell(finished)

    def _tell(self, finished: list[Recovered]) -> None:
        """Tell every output; one that fails costs the others nothing."""
        state, self._output_problem = self.state, ""
        for done in finished:
            for one in self._outputs:
                try:
                    one.round(done, state)
                except (SfumatoError, OSError) as problem:
                    self._output_problem = str(problem)

    def _count(self, done: Recovered) -> None:
        self._counted[state_of(done)] += 1
        # A round that was put off is counted, and what is told is of the newest as before.
        if self._newest is None or done.closed.number > self._newest.number:
            self._newest = done.closed
        if done.found is not None and (
            self._last is None or done.closed.number > self._last.closed.number
        ):
            self._last = done
        packets = [packet for packet, _ in self._newest.packets.values()]
        window = window_of(packets)
        key, count = self._window
        began = 0 if window is None else int(window[0].timestamp() * 1000)
        first = self._first = began // self.config.period_ms
        try:
            if key != window or not count:
                # What was paid before a restart counts too; and so do rounds that were skipped.
                count = self.store.count_rounds(first)
            count += done.closed.number >= first
            self._window = (window, count)
            self._promise = promise_of(packets, window, count)
        except StoreFailed as problem:
            self._window, self._promise, self._problem = (None, 0), None, str(problem)
        except SfumatoError:  # what devices state cannot be added up
            self._promise = None

    def _resume(self) -> None:
        """Windows against replays, rounds that are closed, and those that were not, from the store."""
        now = self._clock()
        oldest = (now - self.config.horizon_ms) // self.config.period_ms
        for name in self._gate.devices:
            for row in reversed(self.store.last_packets(name, SIZE)):
                packet = _decoded(row)
                if packet is not None:
                    self._gate.remember(packet, row.payload)
        for done in self.store.rounds_since(oldest):
            self._rounds.close(done.round, done.sensors.split("\t") if done.sensors else ())
        # Rounds that were open when the collector ended are finished, however long ago that was, and wait for
        # what the broker has of them.
        last = self.store.last_round()
        for row in self.store.packets_since(min(oldest, last + 1)):
            packet = _decoded(row)
            if packet is None:
                continue
            when = packet.round_ms if row.round > last and not row.late else now
            if not row.late or self._rounds.judge(packet, now) == "late":
                self._rounds.place(packet, when)
        self._rounds.wait_anew(now)


def _stored(one: _Waiting, number: int, *, late: bool) -> StoredPacket:
    packet = one.packet
    return StoredPacket(packet.device, packet.step, packet.first, number, late, one.payload)


def _decoded(row: StoredPacket) -> Packet | None:
    try:
        return decode(row.payload)
    except InvalidInput:
        return None
