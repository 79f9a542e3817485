"""What one curious party sees of a session that stopped and went on: both sums without its own share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.heatmap.distributed.receipts import Receipts
from sfumato.heatmap.distributed.session import JointSession, round_input
from sfumato.privacy import Noise, SharedLaplace

IntArray = npt.NDArray[np.int64]


class ForgetfulParties(SharedLaplace):
    """Parties that lose their receipts, and send the same counts with fresh noise."""

    __slots__ = ()
    forgets: ClassVar[bool] = True


class InMemory(Receipts):
    """Receipts that wait for no disk: audits run sessions by the hundred."""

    def __init__(self) -> None:
        super().__init__(Path("none.ledger"), "none")
        self.kept: dict[int, tuple[bytes, IntArray]] = {}

    def write(self, number: int, asked: bytes, values: IntArray) -> None:
        self.kept[number] = asked, values

    def mark_opened(self, number: int) -> None:
        """Nobody asks."""

    def remove(self) -> None:
        self.kept.clear()

    def _read(self, number: int) -> tuple[bytes, IntArray] | None:
        return self.kept.get(number)


class Others:
    """The other parties, without rows: what they send is by the package's own function, receipts and all."""

    def __init__(self, receipts: list[Receipts], mechanism: Any, size: int) -> None:
        self.receipts, self.mechanism = receipts, mechanism
        self.none = np.zeros(size, dtype=np.int64)
        self.own: list[IntArray] = []

    def tell(self, values: IntArray) -> IntArray:
        return np.stack([values] * self.mechanism.trust.parties)

    def sum(self, values: IntArray) -> IntArray:
        """The last of them is curious, and keeps what it sent."""
        scales, trust = (self.mechanism.scale,), self.mechanism.trust
        sent = [
            round_input(one, len(self.own) + 1, self.none, scales, self.none, trust, asked=b"")
            for one in self.receipts
        ]
        self.own.append(sent[-1])
        found: IntArray = sum(sent, start=values)
        return found


def seen_session(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of the sums of two attempts without the share of the party that looks; shares are the system's."""
    del noise
    values = np.tile(np.asarray(data, dtype=np.int64), runs)
    seen = []
    parties = range(mechanism.trust.parties)
    receipts: list[Receipts] = [InMemory() for _ in parties]
    for _ in range(2):
        others = Others(receipts[1:], mechanism, values.size)
        session = JointSession(
            others, mechanism.trust, names=["party"] * len(parties), receipts=receipts[0]
        )
        seen.append(mechanism.sample(values, session) - others.own[0])
        if hasattr(mechanism, "forgets"):
            for one in receipts:
                one.remove()
    return np.stack(seen, axis=-1).reshape(runs, -1)
