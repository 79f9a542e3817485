"""Every estimator on every setting, paired with R: the table of docs/reference/estimators.md.

python -m experiments.sensors.estimators [--trials 400] [--only NAME ...] [--out
docs/reference/estimators.md]

Each trial draws sources and noise once; all estimators see the same readings. Draws for which R is
infeasible are solved at the smallest feasible radius, and answers without mass are scored as mass
spread evenly. A ratio is of mean errors, with 95 % intervals by the delta method on pairs. Bands:
the share of statements "a source within r of here with 90 %" that were true. `TARGETS` are what
issue 9 asks; a miss is exit code 1.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from experiments.sensors.protocol import generator

from sfumato.privacy import MovedMass, SwappedCells, gaussian_sigma
from sfumato.sensing import (
    Operator,
    bayes_median,
    emd_of,
    graph_diffusion,
    heat_line,
    heat_plane,
    mixture,
    off_grid,
    posterior,
    sensitivity,
)
from sfumato.sensing.model.operators import even_places
from sfumato.sensing.planning import block_graph
from sfumato.sensing.recovery import Estimate
from sfumato.sensing.recovery.estimators import (
    RecoveryProblem,
    SourcePosterior,
    bands,
    estimator_named,
    estimator_names,
    recover_min_radius,
)
from sfumato.spaces import Grid

FloatArray = npt.NDArray[np.float64]

Answer = Estimate | None
HEAT_ONLY = {"off-grid", "mixture"}  # of ours: not on graphs


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: what the sources are like, and the noise."""

    name: str
    sources: int
    masses: tuple[float, float] = (1.0, 1.0)
    epsilon: float = 4.0
    time: float = 0.05
    on: str = "line"
    max_mass: float = 1.0
    trials: int = 400
    spread: float = 0.0  # sources that are not points: blocks of this width
    most_ratio: float | None = None  # of bayes-median to R, the upper end of its interval
    most_error: float | None = None  # of the default


UNEQUAL = (0.3, 1.0)
ISSUE = tuple(
    Setting(
        f"{k} source{'s' * (k > 1)}, {'mass 1' if kind == (1.0, 1.0) else 'mass 0.3 to 1'}",
        k,
        kind,
        most_ratio=0.7 if k >= 4 else 1.15,
    )
    for k in (1, 2, 4, 8)
    for kind in ((1.0, 1.0), UNEQUAL)
)
OTHERS = (
    Setting("1 source, mass 1, epsilon 1", 1, epsilon=1, most_error=0.025),
    Setting("4 sources, mass 1, epsilon 1", 4, epsilon=1, trials=100),
    Setting("4 sources, mass 1, T 0.005", 4, time=0.005, trials=100),
    Setting("16 sources, mass 0.3 to 1 (more than it believes at first)", 16, UNEQUAL, trials=100),
    Setting("20 sources, mass 1 (more than it believes at first)", 20, trials=100),
    Setting("1 source, mass 1.3, upper 1 (larger than it believes)", 1, (1.3, 1.3), trials=100),
    Setting("1 source, mass 1.3, upper 3", 1, (1.3, 1.3), max_mass=3.0, trials=100),
    Setting("2 sources, mass 0.05 to 0.2", 2, (0.05, 0.2), trials=100),
    Setting("2 sources, mass 0.05 to 0.2, upper 0.2", 2, (0.05, 0.2), max_mass=0.2, trials=100),
    Setting("2 sources, mass 1, upper 3", 2, max_mass=3.0, trials=100),
    Setting("2 blocks of width 0.2 (no points at all)", 2, spread=0.2, trials=100),
    Setting("plane, 1 source, mass 1", 1, on="plane", trials=60),
    Setting("plane, 3 sources, mass 0.3 to 1", 3, UNEQUAL, on="plane", trials=60),
    Setting("graph of 500 nodes, 1 source, mass 1", 1, on="graph", trials=60),
    Setting("graph of 500 nodes, 3 sources, mass 0.3 to 1", 3, UNEQUAL, on="graph", trials=60),
)
SETTINGS = ISSUE + OTHERS


