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

from sfumato._types import FloatArray
from sfumato.audit.boxes.samples import ALL_ODD, WORD, Keys, keys_of, spelled
from sfumato.audit.fixed.features import (
    ZERO_BIT,
    Features,
    bin_end,
    leading_bins,
    lowest_bits,
)

Sign = Literal[1, -1]
View = Literal["value", "bin", "low bits"]
Mask = npt.NDArray[np.bool_]

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
            total += _look_up(self.keys, self.values, code_keys(place, codes_of(column, self.view)))
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


def codes_of(column: FloatArray, view: View) -> FloatArray:
    """A column as the values, bins or lowest bits that a table is about."""
    match view:
        case "value":
            return column
        case "bin":
            return leading_bins(column)
        case "low bits":
            return lowest_bits(column).astype(np.float64)


def code_keys(place: int, codes: FloatArray) -> Keys:
    """A key for each code of the column at a place."""
    return keys_of(codes[:, np.newaxis], before=float(place))


def _look_up(keys: Keys, values: FloatArray, targets: Keys) -> FloatArray:
    if not keys.size:
        return np.zeros(len(targets))
    places = np.minimum(np.searchsorted(keys, targets), keys.size - 1)
    return np.where(keys[places] == targets, values[places], 0.0)


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
