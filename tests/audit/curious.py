"""What one curious party sees of a release in shares: the sums, and its own share to take off them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.audit.flat_rows import sums_of, zoom_rows

from sfumato.privacy import Joint, Noise
from sfumato.privacy.noise import SharedNoise, draw_shares

IntArray = npt.NDArray[np.int64]


class CuriousSession(SharedNoise):
    """All parties in one process, and the shares that the curious one keeps, sum by sum."""

    distance: Fraction | None = None
    known = True

    def __init__(self, trust: Joint) -> None:
        self._trust = trust
        self.own: list[IntArray] = []

    @property
    def trust(self) -> Joint:
        """As it was made."""
        return self._trust

    def noisy_sum(
        self, values: IntArray, scales: Sequence[Fraction], which: IntArray, trust: Joint
    ) -> IntArray:
        """What is opened to everybody."""
        self.own.append(draw_shares(trust, scales, which))
        others = (draw_shares(trust, scales, which) for _ in range(trust.parties - 1))
        return sum(others, start=values + self.own[-1])


def seen_sums(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of a sum without the share of the party that looks: shares are the system's, whatever `noise` is."""
    del noise
    session = CuriousSession(mechanism.trust)
    released = mechanism.sample(np.tile(np.asarray(data, dtype=np.int64), runs), session)
    return np.asarray((released - session.own[0]).reshape(runs, -1))


def seen_zooms(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of a joint zoom without that share, round by round: its decisions rest on what was opened."""
    del noise
    session = CuriousSession(mechanism.trust)
    tree = mechanism.sample(sums_of(data, runs), session)
    levels = [
        replace(one, values=one.values - own)
        for one, own in zip(tree.levels, session.own, strict=True)
    ]
    return zoom_rows(levels, runs)
