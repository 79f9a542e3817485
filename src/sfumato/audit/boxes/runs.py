"""Runs of a box on one pair of inputs, as rows of numbers, drawn in parts that are no larger than needed."""

from __future__ import annotations

import math
import reprlib
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box, Outputs, Pair, SampleBox, function_box
from sfumato.audit.boxes.samples import Encoder, encoder_of, keys_of
from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError

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
        self._fresh = Fresh(box, pair)
        self._size = 0
        self._seconds = 0.0

    def __len__(self) -> int:
        """Pairs of runs made."""
        return len(self.rows[0]) + sum(len(first) for first, _ in self._parts)

    def draw(self, max_runs: int, *, seconds: float) -> tuple[FloatArray, FloatArray]:
        """Further runs of either input: as many as allowed, or fewer where that would take long."""
        size = min(max_runs, STEEPEST * self._size or FIRST)
        if self._size:
            each = self._seconds / self._size
            size = min(size, max(1, int(min(PATIENCE, seconds) / each))) if each > 0 else size
        begun = time.monotonic()
        # The input that goes first changes, so that what drifts with time is not taken for a leak.
        order = (0, 1) if len(self._parts) % 2 == 0 else (1, 0)
        outputs: dict[int, Outputs] = {
            side: run_side(self._box, self.pair, side, size) for side in order
        }
        self._seconds, self._size = time.monotonic() - begun, size
        if self.encoder is None:
            self.encoder = common_encoder(outputs[0], outputs[1])
        rows = self.encoder(outputs[0]), self.encoder(outputs[1])
        self._fresh.require(rows)
        self._parts.append(rows)
        return rows

    @property
    def constant(self) -> tuple[int, ...]:
        """The inputs, 1 or 2, on which every run gave the same output."""
        return tuple(
            side + 1
            for side, rows in enumerate(self.rows)
            if len(rows) and np.unique(keys_of(rows)).size == 1
        )

    def gather(self) -> None:
        """Put the latest runs to the others."""
        if not self._parts:
            return
        old = [self.rows] if len(self.rows[0]) else []
        first, second = zip(*old, *self._parts, strict=True)
        self.rows = np.concatenate(first), np.concatenate(second)
        self._parts = []


class Fresh:
    """Whether a box's runs on a pair begin anew at each call; what `require` refuses is not independent."""

    def __init__(self, box: Box, pair: Pair) -> None:
        self._box, self._pair = box, pair
        self._last: tuple[FloatArray, FloatArray] | None = None
        self._repeated = [0.0, 0.0]

    def require(self, rows: tuple[FloatArray, FloatArray]) -> None:
        """Refuse a box whose latest runs repeat those before them."""
        last, self._last = self._last, rows
        if last is None or isinstance(self._box, SampleBox):
            return
        for side, (before, now) in enumerate(zip(last, rows, strict=True)):
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
                    f"{self._pair.name!r}: its randomness is seeded, so nothing can be learnt from more "
                    "runs; the audit ended without a verdict"
                )


def run_side(box: Box, pair: Pair, side: int, runs: int) -> Outputs:
    """So many outputs on the first (0) or second (1) input; what the box raises is told with its line."""
    data: Any = (pair.first, pair.second)[side]
    which = f"input {side + 1} of the pair {pair.name!r}"
    try:
        found = box.run(data, runs)
        given = len(found)
    except SfumatoError:
        raise
    except Exception as problem:
        # The box's own message and line; the frames in between are ours, and say nothing.
        raise InvalidInput(
            f"{box.name} raised {type(problem).__name__} on {which}{_line(problem)}: {problem}; the audit "
            "ended without a verdict"
        ) from None
    if given != runs:
        raise InvalidInput(
            f"{box.name} must give {runs} outputs when asked for them, gave {given} on {which}; "
            "the audit ended without a verdict"
        )
    return found


def as_box(box: Box | Callable[..., Any]) -> Box:
    """A box as it is, a plain function as a box."""
    if hasattr(box, "run"):
        return cast(Box, box)
    if callable(box):
        return function_box(box)
    raise InvalidParameter(
        f"a box is a function of the data or has a method run, got {box!r}; nothing was run"
    )


def as_pair(one: object, number: int = 1) -> Pair:
    """A pair as it is, a tuple of two inputs as a pair."""
    if isinstance(one, Pair):
        return one
    # A list of two is no pair: two inputs given as they are would pass for two pairs of their
    # entries.
    if isinstance(one, tuple) and len(one) == 2:
        return Pair(*one, f"pair {number}")
    raise InvalidParameter(
        f"pairs are a list of pairs (first, second) or a form like Queries(10), got {reprlib.repr(one)} as "
        f"number {number}; nothing was run"
    )


def runs_left(box: Box) -> float:
    """Pairs of runs that a box can still give: infinite, except of samples drawn beforehand."""
    if not isinstance(box, SampleBox):
        return math.inf
    return min(len(box.first) - box.taken[0], len(box.second) - box.taken[1])


def common_encoder(first: Outputs, second: Outputs) -> Encoder:
    """An encoder for both inputs: of numbers where either gives numbers, the others then are odd."""
    one, other = encoder_of(first), encoder_of(second)
    return other if one.words and not other.words else one


def _line(problem: Exception) -> str:
    """Where an error was raised, in brackets."""
    frames = traceback.extract_tb(problem.__traceback__)
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