@dataclass(frozen=True, slots=True)
class Trial:
    """Errors of all estimators on one draw, and which of its bands held."""

    errors: dict[str, float] = field(default_factory=dict)
    held: tuple[bool, ...] = ()
    mixed: bool = True


@cache
def scene(on: str, time: float) -> Operator:
    """The line of the issue, a plane of 49 sensors, or two communities of which every node is read."""
    if on == "line":
        return heat_line(sources=100, sensors=50, diffusion_time=time)
    if on == "plane":
        places = even_places(49, np.zeros(2), np.ones(2))
        return heat_plane(sources=Grid(5), sensors=places, diffusion_time=0.01)
    graph, _ = block_graph(
        [250, 250], inside=0.05, across=0.001, rng=generator("estimators", "graph")
    )
    return graph_diffusion(graph, 0.5)


@cache
def noise(on: str, time: float, epsilon: float, method: str) -> float:
    """The deviation of the noise: adjacent cells swapped on the line, else mass moved by a small distance."""
    operator = scene(on, time)
    near = {"plane": "1/50", "graph": "1/8"}
    relation = SwappedCells(1) if on == "line" else MovedMass(near[on], operator.space.metric)
    moved = sensitivity(operator, relation).l2
    return float(gaussian_sigma(epsilon, 0.1, sensitivity=moved, method=method))  # type: ignore[arg-type]


def draw(setting: Setting, trial: int) -> tuple[FloatArray, FloatArray]:
    """True sources and standard noise."""
    rng = generator("estimators", setting.name, trial)
    operator = scene(setting.on, setting.time)
    size = operator.space.size
    truth = np.zeros(size)
    cells = rng.choice(size, setting.sources, replace=False)
    truth[cells] = rng.uniform(*setting.masses, setting.sources)
    if setting.spread:
        wide = round(setting.spread * size)
        truth = np.convolve(truth, np.full(wide, 1 / wide), mode="same")
    return truth, rng.standard_normal(operator.shape[0])


def least(
    operator: Operator, y: FloatArray, sigma: float, max_mass: float, *, papers: bool = False
) -> Answer:
    """R; infeasible draws at the smallest feasible radius."""
    found = recover_min_radius(
        operator, y, sigma=sigma, radius="papers" if papers else None, max_mass=max_mass
    )
    support = found.support
    return Estimate(operator, operator.space.places(support), found.estimate[support])


def others(name: str, problem: RecoveryProblem) -> Answer:
    """An estimator that somebody has registered; none where it cannot answer."""
    estimator = estimator_named(name)
    if estimator.unsuitable(problem.operator, problem.noise):
        return None
    return estimator.estimate(problem).estimate


def mean_answer(beliefs: SourcePosterior) -> Estimate:
    """The mean of the posterior, the other obvious rule."""
    cells = np.flatnonzero(beliefs.shares)
    return Estimate(beliefs.operator, beliefs.operator.space.places(cells), beliefs.shares[cells])


