"""Outputs of a black box as rows of numbers, whatever they are: numbers, vectors, categories, words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Encoder:
    """How outputs become rows: `width` numbers each, and a last column that is 1 where an output is odd.

    Odd is what does not fit the first outputs seen: not a number, another length, another type. Two outputs
    that differ get rows that differ (words by a 52-bit hash); float bits are kept, so that low bits can tell.
    """

    width: int
    words: bool

    def __call__(self, outputs: Sequence[Any] | npt.NDArray[Any]) -> FloatArray:
        """One row for each output: width + 1 numbers."""
        array = _numeric(outputs)
        if array is not None and not self.words and array.shape[1] == self.width:
            rows = np.column_stack([array, np.zeros(len(array))])
            for odd in np.flatnonzero(~(np.abs(array) <= _exact(outputs)).all(axis=1)).tolist():
                rows[odd] = self._row(outputs[odd])
            return rows
        rows = np.zeros((len(outputs), self.width + 1))
        for row, output in zip(rows, outputs, strict=True):
            row[:] = self._row(output)
        return rows

    def _row(self, output: Any) -> FloatArray:
        row = np.zeros(self.width + 1)
        if not self.words:
            array = _numeric([output])
            if (
                array is not None
                and array.shape[1] == self.width
                and (np.abs(array) <= _exact([output])).all()
            ):
                row[:-1] = array[0]
                return row
            row[-1] = 1.0
        # The identity of an odd output still tells: two different ones are two different rows.
        row[0] = _code(output)
        return row


def encoder_of(outputs: Sequence[Any] | npt.NDArray[Any]) -> Encoder:
    """The encoder that suits these first outputs.

    >>> encoder_of([1.5, 2.5]), encoder_of(["yes", "no"])
    (Encoder(width=1, words=False), Encoder(width=1, words=True))
    """
    array = _numeric(outputs)
    return Encoder(1, words=True) if array is None else Encoder(array.shape[1], words=False)


def _numeric(outputs: Sequence[Any] | npt.NDArray[Any]) -> FloatArray | None:
    """Rows of doubles, or None where outputs are not numbers of one shape."""
    try:
        array = np.asarray(outputs)
    except ValueError:
        return None
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        return None
    return np.ascontiguousarray(array.reshape(len(array), -1), dtype=np.float64)


def _exact(outputs: Sequence[Any] | npt.NDArray[Any]) -> float:
    """Up to where a double tells two outputs apart: whole numbers to 2**53, floats as far as they go."""
    return 2.0**53 if np.asarray(outputs).dtype.kind in "iu" else float(np.finfo(np.float64).max)


def _code(output: Any) -> float:
    """A number that stands for anything: the first 52 bits of a hash of how it prints."""
    digest = hashlib.sha256(repr(output).encode()).digest()
    return float(int.from_bytes(digest[:7], "big") >> 4)
