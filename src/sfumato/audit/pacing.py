"""How many runs fit into the time that is left, by the speed of a few."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

from sfumato.audit.boxes.box import Box, Pair, SampleBox
from sfumato.audit.sequential.bet import Budget

NOTICEABLE = 0.03
TRIES = 3


@dataclass(frozen=True, slots=True)
class Pace:
    """Time for what follows a bet: the budget's once more, for all parts together."""

    box: Box
    budget: Budget
    begun: float
    rate: list[float] = field(default_factory=list)

    def runs(self, pair: Pair, max_runs: int, *, parts: int) -> int:
        """Runs of the next of so many parts, both inputs together, at the speed of a few thrown away.

        Half of a part's time is left for what is computed from its runs.
        """
        if isinstance(self.box, SampleBox):
            return min(max_runs, 2 * min(len(self.box.first), len(self.box.second)))
        if self.budget.seconds is None:
            return min(max_runs, self.budget.runs)
        left = self.budget.seconds - (time.monotonic() - self.begun)
        if left <= 0:
            return 0
        if not self.rate:
            self.rate.append(speed(self.box, pair.first, min(max_runs, self.budget.runs) // 4))
        return min(max_runs, self.budget.runs, int(left / parts / 2 * self.rate[0]))


def speed(box: Box, data: Any, max_runs: int) -> float:
    """Runs a second, of as few as tell; the best of a few times, since whatever else runs slows down some."""
    size = 1
    while True:
        seconds = math.inf
        for _ in range(TRIES):
            begun = time.monotonic()
            box.run(data, size)
            seconds = min(seconds, time.monotonic() - begun)
            if seconds < NOTICEABLE:
                break
        if seconds >= NOTICEABLE or size >= max_runs:
            return size / max(seconds, 1e-6)
        size *= 4