def run_trial(setting: Setting, trial: int) -> Trial:
    """All estimators on one draw."""
    operator = scene(setting.on, setting.time)
    sigma = noise(setting.on, setting.time, setting.epsilon, "analytic")
    truth, standard = draw(setting, trial)
    clean = operator.readings(truth)
    y = clean + sigma * standard
    done = Trial()

    def score(name: str, make: Callable[[], Answer]) -> Answer:
        answer = make()
        if answer is None or not answer.masses.sum() > 0:
            every = np.arange(truth.size)
            answer = Estimate(operator, operator.space.places(every), np.full(truth.size, 1.0))
        done.errors[name] = emd_of(answer, truth)
        return answer

    loud = noise(setting.on, setting.time, setting.epsilon, "papers")
    score(
        "papers' noise, R",
        lambda: least(operator, clean + loud * standard, loud, setting.max_mass, papers=True),
    )
    score("R, papers' radius", lambda: least(operator, y, sigma, setting.max_mass, papers=True))
    score("R", lambda: least(operator, y, sigma, setting.max_mass))
    if setting.on != "graph":
        score(
            "off-grid",
            lambda: off_grid(operator, y, sigma=sigma, max_mass=setting.max_mass).estimate,
        )
        unknown = partial(mixture, operator, y, sigma=sigma, max_mass=setting.max_mass)
        score("mixture", lambda: unknown().estimate)
        score("mixture, count known", lambda: unknown(count=setting.sources).estimate)
    beliefs: list[SourcePosterior] = []
    kinds: tuple[tuple[str, Literal["learned", "known"]], ...] = (
        ("bayes-median", "learned"),
        ("bayes-median, masses known", "known"),
    )
    for name, masses in kinds:

        def bayes(masses: Literal["learned", "known"] = masses) -> Estimate:
            rng = generator("beliefs", setting.name, trial, masses)
            beliefs.append(
                posterior(
                    operator, y, sigma=sigma, max_mass=setting.max_mass, rng=rng, masses=masses
                )
            )
            return bayes_median(beliefs[-1])

        score(name, bayes)
    score("posterior mean", lambda: mean_answer(beliefs[0]))
    for name in estimator_names():
        if name not in {"least", *done.errors} and not (
            setting.on == "graph" and name in HEAT_ONLY
        ):
            problem = RecoveryProblem(
                operator,
                y,
                sigma,
                setting.max_mass,
                recover_min_radius(operator, y, sigma=sigma, max_mass=setting.max_mass),
                generator(name, setting.name, trial),
            )
            score(name, partial(others, name, problem))
    cells = np.flatnonzero(truth)
    held = tuple(
        bool(
            operator.space.distances_between(
                band.place[np.newaxis], operator.space.places(cells)
            ).min()
            <= band.radius
        )
        for band in bands(beliefs[0])
    )
    return Trial(done.errors, held, beliefs[0].mixing.mixed)


@dataclass(frozen=True, slots=True)
class Row:
    """What came out of a setting."""

    setting: Setting
    trials: tuple[Trial, ...]

    def errors(self, name: str) -> FloatArray:
        """One error for each trial."""
        return np.array([trial.errors[name] for trial in self.trials])

    @property
    def names(self) -> list[str]:
        """The estimators that ran."""
        return list(self.trials[0].errors)

    def ratio(self, name: str) -> tuple[float, float]:
        """Mean error over that of R, and the half width of its 95 % interval."""
        ours, theirs = self.errors(name), self.errors("R")
        ratio = ours.mean() / theirs.mean()
        error = np.std(ours - ratio * theirs, ddof=1) / (theirs.mean() * math.sqrt(ours.size))
        return float(ratio), float(1.96 * error)

    def misses(self) -> list[str]:
        """What was asked and not met."""
        found = []
        asked = self.setting
        ratio, half = self.ratio("bayes-median")
        if asked.most_ratio is not None and ratio + half > asked.most_ratio:
            found.append(f"{asked.name}: ratio up to {ratio + half:.3f}, asked {asked.most_ratio}")
        if asked.most_error is not None and self.errors("bayes-median").mean() > asked.most_error:
            mean = self.errors("bayes-median").mean()
            found.append(f"{asked.name}: error {mean:.4f}, asked {asked.most_error}")
        return found


