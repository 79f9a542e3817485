"""Rows of outputs as features: standardised columns, differences, steps at quantiles, repeated values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.audit.samples import FloatArray

LARGEST = 1e100
"""Squares of features must not overflow; what is beyond says no more than that it is large."""

Keys = npt.NDArray[np.uint64]

ZERO_BIT = 2000
"""The exponent that stands for the lowest set bit of 0: above that of every double."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """How rows become columns that a linear score can use; learnt from outputs, then fixed.

    A value that repeats (an atom) is a feature of its own and does not count as a size: a code for "stopped"
    is not a large number. Differences of neighboring columns undo running sums.
    """

    atoms: tuple[tuple[int, float], ...]
    differences: bool
    low: FloatArray
    high: FloatArray
    center: FloatArray
    spread: FloatArray
    cuts: tuple[FloatArray, ...]
    used: npt.NDArray[np.int64]

    def __call__(self, rows: FloatArray) -> FloatArray:
        """One row of features for each row."""
        columns = _columns(rows, self.atoms, self.differences)
        parts = [(columns.clip(self.low, self.high) - self.center) / self.spread]
        parts += [
            (columns[:, [number]] > cuts).astype(np.float64)
            for number, cuts in enumerate(self.cuts)
            if cuts.size
        ]
        if self.atoms:
            parts.append(
                np.column_stack([rows[:, place] == value for place, value in self.atoms]).astype(float)
            )
        return np.asarray(np.concatenate(parts, axis=1)[:, self.used])


def learn_features(rows: FloatArray, *, shares: npt.ArrayLike = ()) -> Features:
    """Features that suit these rows, with steps at these quantiles of every column."""
    atoms = _atoms(rows)
    differences = 2 < rows.shape[1] <= 65
    columns = _columns(rows, atoms, differences)
    low, high = np.quantile(columns, [0.01, 0.99], axis=0)
    clipped = columns.clip(low, high)
    spread = clipped.std(axis=0)
    wanted = np.asarray(shares, dtype=np.float64)
    cuts = tuple(_cuts(column, wanted) for column in columns.T)
    center = clipped.mean(axis=0)
    everything = len(atoms) + columns.shape[1] + sum(cut.size for cut in cuts)
    found = Features(
        atoms, differences, low, high, center, np.where(spread > 0, spread, 1.0), cuts, np.arange(everything)
    )
    # A constant feature, or the same one twice, says nothing and costs a column of the Newton step.
    values = found(rows)
    _, first = np.unique(values, axis=1, return_index=True)
    used = np.array([number for number in sorted(first) if np.ptp(values[:, number]) > 0], dtype=np.int64)
    return Features(atoms, differences, low, high, center, np.where(spread > 0, spread, 1.0), cuts, used)


def keys_of(rows: FloatArray) -> Keys:
    """A 64-bit number for each row, equal for equal rows; others collide by chance alone."""
    # Adding 0 turns -0 into 0, which is equal to it.
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)
    found = np.full(len(rows), 0xCBF29CE484222325, dtype=np.uint64)
    for column in bits.T:
        found = (found ^ (column >> np.uint64(29)) ^ column) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(32)
    return found


def lowest_bits(values: FloatArray) -> npt.NDArray[np.int64]:
    """The exponent of the lowest set bit of each double: the grid it lies on [mironov12, sec. 4].

    >>> lowest_bits(np.array([1.0, 0.75, 6.0, 0.0])).tolist()
    [0, -2, 1, 2000]
    """
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, ZERO_BIT, lowest + exponent.astype(np.int64) - 53)


def leading_bins(values: FloatArray) -> FloatArray:
    """The lower end, in size, of the bin of each double: eight bins to an octave.

    >>> leading_bins(np.array([1.0, 1.2, -5.3, 0.0])).tolist()
    [1.0, 1.125, -5.0, 0.0]
    """
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.trunc(mantissa * 16) / 16, exponent))


def bin_end(begin: float) -> float:
    """The other end of the bin that `leading_bins` names by its lower one.

    >>> bin_end(1.125), bin_end(-5.0)
    (1.25, -5.5)
    """
    mantissa, exponent = math.frexp(begin)
    return math.ldexp(mantissa + math.copysign(1 / 16, mantissa), exponent)


def _columns(rows: FloatArray, atoms: tuple[tuple[int, float], ...], differences: bool) -> FloatArray:
    columns = rows.clip(-LARGEST, LARGEST)
    for place, value in atoms:
        columns[rows[:, place] == value, place] = 0.0
    if differences:
        # The last column only says which outputs are odd.
        columns = np.concatenate([columns, np.diff(columns[:, :-1], axis=1)], axis=1)
    return columns


def _atoms(rows: FloatArray) -> tuple[tuple[int, float], ...]:
    """Values that make up more than 1 % of a column, where they are few."""
    thin = rows[:: max(1, len(rows) // 4000)]
    found: list[tuple[int, float]] = []
    for place, column in enumerate(thin.T):
        values, counts = np.unique(column, return_counts=True)
        often = values[counts > max(3, 0.01 * len(thin))]
        if often.size <= 40:
            found += [(place, float(value)) for value in often]
    return tuple(found)


def _cuts(column: FloatArray, shares: FloatArray) -> FloatArray:
    if not shares.size or np.ptp(column) == 0:
        return np.empty(0)
    found = np.unique(np.quantile(column, shares, method="lower"))
    return np.asarray(found[found < column.max()])
