"""What a collector knows of its network, as a typed value: for the terminal, the page, metrics and entities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.sensing.results import RecoveredRound, TrackResult

FORMAT = "sfumato-network-state/1"


@dataclass(frozen=True, slots=True)
class DeviceState:
    """What was heard of one device.

    Attributes:
        name: The device.
        last_round: The time of its last round; "" where nothing came yet.
        accepted: How many of its packets were taken.
        refused: How many were refused, by reason.
        left: What is left of its window's budget, in words; "" where nothing came yet.
        faulty: What is wrong with its sensors by what the others read, in sentences.
        revoked: Whether its key was revoked.
    """

    name: str
    last_round: str
    accepted: int
    refused: Mapping[str, int]
    left: str
    faulty: tuple[str, ...] = ()
    revoked: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it is served."""
        return {
            "name": self.name,
            "last_round": self.last_round,
            "accepted": self.accepted,
            "refused": dict(self.refused),
            "left": self.left,
            "faulty": list(self.faulty),
            "revoked": self.revoked,
        }


@dataclass(frozen=True, slots=True)
class Promise:
    """What the last round promised: all that devices state in their packets.

    Attributes:
        kind: "epsilon" or "rho".
        cost: What a round costs, in that; with `delta`.
        delta: The delta of the cost; 0 for a rho.
        left: The least that any device has left in its window, in the same kind.
        window: The window in words; "" for one budget for all time.
        rounds: Rounds that were recovered in this window.
        epsilon_spent: The least epsilon that is proved for them together.
        spent_delta: At which delta.
        rehearsal: Whether nobody is protected by it.
    """

    kind: str
    cost: float
    delta: float
    left: float
    window: str
    rounds: int
    epsilon_spent: float
    spent_delta: float
    rehearsal: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it is served, and as attributes of entities."""
        return {
            "kind": self.kind,
            "cost": self.cost,
            "delta": self.delta,
            "left": self.left,
            "window": self.window,
            "rounds": self.rounds,
            "epsilon_spent": self.epsilon_spent,
            "spent_delta": self.spent_delta,
            "rehearsal": self.rehearsal,
        }


@dataclass(frozen=True, slots=True)
class CollectorState:
    """The network at one moment.

    Attributes:
        site: The name of the site.
        sensors: How many sensors it has.
        connected: Whether the broker is there.
        accepted: Packets that were taken and kept.
        refused: Packets that were refused, by reason; "late" ones were kept.
        rounds: How many rounds were recovered, skipped or failed.
        waiting: Rounds that are open, or closed and not yet recovered.
        queue: Packets that wait to be kept, and the most that may.
        store_problem: Why nothing can be kept at the moment; "" where all is well.
        last: The last round that was recovered.
        track: The last track.
        devices: Every device.
        promise: What the last round promised; None before.
    """

    site: str
    sensors: int
    connected: bool
    accepted: int
    refused: Mapping[str, int]
    rounds: Mapping[str, int]
    waiting: int
    queue: tuple[int, int]
    store_problem: str
    last: RecoveredRound | None
    track: TrackResult | None
    devices: tuple[DeviceState, ...]
    promise: Promise | None

    def to_json(self) -> dict[str, Any]:
        """As it is served: everything but proofs and the site."""
        last = self.last
        recovery = None if last is None or last.recovery is None else last.recovery.summary()
        return {
            "format": FORMAT,
            "site": self.site,
            "sensors": self.sensors,
            "connected": self.connected,
            "accepted": self.accepted,
            "refused": dict(self.refused),
            "rounds": dict(self.rounds),
            "waiting": self.waiting,
            "queue": list(self.queue),
            "store_problem": self.store_problem,
            "last": None
            if last is None
            else {
                "time": last.time,
                "missing": list(last.missing),
                "failure": last.failure,
                "recovery": recovery,
            },
            "track": None if self.track is None else self.track.to_json(),
            "devices": [one.to_json() for one in self.devices],
            "promise": None if self.promise is None else self.promise.to_json(),
        }
