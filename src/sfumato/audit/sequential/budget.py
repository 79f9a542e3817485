"""What an audit may use at most: time and runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sfumato.errors import InvalidParameter

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
MAX_RUNS = 20_000_000
"""Runs, where only time is limited: the outputs of so many fit in memory."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What an audit may use at most.

    Attributes:
        runs: Of the mechanism, both inputs together.
        seconds: Time; None for as long as it takes.
    """

    runs: int = 1_000_000
    seconds: float | None = 60.0

    @staticmethod
    def parse(text: str) -> Budget:
        """A time such as 60s, 5m or 2h, a number of runs, or both as 60s,200000.

        Where only a time is given, there are as many runs as fit in memory.

        >>> Budget.parse("1.5m,500")
        Budget(runs=500, seconds=90.0)
        """
        runs: int | None = None
        seconds: float | None = None
        for part in text.split(","):
            time_ = re.fullmatch(r"\s*(\d+(?:\.\d+)?)([smh])\s*", part)
            count = re.fullmatch(r"\s*([1-9]\d*)\s*", part)
            if time_ and seconds is None and float(time_[1]) > 0:
                seconds = float(time_[1]) * SECONDS[time_[2]]
            elif count and runs is None:
                runs = int(count[1])
            else:
                raise InvalidParameter(
                    "a budget is a time such as 60s or 5m, a number of runs, or both as 60s,200000, got "
                    f"{text!r}; nothing was run"
                )
        return Budget(MAX_RUNS if runs is None else runs, seconds)

    def __post_init__(self) -> None:
        """Refuse what allows nothing."""
        if self.runs < 0:
            raise InvalidParameter(f"runs must be at least 0, got {self.runs}; nothing was run")
        if self.seconds is not None and not self.seconds > 0:
            raise InvalidParameter(
                f"seconds must be above 0 or None, got {self.seconds}; nothing was run"
            )
