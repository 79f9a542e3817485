"""What runs while an audit does: runs are counted, outputs rounded where asked, stdout is kept free."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.audit.boxes import Box, Outputs, SampleBox


@dataclass(frozen=True, slots=True)
class CountedBox:
    """A box with the number of its runs, for a total that hides none."""

    box: Box
    bits: int | None = None
    made: list[int] = field(default_factory=lambda: [0])

    @property
    def name(self) -> str:
        """The box's own, with the rounding: that makes it another mechanism."""
        return self.box.name + _suffix(self.bits)

    def run(self, data: Any, runs: int) -> Outputs:
        """So many independent outputs."""
        self.made[0] += runs
        found = self.box.run(data, runs)
        return found if self.bits is None else rounded(found, self.bits)


def prepared(box: Box, bits: int | None) -> Box:
    """The box to audit: counted, and rounded if asked; samples run by themselves and are only rounded."""
    if not isinstance(box, SampleBox):
        return CountedBox(box, bits)
    if bits is None:
        return box
    both = rounded(box.first, bits), rounded(box.second, bits)
    return replace(box, first=both[0], second=both[1], name=box.name + _suffix(bits))


def total_runs(box: Box) -> int:
    """How often a box was run in all, what was thrown away included; 0 of samples."""
    return box.made[0] if isinstance(box, CountedBox) else 0


def rounded(value: Any, bits: int) -> Any:
    """Numbers as multiples of 2**-bits, in whatever holds them; all else as it is.

    >>> rounded([0.3, (1.26, "yes")], 2)
    [0.25, (1.25, 'yes')]
    """
    match value:
        case np.ndarray() if value.dtype.kind == "f":
            scaled = np.ldexp(value, bits)
            return np.where(np.isfinite(scaled), np.ldexp(np.rint(scaled), -bits), value)
        case np.ndarray() if value.dtype.kind == "O":
            return np.array([rounded(part, bits) for part in value], dtype=object)
        case float() | np.floating() if abs(float(value)) < math.ldexp(1.0, 900):
            return math.ldexp(round(math.ldexp(float(value), bits)), -bits)
        case tuple():
            return tuple(rounded(part, bits) for part in value)
        case Sequence() if not isinstance(value, str | bytes):
            return [rounded(part, bits) for part in value]
        case _:
            return value


@contextmanager
def aside() -> Iterator[None]:
    """What a mechanism prints meanwhile goes to stderr, its children's too: stdout is for the result."""
    kept = None
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def _suffix(bits: int | None) -> str:
    return "" if bits is None else f", rounded to multiples of 2**{-bits}"
