"""Audits: lower bounds beside DP-Sniper's published method, bands and their coverage, time to refutation.

Prints Markdown; `make bench` keeps it in docs/reference/benchmarks.md, and `--quick` is a smoke
test that says nothing. In the first table both sides get the same number of runs, and the pair. The
rival is ours, after [bichsel21]: a classifier of the two inputs, the outputs it is surest about
with mass c under the second input, and a Clopper-Pearson box on fresh runs. It gets the whole
budget for each order of the pair, and of all its settings the best counts: c of 0.01 and 0.1,
logistic regression and a small network.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.special import expit

from sfumato._types import FloatArray
from sfumato.audit.boxes import Box, FunctionBox, Pair, encoder_of
from sfumato.audit.catalogue import all_specimens, broken, from_law, truncated_geometric_law
from sfumato.audit.fixed import epsilon_lower_box, lower_bound, lower_limit, profile
from sfumato.audit.sequential import Budget, refute
from sfumato.privacy.accounting import hockey_stick

NAME = b"benchmarks/audit.py"
EPSILON = 0.1
SLOW = ("OurSelection",)
LEAKS = ("Rare", "FloatLaplace", "FloatNormal")
QUICKLY = ("RNM3", "RNM4", "SVT5", "SVT6", "NoisyHist2", "PrefixSum", "HalfNoise")
GRID = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
OUTPUTS = 16
CONFIDENCE = 0.99
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


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything is run."""

    runs: int = 400_000
    seeds: int = 3
    bands: int = 240
    band_runs: int = 200_000
    audits: int = 21
    epsilons: tuple[float, ...] = (1.0, 0.1)


QUICK = Size(runs=2000, seeds=2, bands=4, band_runs=4000, audits=1, epsilons=(1.0,))


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
    for step in range(1, 3001 if len(rows) > 10_000 else 301):
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
                    int(((draw > cut) | ((draw == cut) & (rng.random(last) < keep))).sum())
                    for draw in draws
                )
                name = f"{classifier.__name__}, c = {mass}"
                bound = epsilon_lower_box(k1, last, k2, last, delta=0.0, level=LEVEL)
                found[name] = max(found.get(name, 0.0), bound)
    return found


def compare(size: Size) -> None:
    """Our bound over the rival's for every specimen, and the geometric mean with its lower limit over seeds.

    The rival's setting is, for each specimen, the one with the best mean over the seeds; the last
    line gives it the luckiest one of every seed. Where leaks are rare or in low bits no classifier
    of sizes sees them, so the mean is given without these rows, too.
    """
    names = [one.name for one in all_specimens(EPSILON, _rng(0)) if one.name not in SLOW]
    print(
        "| mechanism | true | sfumato | DP-Sniper's method | its setting | ratio |\n|---|---|---|---|---|---|"
    )
    logs: dict[str, FloatArray] = {}
    lucky: dict[str, FloatArray] = {}
    for name in names:
        ours, theirs, true = [], [], math.inf
        for seed in range(size.seeds):
            rng = _rng(seed)
            found = next(one for one in all_specimens(EPSILON, rng) if one.name == name)
            case, true = Case(name, found.box, found.pair), found.true
            bound = lower_bound(case.box, case.pair, runs=size.runs, confidence=1 - LEVEL, rng=rng)
            ours.append(bound.epsilon)
            theirs.append(sniper(case, size.runs, rng))
        setting = max(theirs[0], key=lambda name: sum(one[name] for one in theirs))
        rival = [one[setting] for one in theirs]
        logs[name] = np.log(np.maximum(ours, FLOOR) / np.maximum(rival, FLOOR))
        luckiest = [max(one.values()) for one in theirs]
        lucky[name] = np.log(np.maximum(ours, FLOOR) / np.maximum(luckiest, FLOOR))
        print(
            f"| {name} | {true:.3g} | {np.mean(ours):.3f} | {np.mean(rival):.3f} | {setting} "
            f"| {math.exp(logs[name].mean()):.2f} |",
            flush=True,
        )
    print(
        "\n| geometric mean over | rows | ratio | lower 95 % limit over seeds | asked for | rows lost |"
    )
    print("|---|---|---|---|---|---|")
    ordinary = _without(names)
    _mean_row("the catalogue", logs)
    _mean_row("all but rare and float leaks", {name: logs[name] for name in ordinary})
    _mean_row("the same, the rival lucky", {name: lucky[name] for name in ordinary})


def _mean_row(label: str, logs: dict[str, FloatArray]) -> None:
    seeds = np.array(list(logs.values())).mean(axis=0)
    middle = float(seeds.mean())
    limit = middle - float(
        stats.t.ppf(0.95, seeds.size - 1) * seeds.std(ddof=1) / math.sqrt(seeds.size)
    )
    lost = [f"{name} {math.exp(one.mean()):.2f}" for name, one in logs.items() if one.mean() < 0]
    print(
        f"| {label} | {len(logs)} | {math.exp(middle):.2f} | {math.exp(limit):.2f} "
        f"| 1.2: {verdict(math.exp(limit) >= 1.2)} | {', '.join(lost) or 'none'} |",
        flush=True,
    )


