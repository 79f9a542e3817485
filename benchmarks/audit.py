"""Lower bounds on epsilon beside DP-Sniper's published method, at the same number of runs, pair given.

The rival is ours, after [bichsel21]: a classifier of the two inputs, the outputs it is surest about with mass
c under the second input, and a Clopper-Pearson box on fresh runs. It gets the whole budget for each order of
the pair, and of all its settings the best counts: c of 0.01 and 0.1, logistic regression and a small network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.special import expit

from sfumato.audit.bound import lower_bound
from sfumato.audit.boxes import Box, Pair
from sfumato.audit.ratio import epsilon_lower_box
from sfumato.audit.samples import FloatArray, encoder_of

MASSES = (0.01, 0.1)
LEVEL = 0.05
FLOOR = 0.01
"""Bounds below this count as this much on both sides, lest a ratio of two failures decide."""

Score = Callable[[FloatArray], FloatArray]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism with the pair both sides are given."""

    name: str
    box: Box
    pair: Pair


def logistic(rows: FloatArray, first: Mask, rng: np.random.Generator) -> Score:
    """Logistic regression on standardised outputs, to its optimum."""
    del rng
    scale = _standard(rows)
    design = np.column_stack([np.ones(len(rows)), scale(rows)])
    weights = np.zeros(design.shape[1])
    for _ in range(15):
        share = expit(design @ weights)
        curve = (design * (share * (1 - share))[:, None]).T @ design + np.eye(weights.size)
        weights += np.linalg.solve(curve, design.T @ (first - share) - weights)
    return lambda other: np.column_stack([np.ones(len(other)), scale(other)]) @ weights


def network(rows: FloatArray, first: Mask, rng: np.random.Generator) -> Score:
    """A network with hidden layers of 10 and 5 rectified units, by Adam in small batches."""
    scale = _standard(rows)
    sizes = (rows.shape[1], 10, 5, 1)
    layers = [rng.normal(0, math.sqrt(2 / a), (a, b)) for a, b in pairwise(sizes)]
    state = layers + [np.zeros(b) for b in sizes[1:]]
    means, squares = [np.zeros_like(one) for one in state], [np.zeros_like(one) for one in state]

    def forward(inputs: FloatArray) -> list[FloatArray]:
        found = [inputs]
        for number in range(3):
            level = found[-1] @ state[number] + state[3 + number]
            found.append(np.maximum(level, 0) if number < 2 else level)
        return found

    ready = scale(rows)
    for step in range(1, 3001):
        batch = rng.integers(0, len(rows), 1000)
        found = forward(ready[batch])
        error = (expit(found[-1]) - first[batch, None]) / len(batch)
        slopes = [np.empty(0)] * 6
        for number in (2, 1, 0):
            slopes[number], slopes[3 + number] = found[number].T @ error, error.sum(axis=0)
            error = (error @ state[number].T) * (found[number] > 0)
        rate = 0.01 * 0.5 ** (step / 1000)
        for one, slope, mean, square in zip(state, slopes, means, squares, strict=True):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            corrected = np.sqrt(square / (1 - 0.999**step)) + 1e-8
            one -= rate * mean / (1 - 0.9**step) / corrected
    return lambda other: forward(scale(other))[-1][:, 0]


CLASSIFIERS = (logistic, network)


def sniper(case: Case, runs: int, rng: np.random.Generator) -> dict[str, float]:
    """The bound of every setting of the rival, the better of both orders, each from all of the runs."""
    found: dict[str, float] = {}
    for pair in (case.pair, Pair(case.pair.second, case.pair.first)):
        part, last = runs // 6, runs // 4
        outputs = case.box.run(pair.first, part)
        encoder = encoder_of(outputs)
        rows = np.concatenate([encoder(outputs), encoder(case.box.run(pair.second, part))])
        first = np.arange(len(rows)) < part
        checks = encoder(case.box.run(pair.second, part))
        for classifier in CLASSIFIERS:
            score = classifier(rows, first, rng)
            # Ties are broken at random, as published, so that the mass is c.
            draws = [score(encoder(case.box.run(one, last))) for one in (pair.first, pair.second)]
            ordered = np.sort(score(checks))[::-1]
            for mass in MASSES:
                cut = ordered[int(mass * part)]
                above, ties = (ordered > cut).mean(), (ordered == cut).mean()
                keep = (mass - above) / ties
                k1, k2 = (
                    int(((draw > cut) | ((draw == cut) & (rng.random(last) < keep))).sum()) for draw in draws
                )
                name = f"{classifier.__name__}, c = {mass}"
                bound = epsilon_lower_box(k1, last, k2, last, delta=0.0, level=LEVEL)
                found[name] = max(found.get(name, 0.0), bound)
    return found


def compare(cases: Sequence[Case], *, runs: int, seeds: int) -> tuple[float, float]:
    """The geometric mean over the cases of our bound over the rival's, and its lower 95 % limit over seeds.

    The rival's setting is, for each case, the one with the best mean over the seeds.
    """
    print("| mechanism | sfumato | DP-Sniper's method | its setting | ratio |\n|---|---|---|---|---|")
    logs = []
    for case in cases:
        ours, theirs = [], []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            ours.append(lower_bound(case.box, case.pair, runs=runs, confidence=1 - LEVEL, rng=rng).epsilon)
            theirs.append(sniper(case, runs, rng))
        setting = max(theirs[0], key=lambda name: sum(one[name] for one in theirs))
        rival = [one[setting] for one in theirs]
        logs.append(np.log(np.maximum(ours, FLOOR) / np.maximum(rival, FLOOR)))
        print(
            f"| {case.name} | {np.mean(ours):.3f} | {np.mean(rival):.3f} | {setting} "
            f"| {math.exp(logs[-1].mean()):.2f} |",
            flush=True,
        )
    means = np.array(logs).mean(axis=0)
    error = float(stats.t.ppf(0.95, seeds - 1) * means.std(ddof=1) / math.sqrt(seeds))
    return math.exp(means.mean()), math.exp(means.mean() - error)


def _standard(rows: FloatArray) -> Score:
    center, spread = rows.mean(axis=0), rows.std(axis=0)
    return lambda other: (other - center) / np.where(spread > 0, spread, 1.0)
