"""Readings grouped into rounds by their clock: who is there, who is late, who is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median_low
from typing import Literal

from sfumato.network.wire import Packet

Placed = Literal["placed", "late", "duplicate", "too-late", "too-early"]


BEHIND_MS = 35_000
"""How long a round waits whose first packet came too late: devices try a broker that is back every 30 s."""
ODD = 1e6
"""One plan is for all devices of a site: noise so many times that of others is a mistake or a lie."""


@dataclass(frozen=True, slots=True)
class ClosedRound:
    """A round to which nothing comes any more.

    Attributes:
        number: Which one: its time over the period.
        time: When it was, in UTC, as text.
        packets: The packet of each sensor that was read, and at which place in it the reading is.
        missing: Sensors of the site that were not read, or whose device is odd.
        odd: Devices left out, for their noise is nothing like that of the others.
    """

    number: int
    time: str
    packets: dict[str, tuple[Packet, int]]
    missing: tuple[str, ...]
    odd: tuple[str, ...] = ()


@dataclass(slots=True)
class Rounds:
    """Rounds of a network, open until all sensors are there or the grace after their end is over.

    A round is closed once, and then takes nothing more: what comes for it later is late. Where already the
    first packet comes after the grace, the broker or the collector was away, and the others are waited for
    as long as devices need to come back. Only rounds
    between `horizon_ms` ago and `ahead_ms` from now are looked at, by the clock of whoever collects: a
    sensor or a collector whose clock jumps loses the rounds between, and nothing else.

    Attributes:
        sensors: The names of the sensors of the site, in its order.
        period_ms: How far apart rounds are.
        grace_ms: How long after its end a round waits for sensors that are late.
        horizon_ms: How old a round may be that packets are still taken for.
        ahead_ms: How far ahead of our clock.
    """

    sensors: tuple[str, ...]
    period_ms: int
    grace_ms: int
    horizon_ms: int
    ahead_ms: int
    _open: dict[int, dict[str, tuple[Packet, int]]] = field(default_factory=dict)
    _closed: dict[int, set[str]] = field(default_factory=dict)
    _behind: dict[int, int] = field(default_factory=dict)

    def number_of(self, packet: Packet) -> int:
        """The round that a packet belongs to: the nearest."""
        return (packet.round_ms + self.period_ms // 2) // self.period_ms

    def time_of(self, number: int) -> str:
        """When a round was, in UTC, as text."""
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=number * self.period_ms)
        exact = "seconds" if number * self.period_ms % 1000 == 0 else "milliseconds"
        return moment.isoformat(timespec=exact).replace("+00:00", "Z")

    def judge(self, packet: Packet, now_ms: int) -> Placed:
        """Where a packet would go; nothing is changed."""
        if packet.round_ms > now_ms + self.ahead_ms:
            return "too-early"
        if packet.round_ms < now_ms - self.horizon_ms:
            return "too-late"
        number = self.number_of(packet)
        names = [self.sensors[place] for place in packet.sensors]
        if number in self._closed:
            known = self._closed[number]
            return "duplicate" if all(name in known for name in names) else "late"
        there = self._open.get(number, {})
        return "duplicate" if any(name in there for name in names) else "placed"

    def place(self, packet: Packet, now_ms: int) -> Placed:
        """Put a packet where it belongs, and say where that was."""
        where = self.judge(packet, now_ms)
        names = [self.sensors[place] for place in packet.sensors]
        if where == "placed":
            number = self.number_of(packet)
            if number not in self._open and self._end(number) <= now_ms:
                self._behind[number] = now_ms + BEHIND_MS
            there = self._open.setdefault(number, {})
            there.update({name: (packet, at) for at, name in enumerate(names)})
        elif where == "late":
            self._closed[self.number_of(packet)].update(names)
        return where

    def close(self, number: int, sensors: Iterable[str]) -> None:
        """Take a round for closed, as it was when it was kept."""
        self._closed[number] = set(sensors)

    def wait_anew(self, now_ms: int) -> None:
        """Let the open rounds whose time is over wait for what the broker has of them."""
        for number in self._open:
            if self._end(number) <= now_ms:
                self._behind[number] = now_ms + BEHIND_MS

    def due(self, now_ms: int) -> list[ClosedRound]:
        """Close the rounds whose time is over or that are complete, the oldest first; forget old ones."""
        found = []
        for number in sorted(self._open):
            there = self._open[number]
            over = self._behind.get(number, self._end(number)) <= now_ms
            if not over and len(there) < len(self.sensors):
                if number in self._behind:
                    continue
                break  # later ones wait, so that rounds come in their order
            del self._open[number]
            self._behind.pop(number, None)
            self._closed[number] = set(there)
            odd = _odd([packet for packet, _ in there.values()])
            there = {name: one for name, one in there.items() if one[0].device not in odd}
            missing = tuple(name for name in self.sensors if name not in there)
            found.append(ClosedRound(number, self.time_of(number), there, missing, odd))
        # Twice as long as packets are taken, so that none opens a closed round again.
        last = (now_ms - 2 * self.horizon_ms) // self.period_ms
        for number in [number for number in self._closed if number < last]:
            del self._closed[number]
        return found

    @property
    def waiting(self) -> int:
        """How many rounds are open."""
        return len(self._open)

    def _end(self, number: int) -> int:
        """When the grace of a round is over."""
        return (number + 1) * self.period_ms + self.grace_ms


def _odd(packets: list[Packet]) -> tuple[str, ...]:
    """Devices whose noise is nothing like that of most: one of them could spoil a round for all."""
    usual = median_low([one.deviation for one in packets])
    odd = {one.device for one in packets if not usual / ODD <= one.deviation <= usual * ODD}
    return tuple(sorted(odd))
