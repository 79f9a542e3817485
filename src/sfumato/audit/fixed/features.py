"""Rows of outputs as features: standardised columns, differences, steps at quantiles, repeated values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.audit.boxes.samples import WORD

LARGEST = 1e100
"""Squares of features must not overflow; what is beyond says no more than that it is large."""

Places = npt.NDArray[np.int64]

ZERO_BIT = 2000
"""The exponent that stands for the lowest set bit of 0: above that of every double."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """How rows become columns that a linear score can use; learnt from outputs, then fixed.

    A value that repeats (an atom) is a feature of its own and does not count as a size: a code for
    "stopped" is not a large number. Differences of neighboring columns undo running sums.
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
        coded = self.code(rows)
        steps = [
            bins[:, np.newaxis] > np.arange(cuts.size)
            for bins, cuts in zip(coded.bins, self.cuts, strict=True)
        ]
        return np.asarray(
            np.column_stack([coded.sizes, *steps, coded.atoms])[:, self.used], np.float64
        )

    def code(self, rows: FloatArray) -> Coded:
        """The rows in a form that sums over features are quickly taken from."""
        columns = _columns(rows, self.atoms, self.differences)
        sizes = ((columns.clip(self.low, self.high) - self.center) / self.spread).astype(np.float32)
        bins = tuple(
            np.searchsorted(cuts, column).astype(np.uint8)
            for cuts, column in zip(self.cuts, columns.T, strict=True)
        )
        atoms = np.zeros((len(rows), len(self.atoms)), dtype=np.float32)
        for number, (place, value) in enumerate(self.atoms):
            atoms[:, number] = rows[:, place] == value
        return Coded(self, sizes, bins, atoms)

    @property
    def total(self) -> int:
        """All features, with those that are not used."""
        return len(self.center) + sum(cuts.size for cuts in self.cuts) + len(self.atoms)


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Rows as sizes, bins between steps, and atoms; a step is a sum over bins, so that none is made."""

    features: Features
    sizes: npt.NDArray[np.float32]
    bins: tuple[npt.NDArray[np.uint8], ...]
    atoms: npt.NDArray[np.float32]

    def score(self, weights: FloatArray) -> FloatArray:
        """For each row the sum of its features, weighted."""
        full = np.zeros(self.features.total)
        full[self.features.used] = weights
        width = self.sizes.shape[1]
        last = full.size - self.atoms.shape[1]
        total = (self.sizes @ full[:width].astype(np.float32)).astype(np.float64)
        total += self.atoms @ full[last:].astype(np.float32)
        begin = width
        for bins, cuts in zip(self.bins, self.features.cuts, strict=True):
            steps = full[begin : begin + cuts.size]
            if steps.any():
                total += np.concatenate([[0.0], np.cumsum(steps)])[bins]
            begin += cuts.size
        return total

    def sums(self, residuals: FloatArray) -> FloatArray:
        """For each feature in use the sum over the rows, weighted with the residuals."""
        small = residuals.astype(np.float32)
        parts = [small @ self.sizes]
        for bins, cuts in zip(self.bins, self.features.cuts, strict=True):
            held = np.bincount(bins, residuals, minlength=cuts.size + 1)
            parts.append(held[::-1].cumsum()[::-1][1:])
        return np.asarray(
            np.concatenate([*parts, small @ self.atoms])[self.features.used], np.float64
        )


def learn_features(rows: FloatArray, *, shares: npt.ArrayLike = ()) -> Features:
    """Features that suit these rows, with steps at these quantiles of every column."""
    return _learn(rows, shares, [[number] for number in range(_width(rows))])


def learn_alike(rows: FloatArray, shares: npt.ArrayLike) -> tuple[Features, Places]:
    """Features that are the same in every column, and so in every difference; and which of them are one.

    Where many columns carry the same noise, what one of them tells is soon learnt from all.
    """
    width = rows.shape[1] - 1
    differences = list(range(width + 1, _width(rows)))
    groups = [list(range(width)), [width], *([differences] if differences else [])]
    found = _learn(rows, shares, groups)
    group = {number: place for place, members in enumerate(groups) for number in members}
    names: list[tuple[object, ...]] = [
        ("size", group[number]) for number in range(len(found.center))
    ]
    for number, cuts in enumerate(found.cuts):
        names += [("step", group[number], step) for step in range(cuts.size)]
    names += [("atom", place < width, value) for place, value in found.atoms]
    numbers = {
        name: number for number, name in enumerate(dict.fromkeys(names[one] for one in found.used))
    }
    return found, np.array([numbers[names[one]] for one in found.used], dtype=np.int64)


def _learn(rows: FloatArray, shares: npt.ArrayLike, groups: list[list[int]]) -> Features:
    """Features whose scales and steps are those of a group of columns, for every column in it."""
    atoms = _atoms(rows)
    differences = _with_differences(rows)
    columns = _columns(rows, atoms, differences)
    levels = np.asarray(shares, dtype=np.float64)
    low, high, center, spread = np.empty((4, columns.shape[1]))
    cuts: list[FloatArray] = [np.empty(0)] * columns.shape[1]
    sizes = np.ones(columns.shape, dtype=np.bool_)
    sizes[:, : rows.shape[1]] = rows < WORD
    for place, value in atoms:
        sizes[:, place] &= rows[:, place] != value
    for members in groups:
        # Atoms are features of their own: among many of them the steps would miss what lies
        # between.
        held = columns[:, members][sizes[:, members]]
        if not held.size:
            held = np.zeros(1)
        low[members], high[members] = np.quantile(held, [0.01, 0.99])
        clipped = held.clip(low[members[0]], high[members[0]])
        center[members], spread[members] = clipped.mean(), clipped.std() or 1.0
        for number in members:
            cuts[number] = _cuts(held, levels)
    everything = columns.shape[1] + sum(cut.size for cut in cuts) + len(atoms)
    found = Features(
        atoms, differences, low, high, center, spread, tuple(cuts), np.arange(everything)
    )
    # A constant feature, or the same one twice, says nothing and costs a column of the Newton step.
    values = found(rows)
    # Two features with the same sum of roots over the rows are the same one, but for rounding.
    _, first = np.unique(np.sqrt(np.arange(1.0, len(values) + 1)) @ values, return_index=True)
    alike = len(groups) < columns.shape[1]
    kept = range(everything) if alike else sorted(first)
    used = np.array([number for number in kept if np.ptp(values[:, number]) > 0], dtype=np.int64)
    return replace(found, used=used)


def lowest_bits(values: FloatArray) -> npt.NDArray[np.int64]:
    """The exponent of the lowest set bit of each double: the grid it lies on [mironov12, sec. 4].

    All words have that of `WORD`, for they lie on none.

    >>> lowest_bits(np.array([1.0, 0.75, 6.0, 0.0])).tolist()
    [0, -2, 1, 2000]
    """
    mantissa, exponent = np.frexp(np.minimum(values, WORD))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, ZERO_BIT, lowest + exponent.astype(np.int64) - 53)


def leading_bins(values: FloatArray) -> FloatArray:
    """The lower end, in size, of the bin of each double: eight bins to an octave, and one for all words.

    >>> leading_bins(np.array([1.0, 1.2, -5.3, 0.0])).tolist()
    [1.0, 1.125, -5.0, 0.0]
    """
    mantissa, exponent = np.frexp(np.minimum(values, WORD))
    return np.asarray(np.ldexp(np.trunc(mantissa * 16) / 16, exponent))


def bin_end(begin: float) -> float:
    """The other end of the bin that `leading_bins` names by its lower one.

    >>> bin_end(1.125), bin_end(-5.0)
    (1.25, -5.5)
    """
    mantissa, exponent = math.frexp(begin)
    return math.ldexp(mantissa + math.copysign(1 / 16, mantissa), exponent)


def _columns(
    rows: FloatArray, atoms: tuple[tuple[int, float], ...], differences: bool
) -> FloatArray:
    # Words have no size: they count as values that repeat, or not at all.
    columns = np.where(rows >= WORD, 0.0, rows.clip(-LARGEST, LARGEST))
    for place, value in atoms:
        columns[rows[:, place] == value, place] = 0.0
    if differences:
        # The last column only says which outputs are odd.
        columns = np.concatenate([columns, np.diff(columns[:, :-1], axis=1)], axis=1)
    return columns


def _with_differences(rows: FloatArray) -> bool:
    return 2 < len(rows.T) <= 65


def _width(rows: FloatArray) -> int:
    """Columns with their differences."""
    width = len(rows.T)
    return 2 * width - 2 if _with_differences(rows) else width


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
