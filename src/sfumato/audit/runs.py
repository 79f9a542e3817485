"""Runs of a box on one pair of inputs, as rows of numbers, drawn in parts that are no larger than needed."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from sfumato.audit.boxes import Box, Outputs, Pair, SampleBox
from sfumato.audit.features import keys_of
from sfumato.audit.samples import Encoder, FloatArray, encoder_of
from sfumato.errors import InvalidInput, SfumatoError

FIRST = 2
"""Runs of either input in the first part: even a box that takes a second for each soon shows something."""
STEEPEST = 4
"""No part is so many times as large as the one before it."""
PATIENCE = 0.5
"""Seconds that a part should take at most."""
COINCIDENCE = 30.0
"""Nats: parts of runs that repeat those before them by chance do so with probability e**-30."""


class Runs:
    """All runs made on a pair. `rows` holds those of the first input and of the second, in order."""

    def __init__(self, box: Box, pair: Pair) -> None:
        self.pair = pair
        self.rows: tuple[FloatArray, FloatArray] = (np.empty((0, 0)), np.empty((0, 0)))
        self.encoder: Encoder | None = None
        self._box = box
        self._parts: list[tuple[FloatArray, FloatArray]] = []
        self._last: tuple[FloatArray, FloatArray] | None = None
        self._repeated = [0.0, 0.0]
        self._size = 0
        self._seconds = 0.0

    def __len__(self) -> int:
        """Pairs of runs made."""
        return len(self.rows[0]) + sum(len(first) for first, _ in self._parts)

    def draw(self, wanted: int, *, seconds: float) -> tuple[FloatArray, FloatArray]:
        """Further runs of either input: as many as wanted, or fewer where that would take long."""
        size = min(wanted, STEEPEST * self._size or FIRST)
        if self._size:
            each = self._seconds / self._size
            size = min(size, max(1, int(min(PATIENCE, seconds) / each))) if each > 0 else size
        begun = time.monotonic()
        # The input that goes first changes, so that what drifts with time is not taken for a leak.
        order = (0, 1) if len(self._parts) % 2 == 0 else (1, 0)
        outputs: dict[int, Outputs] = {side: self._run(side, size) for side in order}
        self._seconds, self._size = time.monotonic() - begun, size
        if self.encoder is None:
            self.encoder = _common(outputs[0], outputs[1])
        rows = self.encoder(outputs[0]), self.encoder(outputs[1])
        if not isinstance(self._box, SampleBox):
            self._require_fresh(rows)
        self._last = rows
        self._parts.append(rows)
        return rows

    def gather(self) -> None:
        """Put the latest runs to the others."""
        if not self._parts:
            return
        old = [self.rows] if len(self.rows[0]) else []
        first, second = zip(*old, *self._parts, strict=True)
        self.rows = np.concatenate(first), np.concatenate(second)
        self._parts = []

    def _run(self, side: int, size: int) -> Outputs:
        data: Any = (self.pair.first, self.pair.second)[side]
        which = f"input {side + 1} of the pair {self.pair.name!r}"
        try:
            found = self._box.run(data, size)
            given = len(found)
        except SfumatoError:
            raise
        except Exception as problem:
            raise InvalidInput(
                f"{self._box.name} raised {type(problem).__name__} on {which}: {problem}; the audit ended "
                "without a verdict"
            ) from problem
        if given != size:
            raise InvalidInput(
                f"{self._box.name} must give {size} outputs when asked for them, gave {given} on {which}; "
                "the audit ended without a verdict"
            )
        return found

    def _require_fresh(self, rows: tuple[FloatArray, FloatArray]) -> None:
        """Refuse a box whose runs begin anew at each call: its outputs are not independent."""
        if self._last is None:
            return
        for side, (before, now) in enumerate(zip(self._last, rows, strict=True)):
            size = min(len(before), len(now))
            keys = keys_of(now[:size])
            if not np.array_equal(keys_of(before[:size]), keys):
                self._repeated[side] = 0.0
                continue
            _, counts = np.unique(keys, return_counts=True)
            self._repeated[side] -= float((counts * np.log(counts / size)).sum())
            if self._repeated[side] > COINCIDENCE:
                raise InvalidInput(
                    f"{self._box.name} gave the same outputs again and again on input {side + 1} of the pair "
                    f"{self.pair.name!r}: its randomness is seeded, so nothing can be learnt from more runs; "
                    "the audit ended without a verdict"
                )


def runs_left(box: Box) -> float:
    """Pairs of runs that a box can still give: infinite, except of samples drawn beforehand."""
    if not isinstance(box, SampleBox):
        return math.inf
    return min(len(box.first) - box.taken[0], len(box.second) - box.taken[1])


def _common(first: Outputs, second: Outputs) -> Encoder:
    """An encoder for both inputs: of numbers where either gives numbers, the others then are odd."""
    one, other = encoder_of(first), encoder_of(second)
    return other if one.words and not other.words else one
