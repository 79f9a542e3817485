"""What one curious party sees of a release in shares: the sums, and its own share to take off them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.audit.flat_rows import sums_of, zoom_rows

from sfumato.privacy import Joint, Noise, Shuffled
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
        self, values: IntArray, scales: Sequence[Fraction], which: IntArray, trust: Any
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


class AddersView(SharedNoise):
    """All devices in one process; what the adder sees of each round with the share of one device taken off."""

    distance: Fraction | None = None
    known = True

    def __init__(self, trust: Shuffled) -> None:
        self._trust = trust
        self.seen: list[IntArray] = []

    @property
    def trust(self) -> Shuffled:
        """As it was made."""
        return self._trust

    def noisy_sum(
        self, values: IntArray, scales: Sequence[Fraction], which: IntArray, trust: Any
    ) -> IntArray:
        """What is opened to the adder, of all cells that were asked for."""
        others = (draw_shares(trust, scales, which) for _ in range(trust.devices - 1))
        self.seen.append(sum(others, start=values))
        return self.seen[-1] + draw_shares(trust, scales, which)


def seen_rounds(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of all counts of all rounds of a shuffled pyramid, which are more than it keeps."""
    del noise
    view = AddersView(mechanism.trust)
    mechanism.sample(sums_of(data, runs), view)
    return np.concatenate([one.reshape(runs, -1) for one in view.seen], axis=1)
