"""Scorers: functions of an output, learnt from runs on two inputs, that are high where the first is likelier.

A scorer may be as wrong as it likes: tests count, on runs it has not seen, how often it passes a
threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from sfumato._types import FloatArray
from sfumato.audit.boxes.samples import ALL_ODD, WORD, spelled
from sfumato.audit.fixed.features import (
    ZERO_BIT,
    Features,
    Keys,
    Places,
    bin_end,
    keys_of,
    leading_bins,
    learn_alike,
    learn_features,
    lowest_bits,
)

Sign = Literal[1, -1]
View = Literal["value", "bin", "low bits"]
Mask = npt.NDArray[np.bool_]

SHARES = (0.003, 0.01, 0.03, 0.07, *np.linspace(0.125, 0.875, 9).tolist(), 0.93, 0.97, 0.99, 0.997)
COLUMNS = 32
"""Of wider outputs only so many columns are tried one by one."""
WORK, LONGEST = 3e8, 10_000
"""Multiplications, and runs, for the curvature in one Newton step; longer samples are thinned."""
NUMBERS = 1e8
"""Features in all; longer samples are thinned."""
CELLS = 400_000
"""Numbers in all that are looked at one by one; longer samples are thinned."""
STEPS = 250
"""Steps in all; of wider outputs each column has fewer."""
RIDGE = 1e-2
"""How strongly weights are held back at most, for each run."""
START = 10.0
"""How strongly at first; then as their size suggests."""
NEWTON = 30
LISTED = 6
"""How many outputs or columns a sentence names before it counts the others."""


class Scorer(Protocol):
    """High scores are outputs likelier under the first input, low scores under the second."""

    @property
    def name(self) -> str:
        """What kind of scorer it is."""

    def score(self, rows: FloatArray) -> FloatArray:
        """One number for each encoded row."""

    def words(self, threshold: float, sign: Sign) -> str:
        """The event {score >= threshold}, or {score <= threshold} for sign -1, in plain words."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The number in one column, as it is; `single` where outputs are single numbers.

    `mixed` where there are words among the numbers: they all count alike, as above every number.
    """

    column: int
    single: bool
    orientation: Sign
    name: str = "column"
    mixed: bool = False

    def score(self, rows: FloatArray) -> FloatArray:
        """The column, turned so that high is likelier under the first input."""
        return np.asarray(self.orientation * np.minimum(rows[:, self.column], WORD))

    def words(self, threshold: float, sign: Sign) -> str:
        """A half-line of outputs."""
        above, at = sign * self.orientation > 0, self.orientation * threshold
        if self.name == "odd outputs":
            kinds = ("odd", "of unusual parts") if above else ("usual", "of the usual parts")
            return f"the output is {kinds[at > (1 if above else 0)]}"
        what = "the output" if self.single else f"number {self.column + 1} of the output"
        if above and at >= WORD:
            return f"{what} is no number"
        others = ", or no number" if above and self.mixed else ""
        return f"{what} is {'at least' if above else 'at most'} {at:.6g}{others}"


@dataclass(frozen=True, slots=True, eq=False)
class RowTable:
    """A score for each output that was seen, 0 for all others."""

    name: str
    keys: Keys
    values: FloatArray
    rows: FloatArray = field(repr=False)

    def score(self, rows: FloatArray) -> FloatArray:
        """What the table says of each row."""
        return _look_up(self.keys, self.values, keys_of(rows))

    def words(self, threshold: float, sign: Sign) -> str:
        """The outputs in the event, or those outside it where these are fewer."""
        inside = passes(self.values, threshold, sign)
        if bool(passes(np.zeros(1), threshold, sign)[0]):
            return f"the output is none of {_listed(self.rows[~inside])}"
        return f"the output is one of {_listed(self.rows[inside])}"


@dataclass(frozen=True, slots=True, eq=False)
class ColumnTable:
    """A score for each value, bin or lowest bit that a column was seen to have; an output gets their sum."""

    name: str
    view: View
    keys: Keys
    values: FloatArray
    codes: FloatArray = field(repr=False)

    def score(self, rows: FloatArray) -> FloatArray:
        """The sum over the columns."""
        total = np.zeros(len(rows))
        for place, column in enumerate(rows.T):
            total += _look_up(self.keys, self.values, _code_keys(place, _codes(column, self.view)))
        return total

    def words(self, threshold: float, sign: Sign) -> str:
        """What speaks for the event, the loudest first."""
        order = np.argsort(-sign * self.values, kind="stable")
        telling = [number for number in order if sign * self.values[number] > 0]
        single = np.all(self.codes[:, 0] == 0)
        named = [self._named(number, single=bool(single)) for number in telling[:LISTED]]
        more = f" and {len(telling) - LISTED} others" if len(telling) > LISTED else ""
        if single:
            inside = [
                number for number in telling if passes(self.values[[number]], threshold, sign)[0]
            ]
            named = [self._named(number, single=True) for number in inside[:LISTED]]
            more = f", or one of {len(inside) - LISTED} others" if len(inside) > LISTED else ""
            if named:
                return f"the output {' or '.join(named)}{more}"
        side = "at least" if sign > 0 else "at most"
        reasons = "; ".join(named) or "nothing"
        return f"a score by {self.name} is {side} {threshold:.4g}; for it: {reasons}{more}"

    def _named(self, number: int, *, single: bool) -> str:
        place, code = int(self.codes[number, 0]), float(self.codes[number, 1])
        who = "" if single else f"number {place + 1} "
        match self.view:
            case "value":
                return f"{who}is exactly {spelled(code) or repr(code)}"
            case "bin" if code == 0:
                return f"{who}is exactly {code!r}"
            case "bin" if code >= WORD:
                return f"{who}is no number"
            case "bin":
                low, high = sorted([code, float(bin_end(code))])
                return (
                    f"{who}is in [{low:.6g}, {high:.6g})"
                    if code > 0
                    else f"{who}is in ({low:.6g}, {high:.6g}]"
                )
            case "low bits":
                if code == ZERO_BIT:
                    return f"{who}is 0"
                if code == math.log2(WORD):
                    return f"{who}is no number"
                return f"{who}is an odd multiple of 2**{int(code)}"


@dataclass(frozen=True, slots=True, eq=False)
class Logistic:
    """A linear score of features, fitted as the logarithm of the likelihood ratio."""

    name: str
    features: Features
    weights: FloatArray

    def score(self, rows: FloatArray) -> FloatArray:
        """The fitted log-likelihood ratio; large samples go through in parts."""
        parts = [self._part(rows[begin : begin + 50_000]) for begin in range(0, len(rows), 50_000)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _part(self, rows: FloatArray) -> FloatArray:
        """Sums in double precision and one order, so that a score depends on its row alone.

        Products of matrices are summed in an order that depends on how many rows there are;
        thresholds are scores that were seen, so a last bit would move whole rows out of an event.
        """
        coded = self.features.code(rows)
        full = np.zeros(self.features.total)
        full[self.features.used] = self.weights[1:]
        width, last = coded.sizes.shape[1], full.size - coded.atoms.shape[1]
        steps = full.copy()
        steps[:width] = steps[last:] = 0.0
        total = self.weights[0] + coded.score(steps[self.features.used])
        for values, weights in ((coded.sizes, full[:width]), (coded.atoms, full[last:])):
            for place in np.flatnonzero(weights):
                total += values[:, place].astype(np.float64) * weights[place]
        return np.asarray(total)

    def words(self, threshold: float, sign: Sign) -> str:
        """Which way the likelihood ratio points, and how far."""
        side = "at least" if sign > 0 else "at most"
        return f"the log-likelihood ratio by a fitted {self.name} score is {side} {threshold:.4g}"


def fit_scorers(rows1: FloatArray, rows2: FloatArray) -> tuple[Scorer, ...]:
    """Scorers of every kind that suits these runs on the first and on the second input.

    Counts of exact outputs where few are distinct; columns as they are; logistic regressions,
    linear, in steps, and in steps that are the same for every column; lowest set bits, for what
    floating point gives away [mironov12]; and outputs, values and bins that only one input was seen
    to reach, which no likelihood ratio need be fitted to.
    """
    if not (len(rows1) and len(rows2)):
        return ()
    rows = np.concatenate([rows1, rows2])
    first = np.arange(len(rows)) < len(rows1)
    counts = _Counts.of(keys_of(rows), first)
    found: list[Scorer] = []
    if 1 < counts.keys.size <= max(64, len(rows) // 10):
        found.append(RowTable("count table", counts.keys, counts.ratio(), rows[counts.place]))
    # Where nothing is seen twice, no exact output will be seen again.
    if counts.keys.size < len(rows):
        rare = counts.one_sided()
        kept = rare != 0
        found.append(
            RowTable("rare outputs", counts.keys[kept], rare[kept], rows[counts.place[kept]])
        )
    single = rows.shape[1] == 2
    views: tuple[View, ...] = ("bin", "low bits") if single else ("value", "bin", "low bits")
    stride = math.ceil(rows.size / CELLS)
    tables = (_column_table(rows[::stride], first[::stride], view) for view in views)
    found += [table for table in tables if table.keys.size]
    found += _columns(rows1, rows2)
    found += _logistics(rows, first)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """How often each key was seen under either input, and where first."""

    keys: Keys
    place: Places
    first: FloatArray
    second: FloatArray

    @classmethod
    def of(cls, keys: Keys, first: Mask) -> _Counts:
        distinct, place, member = np.unique(keys, return_index=True, return_inverse=True)
        ones = np.bincount(member, first, distinct.size).astype(np.float64)
        everything = np.bincount(member, minlength=distinct.size)
        return cls(distinct, place, ones, everything - ones)

    def ratio(self) -> FloatArray:
        """The logarithm of the ratio of shares, smoothed by one count on either side."""
        runs = math.log((self.first.sum() + 1) / (self.second.sum() + 1))
        return np.asarray(np.log((self.first + 1) / (self.second + 1)) - runs)

    def one_sided(self) -> FloatArray:
        """How often a key was seen, with the sign of the one input that reached it; 0 where both did."""
        return np.where(self.second == 0, self.first, np.where(self.first == 0, -self.second, 0.0))


def _column_table(rows: FloatArray, first: Mask, view: View) -> ColumnTable:
    parts = [_codes(column, view) for column in rows.T]
    keys = np.concatenate([_code_keys(place, codes) for place, codes in enumerate(parts)])
    counts = _Counts.of(keys, np.tile(first, len(parts)))
    if view == "low bits":
        values, name = counts.ratio(), "lowest set bits"
    else:
        values, name = counts.one_sided(), f"rare {view}s"
    kept = np.abs(values) > 1e-12
    place = counts.place[kept] // len(rows)
    codes = np.concatenate(parts)[counts.place[kept]]
    return ColumnTable(name, view, counts.keys[kept], values[kept], np.column_stack([place, codes]))


def _columns(rows1: FloatArray, rows2: FloatArray) -> list[Scorer]:
    found: list[Scorer] = []
    single = rows1.shape[1] == 2
    for place in range(min(rows1.shape[1], COLUMNS)):
        values1, values2 = rows1[:, place], rows2[:, place]
        values = np.concatenate([values1, values2])
        # Words have no order. Where they are few, all of them count as one value above the numbers.
        mixed = bool((values >= WORD).any())
        if (values < WORD).mean() > 0.5 and np.ptp(values) > 0:
            # The mean rank decides, which no outlier moves.
            middle = float(np.median(values))
            ahead = np.sign(values1 - middle).mean() - np.sign(values2 - middle).mean()
            name = "odd outputs" if place == rows1.shape[1] - 1 else "column"
            found.append(Column(place, single, 1 if ahead >= 0 else -1, name, mixed))
    return found


def _logistics(rows: FloatArray, first: Mask) -> list[Scorer]:
    # The two inputs follow each other, so a stride takes alike of both.
    few = rows[:: max(1, len(rows) // 10_000)]
    plain = learn_features(few)
    columns = len(plain.center)
    stepped = learn_features(few, shares=SHARES[:: math.ceil(columns * len(SHARES) / STEPS)])
    models = [("linear", plain, _apart(plain)), ("stepwise additive", stepped, _apart(stepped))]
    if rows.shape[1] > 2:
        models.append(("alike in all columns", *learn_alike(few, SHARES)))
    found: list[Scorer] = []
    for name, features, tied in models:
        # The size of a single column is a scorer already.
        if features.used.size > (name == "linear"):
            stride = math.ceil(len(rows) * features.total / NUMBERS)
            weights = _regression(features, tied, rows[::stride], first[::stride])
            found.append(Logistic(name, features, weights))
    return found


def _apart(features: Features) -> Places:
    return np.arange(features.used.size)


def _regression(features: Features, tied: Places, rows: FloatArray, first: Mask) -> FloatArray:
    """Weights of a ridge logistic regression, the constant first; those of tied features are the same.

    Newton steps whose curvature comes from a thinned sample; their slope, which decides where they
    end, from the whole of it.
    """
    coded = features.code(rows)
    most = int(tied.max()) + 1
    most_held = max(1.0, RIDGE * len(rows))
    held_back = min(START, most_held)
    thinned = max(len(rows) // LONGEST, math.ceil(len(rows) * tied.size * (1 + most) / WORK))
    few = features(rows[::thinned])
    thin = np.ones((len(few), 1 + most))
    thin[:, 1:] = few if most == tied.size else few @ np.eye(most)[tied]
    weights = np.zeros(1 + most)
    for _ in range(NEWTON):
        ridge = np.full(1 + most, held_back)
        ridge[0] = 1e-9
        share = expit(weights[0] + coded.score(weights[1:][tied]))
        left = first - share
        slope = (
            np.concatenate([[left.sum()], np.bincount(tied, coded.sums(left), most)])
            - ridge * weights
        )
        spread = expit(thin @ weights)
        curve = (thin * (spread * (1 - spread))[:, np.newaxis]).T @ thin * (len(rows) / len(thin))
        solved = np.linalg.inv(curve + np.diag(ridge))
        step = solved @ slope
        weights += step
        if np.abs(step).max() < 1e-3:
            # As many weights as the runs determine, over the sum of their squares [mackay92, sec.
            # 4].
            determined = most - held_back * float(np.trace(solved[1:, 1:]))
            better = determined / max(float(weights[1:] @ weights[1:]), 1e-12)
            better = min(max(1.0, better), most_held)
            if 0.7 < better / held_back < 1.4:
                break
            held_back = better
    return np.concatenate([weights[:1], weights[1:][tied]])


def _codes(column: FloatArray, view: View) -> FloatArray:
    match view:
        case "value":
            return column
        case "bin":
            return leading_bins(column)
        case "low bits":
            return lowest_bits(column).astype(np.float64)


def _code_keys(place: int, codes: FloatArray) -> Keys:
    return keys_of(np.column_stack([np.full(len(codes), float(place)), codes]))


def _look_up(keys: Keys, values: FloatArray, wanted: Keys) -> FloatArray:
    if not keys.size:
        return np.zeros(len(wanted))
    places = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[places] == wanted, values[places], 0.0)


def passes(scores: FloatArray, threshold: float, sign: Sign) -> Mask:
    """Which scores are in the event."""
    return np.asarray(scores >= threshold if sign > 0 else scores <= threshold)


def _listed(rows: FloatArray) -> str:
    shown = [_shown(row) for row in rows[:LISTED]]
    more = f" and {len(rows) - LISTED} others" if len(rows) > LISTED else ""
    return ", ".join(shown) + more


def _shown(row: FloatArray) -> str:
    if row.size == 2 or row[-1] == ALL_ODD:
        return spelled(float(row[0])) or repr(float(row[0]))
    return "(" + ", ".join(spelled(float(value)) or f"{value:g}" for value in row[:-1]) + ")"