def bands(size: Size) -> None:
    """How wide the band is and how often it holds everywhere at once."""
    rng = _rng(0)
    laws = [truncated_geometric_law(center, epsilon=1.0, outputs=OUTPUTS) for center in (7, 8)]
    true = np.maximum(
        hockey_stick(laws[0], laws[1], epsilon=GRID), hockey_stick(laws[1], laws[0], epsilon=GRID)
    )
    box = FunctionBox(lambda data, runs: from_law(laws[data], runs, rng), "truncated geometric")
    held, widths = 0, []
    for _ in range(size.bands):
        band = profile(box, Pair(0, 1), epsilons=GRID, runs=size.band_runs, confidence=1 - LEVEL)
        lower, upper = np.array(band.lower), np.array(band.upper)
        held += bool(((lower <= true) & (true <= upper)).all())
        widths.append((upper - lower)[GRID.index(0.5)] / 2)
    width, least = float(np.median(widths)), lower_limit(held, size.bands, level=LEVEL)
    print(
        "| outputs | runs | half-width at epsilon 0.5, median | largest | asked for | bands that hold | ",
        end="",
    )
    print("lower 95 % limit of coverage | asked for |\n|---|---|---|---|---|---|---|---|")
    print(
        f"| {OUTPUTS} | {size.band_runs:,} | {width:.4f} | {max(widths):.4f} "
        f"| 0.013: {verdict(width <= 0.013)} | {held} of {size.bands} "
        f"| {least:.3f} | 0.95: {verdict(least >= 0.95)} |"
    )


def refutations(size: Size) -> None:
    """Runs and seconds until a false claim is refuted, medians over seeds; what is not counts as never."""
    print("| claim | mechanism | pair | refuted | runs, median | s, median | asked for |")
    print("|---|---|---|---|---|---|---|")
    for epsilon, known, asked in (
        (1.0, False, dict.fromkeys(QUICKLY, 10_000) | {"SVT3": 40_000, "SVT4": 40_000}),
        (0.1, True, dict.fromkeys(QUICKLY, 300_000)),
        (1.0, True, {"FloatLaplace": 1500, "FloatNormal": 1500}),
    ):
        for name, most in asked.items() if epsilon in size.epsilons else ():
            _refutation_row(name, epsilon, known=known, most=most, audits=size.audits)


def _refutation_row(name: str, epsilon: float, *, known: bool, most: int, audits: int) -> None:
    runs, seconds = [], []
    for seed in range(audits):
        found = next(one for one in broken(epsilon, _rng(seed)) if one.name == name)
        pairs = (found.pair,) if known else found.inputs
        budget = Budget(runs=5 * most, seconds=120.0)
        result = refute(found.box, found.claim, pairs=pairs, confidence=CONFIDENCE, budget=budget)
        caught = result.kind == "REFUTED"
        runs.append(result.runs if caught else math.inf)
        seconds.append(result.seconds if caught else math.inf)
    middle, spent = float(np.median(runs)), float(np.median(seconds))
    within = 5.0 if most == 10_000 else math.inf
    met = middle <= most and spent <= within
    print(
        f"| {epsilon:g} | {name} | {'given' if known else 'unknown'} | {np.isfinite(runs).sum()} of {audits} "
        f"| {middle:,.0f} | {spent:.2f} | {most:,}{' and 5 s' if within < 9 else ''}: {verdict(met)} |",
        flush=True,
    )


def verdict(kept: bool) -> str:
    """Whether what was asked for is there."""
    return "met" if kept else "MISSED"


def main() -> None:
    """All tables; seeds are numbered, with the bytes of the name of this file."""
    size = QUICK if "--quick" in sys.argv[1:] else Size()
    print("\n## Audits\n")
    print(
        f"`benchmarks/audit.py`, one run, one thread. Lower bounds on epsilon at delta 0 and {1 - LEVEL:.0%} "
        f"from {size.runs:,} runs, pair given, means of {size.seeds} seeds; the rival gets as many for each "
        f"order of the pair, and of its settings the best counts. Bounds below {FLOOR} count as that. Claims "
        f"are at epsilon {EPSILON:g} (RAPPOR at its own). {', '.join(SLOW)}, drawn one by one, is left out.\n"
    )
    compare(size)
    print()
    bands(size)
    print(f"\nFalse claims, refuted with confidence {CONFIDENCE:.0%}:\n")
    refutations(size)
    print()


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([*NAME, seed])


def _without(names: Sequence[str]) -> list[str]:
    return [name for name in names if name not in LEAKS]


def _standard(rows: FloatArray) -> Score:
    center, spread = rows.mean(axis=0), rows.std(axis=0)
    return lambda other: (other - center) / np.where(spread > 0, spread, 1.0)


if __name__ == "__main__":
    main()
