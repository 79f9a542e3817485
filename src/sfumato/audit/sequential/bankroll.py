"""One bankroll in a few accounts, and the path it took."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato._types import FloatArray

RESHARED = 0.05
"""What of all wealth is dealt out anew before each batch, so that no account stays lost [herbster98]."""


class Bankroll:
    """Wealth that starts at 1 in accounts of given shares; all are logarithms."""

    def __init__(self, shares: Sequence[float]) -> None:
        self._shares = np.log(np.asarray(shares))
        self._accounts = self._shares.copy()
        self.best = 0.0

    @property
    def now(self) -> float:
        """The logarithm of all wealth."""
        return float(np.logaddexp.reduce(self._accounts))

    def deal(self) -> None:
        """Move a small share of every account to all of them, as at the beginning."""
        self._accounts = np.logaddexp(
            self._accounts + math.log1p(-RESHARED), self.now + math.log(RESHARED) + self._shares
        )

    def settle(self, logs: FloatArray, target: float) -> FloatArray:
        """Wealth, as a logarithm, after each pair of runs, up to where it reaches the target.

        `logs` has a row for each account: the logarithms of what each pair of runs multiplies it
        by.
        """
        paths = self._accounts[:, np.newaxis] + np.cumsum(logs, axis=1)
        total = np.asarray(np.logaddexp.reduce(paths, axis=0))
        reached = np.flatnonzero(total >= target)
        end = int(reached[0]) + 1 if reached.size else total.size
        if end:
            self._accounts = paths[:, end - 1]
            self.best = max(self.best, float(total[:end].max()))
        return total[:end]