def table(rows: Sequence[Row]) -> str:
    """Mean errors, and in brackets ratios to R with their intervals; settings are rows."""
    names = list(dict.fromkeys(name for row in rows for name in row.names))
    lines = ["| setting | draws | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for row in rows:
        cells = []
        for name in names:
            if name not in row.names:
                cells.append("-")
                continue
            mean = row.errors(name).mean()
            ratio, half = row.ratio(name)
            told = f"{mean:.4f}" if name == "R" else f"{mean:.4f} ({ratio:.2f} ± {half:.2f})"
            worse = name != "R" and ratio - half > 1
            cells.append(f"**{told}**" if worse else told)
        lines.append(f"| {row.setting.name} | {len(row.trials)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def calibration(rows: Sequence[Row]) -> str:
    """How many of the 90 % bands held, and how many draws mixed."""
    lines = ["| setting | bands | that held | draws mixed |", "|---|---|---|---|"]
    for row in rows:
        held = [one for trial in row.trials for one in trial.held]
        share = f"{np.mean(held):.1%}" if held else "-"
        mixed = np.mean([trial.mixed for trial in row.trials])
        lines.append(f"| {row.setting.name} | {len(held)} | {share} | {mixed:.1%} |")
    return "\n".join(lines)


PAGE = """# Estimators, measured

`python -m experiments.sensors.estimators` prints this page; it takes about {minutes:.0f} minutes. Every
number is a mean earth mover's distance between the answer and the truth (both scaled to mass 1), over draws
of sources and noise on which all estimators see the same readings. In brackets: the ratio to R with its 95
% interval. **Bold is worse than R.** Draws for which R is infeasible are solved at the smallest feasible
radius; answers without any mass are scored as mass spread evenly.

Line: 100 cells, 50 sensors, T 0.05, two adjacent cells swapped, delta 0.1, epsilon 4 unless said. Plane: 32
x 32 cells, 49 sensors, T 0.01, mass moved by 1/50. Graph: two communities, every node read, rate 0.5, mass
moved by 1/8 of an edge.

{table}

*papers' noise, R* is the papers' method as printed; all others have the exact noise of the same epsilon and
delta. *bayes-median* is what `sfumato sense recover` answers with; *masses known* believes that every
source has mass `upper`, and shows what that is worth where it is true and what it costs where it is not.
*count known* is told the true number of sources. The methods that the papers name as rivals are
[measured apart](rivals.md).

## Bands and mixing

A band is a statement "a source within r of here with 90 %". They are calibrated on average over what is
believed, not for every number of sources and every mass: four sources of unequal masses hold less often, one
source more. They hold much less often where beliefs are wrong: masses far below `upper`, or an `upper` that
no source reaches or that one exceeds. In blocks some source is near almost everywhere, so that row says
little. How long a recovery takes is [measured apart](benchmarks.md).

Four sources of unequal masses hold least often: where known masses are wrongly believed in, 64 % of bands
held. Bands ask for one standard error of the draws' shares more than 90 %: on 400 draws that are not in the
tables, which `python -m experiments.sensors.doubts --draws 400` draws too, 87.6 ± 0.9 % held (of the same ones
88.2 % before the band around its sources was told of those as small; centers are nearer to a source since).
Before that, 89.3 % did with a fifth of the chance for known masses beforehand, `bands(..., known=0.2)`; but on
100 draws of equal masses radii are then 0.062 and not 0.054 (97.5 % held, 96.2 % with a half), so a half it
stays. Errors are the same.

{calibration}
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run, print, write, and fail where the issue's numbers are missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--trials", type=int, default=400, help="at most so many draws of each setting"
    )
    parser.add_argument(
        "--only", nargs="*", default=[], help="settings whose names hold one of these"
    )
    parser.add_argument("--out", type=Path, help="write the page here")
    given = parser.parse_args(argv)
    begin = time.monotonic()
    rows = []
    with ProcessPoolExecutor(2) as pool:
        for setting in SETTINGS:
            if given.only and not any(word in setting.name for word in given.only):
                continue
            count = min(given.trials, setting.trials)
            trials = tuple(pool.map(partial(run_trial, setting), range(count), chunksize=5))
            rows.append(Row(setting, trials))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    minutes = (time.monotonic() - begin) / 60
    page = PAGE.format(table=table(rows), calibration=calibration(rows), minutes=minutes)
    if given.out:
        given.out.write_text(page, encoding="utf-8")
    print(page)
    misses = [miss for row in rows for miss in row.misses()]
    for miss in misses:
        print(f"MISSED: {miss}")
    if misses:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
