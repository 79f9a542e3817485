"""Fit scorers of every kind to runs on two inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from sfumato._types import FloatArray
from sfumato.audit.boxes.samples import WORD, Keys, keys_of
from sfumato.audit.fixed.features import (
    Features,
    Places,
    learn_alike,
    learn_features,
)
from sfumato.audit.fixed.scorers import (
    Column,
    ColumnTable,
    Logistic,
    Mask,
    RowTable,
    Scorer,
    View,
    code_keys,
    codes_of,
)

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
"""How strongly weights are held back at width, for each run."""
START = 10.0
"""How strongly at first; then as their size suggests."""
NEWTON = 30


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
    parts = [codes_of(column, view) for column in rows.T]
    keys = np.concatenate([code_keys(place, codes) for place, codes in enumerate(parts)])
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
    width = int(tied.max()) + 1
    max_held = max(1.0, RIDGE * len(rows))
    held_back = min(START, max_held)
    thinned = max(len(rows) // LONGEST, math.ceil(len(rows) * tied.size * (1 + width) / WORK))
    few = features(rows[::thinned])
    thin = np.ones((len(few), 1 + width))
    thin[:, 1:] = few if width == tied.size else few @ np.eye(width)[tied]
    weights = np.zeros(1 + width)
    for _ in range(NEWTON):
        ridge = np.full(1 + width, held_back)
        ridge[0] = 1e-9
        share = expit(weights[0] + coded.score(weights[1:][tied]))
        left = first - share
        slope = (
            np.concatenate([[left.sum()], np.bincount(tied, coded.sums(left), width)])
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
            determined = width - held_back * float(np.trace(solved[1:, 1:]))
            better = determined / max(float(weights[1:] @ weights[1:]), 1e-12)
            better = min(max(1.0, better), max_held)
            if 0.7 < better / held_back < 1.4:
                break
            held_back = better
    return np.concatenate([weights[:1], weights[1:][tied]])
