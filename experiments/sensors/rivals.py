"""The methods that the papers name as rivals, on the settings of the estimators' table.

python -m experiments.sensors.rivals [--trials 100] [--out docs/reference/rivals.md]

The same draws as `experiments.sensors.estimators`, on the line. Squares with a penalty know no positions
and no number of sources; the greedy pursuit adds cells until the readings are within R's radius.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from experiments.sensors.estimators import SETTINGS, Answer, Setting, draw, least, noise, scene
from scipy.optimize import nnls

from sfumato._types import FloatArray
from sfumato.sensing import Operator, emd_of, off_grid
from sfumato.sensing.recovery import Estimate, default_radius

NAMES = ("R", "squares", "squares, count known", "greedy", "off-grid")
HEAD = """# Rivals that the papers name, measured

`python -m experiments.sensors.rivals --trials {trials} --out docs/reference/rivals.md` prints this page. Mean
earth mover's distances between answer and truth, as in [estimators](estimators.md), whose settings and draws
these are: the first {trials} of each. In brackets: the ratio to R with its 95 % interval. **Bold is worse
than R.**

*squares* minimises |M f - y|^2 + p |f|^2, as the line of work of [beddiaf15] does; p is the largest with the
readings within R's radius, and what is negative becomes 0. Those authors know the number of sources: *count
known* keeps the highest peaks, and gives each all mass that is nearest to it. *greedy* adds the cell that
explains most of what is left, fits all masses again (none negative), and ends within R's radius. The
coordinate descent of [li14] is another way to R's own program, so its row is R. *off-grid* is ours: least
squares of few sources anywhere on the line, the problem that [bernstein17] solve by a convex program over
measures (the Beurling lasso) and prove stable for sources far enough apart.

| setting | draws | {names} |
|{rule}|
"""


TAIL = """
Where sources are few and stand apart, squares are far worse than R; at T 0.05 with four and more of them they
are better than R, because spread mass is then not far from any of them, and with eight and more of unequal
masses about as good as the Bayes median ([estimators](estimators.md)), which is better in all other rows but
one: where a source has more mass than `upper` says, greedy, which has no such limit, is the best of all.
Counting on the number of sources does not help squares: peaks of what is blurred so much are not where
sources are. None is offered as an estimator; who fears masses above `upper` says a larger one.
"""


def squares(operator: Operator, y: FloatArray, radius: float) -> FloatArray:
    """The masses of least squares with a penalty, by its largest weight that leaves no more than the radius."""
    left, sizes, right = np.linalg.svd(operator.dense(), full_matrices=False)
    inner = left.T @ y
    rest = float(y @ y - inner @ inner)
    low, high = 1e-14 * sizes[0] ** 2, 1e3 * sizes[0] ** 2
    for _ in range(60):
        middle = math.sqrt(low * high)
        off = rest + float(np.sum((middle / (sizes**2 + middle) * inner) ** 2))
        low, high = (middle, high) if off <= radius**2 else (low, middle)
    return np.asarray(np.maximum(right.T @ (sizes / (sizes**2 + low) * inner), 0.0))


def peaks(masses: FloatArray, count: int) -> FloatArray:
    """The highest peaks, each with all mass that is nearest to it."""
    padded = np.concatenate([[-1.0], masses, [-1.0]])
    tops = np.flatnonzero((masses > padded[:-2]) & (masses >= padded[2:]) & (masses > 0))
    if not tops.size:
        return masses
    tops = tops[np.argsort(-masses[tops], kind="stable")[:count]]
    home = tops[np.abs(np.arange(masses.size)[:, np.newaxis] - tops).argmin(axis=1)]
    return np.asarray(np.bincount(home, weights=masses, minlength=masses.size), dtype=np.float64)


def greedy(operator: Operator, y: FloatArray, radius: float) -> FloatArray:
    """Matching pursuit with masses that are not negative, until nothing is gained or enough is explained."""
    matrix = operator.dense()
    unit = matrix / np.linalg.norm(matrix, axis=0)
    chosen, masses = list[int](), np.zeros(matrix.shape[1])
    while len(chosen) < matrix.shape[0]:
        left = y - matrix @ masses
        pull = unit.T @ left
        best = int(pull.argmax())
        if np.linalg.norm(left) <= radius or pull[best] <= 0 or best in chosen:
            break
        chosen.append(best)
        masses = np.zeros(matrix.shape[1])
        masses[chosen] = nnls(matrix[:, chosen], y)[0]
    return masses


def tried(setting: Setting, trials: int) -> dict[str, FloatArray]:
    """Errors of all on the same draws."""
    operator = scene(setting.on, setting.time)
    sigma = noise(setting.on, setting.time, setting.epsilon, "analytic")
    errors = np.empty((trials, len(NAMES)))
    for trial in range(trials):
        truth, standard = draw(setting, trial)
        y = operator.readings(truth) + sigma * standard
        radius = default_radius(operator, y, sigma, max_mass=setting.max_mass)
        smooth = squares(operator, y, radius)
        answers: list[Answer] = [
            least(operator, y, sigma, setting.max_mass),
            _estimate(operator, smooth),
            _estimate(operator, peaks(smooth, setting.sources)),
            _estimate(operator, greedy(operator, y, radius)),
            off_grid(operator, y, sigma=sigma, max_mass=setting.max_mass).estimate,
        ]
        for at, answer in enumerate(answers):
            if answer is None or not answer.masses.sum() > 0:
                answer = _estimate(operator, np.ones(truth.size))
            errors[trial, at] = emd_of(answer, truth)
    return dict(zip(NAMES, errors.T, strict=True))


def _estimate(operator: Operator, masses: FloatArray) -> Estimate:
    cells = np.flatnonzero(masses)
    return Estimate(operator, operator.space.places(cells), masses[cells])


def row(setting: Setting, errors: dict[str, FloatArray]) -> str:
    """Means, and ratios to R by the delta method on pairs."""
    theirs, cells = errors["R"], []
    for name, ours in errors.items():
        ratio = ours.mean() / theirs.mean()
        half = 1.96 * np.std(ours - ratio * theirs, ddof=1) / (theirs.mean() * math.sqrt(ours.size))
        told = f"{ours.mean():.4f}" + ("" if name == "R" else f" ({ratio:.2f} ± {half:.2f})")
        cells.append(f"**{told}**" if ratio - half > 1 else told)
    return f"| {setting.name} | {len(theirs)} | " + " | ".join(cells) + " |"


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    lines = []
    for setting in SETTINGS:
        if setting.on == "line":
            lines.append(row(setting, tried(setting, min(asked.trials, setting.trials))))
            print(lines[-1], flush=True)
    if asked.out:
        names = " | ".join(NAMES)
        head = HEAD.format(trials=asked.trials, names=names, rule="---|" * (len(NAMES) + 1) + "---")
        asked.out.write_text(head + "\n".join(lines) + "\n" + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
