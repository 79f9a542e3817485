"""The field as it is, sources that walk, and whispers: docs/reference/scenes.md.

python -m experiments.sensors.scenes [--quick] [--out docs/reference/scenes.md]

Draws come from SHA-256 of their names and were used for nothing else. Line: that of estimators.py.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from experiments.sensors.estimators import least, noise, scene
from experiments.sensors.protocol import generator

from sfumato.privacy import RandomisedResponse
from sfumato.sensing import emd_of, heat_line, misfit
from sfumato.sensing.diagnostics import faulty_sensors, fit_field
from sfumato.sensing.planning import block_graph
from sfumato.sensing.recovery import Estimate, community_of
from sfumato.sensing.tracking import track
from sfumato.sensing.whisper import Spread, whisper_cascade, whisper_posterior, whisper_spread

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

OFFSET, STATED = 0.2, 0.05
TIMES = (0.0125, 0.025, 0.05, 0.1, 0.2)


def rows(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(
        ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        + ["| " + " | ".join(line) + " |" for line in lines]
    )


def share(hits: Sequence[bool]) -> str:
    """A share with the counts behind it."""
    return f"{np.mean(hits):.0%} of {len(hits)}" if len(hits) else "-"


def placed(size: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Unit sources in random cells."""
    truth = np.zeros(size)
    truth[rng.choice(size, count, replace=False)] = 1.0
    return truth


def field_table(draws: int) -> str:
    """An offset of 0.2, one dead sensor, another T than stated: R before, after, and all known."""
    sigma = noise("line", STATED, 4.0, "analytic")
    stated = heat_line(sources=100, sensors=50, diffusion_time=STATED)
    lines = []
    for true_time in (0.025, 0.05, 0.1):
        operator = heat_line(sources=100, sensors=50, diffusion_time=true_time)
        for count in (1, 2, 4):
            before, after, known, inside, found, false, level = [], [], [], [], [], [], []
            for trial in range(draws):
                rng = generator("scenes", "field", true_time, count, trial)
                truth = placed(100, count, rng)
                y = operator.readings(truth) + sigma * rng.standard_normal(50)
                known.append(error(least(operator, y, sigma, 1.0), truth))
                bad = int(rng.integers(50))
                y = y + OFFSET
                y[bad] = sigma * rng.standard_normal()
                before.append(error(least(stated, y, sigma, 1.0), truth))
                fitted = fit_field(stated, y, sigma=sigma, offset=OFFSET, times=TIMES)
                after.append(error(least(fitted.operator, fitted.readings, sigma, 1.0), truth))
                low, high = fitted.interval or (math.nan, math.nan)
                inside.append(low <= true_time <= high)
                level.append(abs(fitted.offset - OFFSET) <= 2 * fitted.offset_error)
                names = {suspect.sensor for suspect in fitted.faulty_sensors}
                found.append(str(bad) in names)
                false.append(bool(names - {str(bad)}))
            lines.append(
                [
                    f"{true_time:g}",
                    str(count),
                    *(f"{np.mean(part):.4f}" for part in (before, after, known)),
                    share(inside),
                    share(level),
                    share(found),
                    share(false),
                ]
            )
    header = ["true T", "sources", "R as stated", "R, fitted", "R, all known", "T in interval",
              "offset within two errors", "dead found", "a sound sensor suspected"]  # fmt: skip
    return rows(header, lines)


def error(answer: Estimate | None, truth: FloatArray) -> float:
    """The distance to the truth; of no mass, that of mass spread evenly."""
    line = scene("line", STATED)
    if answer is None or not answer.masses.sum() > 0:
        answer = Estimate(line, line.space.places(np.arange(100)), np.ones(100))
    return emd_of(answer, truth)


def misfit_table(draws: int) -> str:
    """How often the misfit test warns: where all is well, and where something is not."""
    sigma = noise("line", STATED, 4.0, "analytic")
    stated = heat_line(sources=100, sensors=50, diffusion_time=STATED)

    def readings(kind: str, truth: FloatArray, rng: np.random.Generator) -> FloatArray:
        factor = {"T is a quarter": 0.25, "T is four times": 4.0}.get(kind, 1.0)
        operator = heat_line(sources=100, sensors=50, diffusion_time=STATED * factor)
        noise_factor = {"noise is half": 0.5, "noise is 1.5 times": 1.5}.get(kind, 1.0)
        y = operator.readings(truth) + noise_factor * sigma * rng.standard_normal(50)
        if kind == "a dead sensor":
            y[rng.integers(50)] = sigma * rng.standard_normal()
        return y + OFFSET if kind == "an offset of 0.2" else y

    kinds = (
        "all is well", "T is a quarter", "T is four times", "a dead sensor", "an offset of 0.2",
        "noise is half", "noise is 1.5 times",
    )  # fmt: skip
    lines = []
    for kind in kinds:
        told = []
        for count in (1, 4):
            warned = []
            for trial in range(draws):
                rng = generator("scenes", "misfit", kind, count, trial)
                found = misfit(stated, readings(kind, placed(100, count, rng), rng), sigma=sigma)
                warned.append(found.p_value < 1e-3)
            told.append(share(warned))
        lines.append([kind, *told])
    return rows(["what is so", "warned, 1 source", "warned, 4 sources"], lines)


def sensors_table(draws: int) -> str:
    """One bad sensor while somebody walks: whether 24 rounds, or the last alone, find it, and by how much."""
    sigma = noise("line", STATED, 1.0, "analytic")
    line = heat_line(sources=100, sensors=50, diffusion_time=STATED)
    lines = []
    for kind in ("none", "dead", "off by one sigma", "drifts by 0.15 sigma a round"):
        found, last, told, false = [], [], [], []
        for trial in range(draws):
            rng = generator("scenes", "sensors", kind, trial)
            _, truths = walks(np.ones(1), rng)
            clean = np.array([line.readings(truth) for truth in truths])
            bad = int(rng.integers(50))
            match kind:
                case "dead":
                    clean[:, bad] = 0.0
                case "off by one sigma":
                    clean[:, bad] += sigma
                case "drifts by 0.15 sigma a round":
                    clean[:, bad] += 0.15 * sigma * np.arange(24)
                case _:
                    pass
            y = clean + sigma * rng.standard_normal((24, 50))
            named = {one.sensor: one for one in faulty_sensors(line, y, sigma=sigma)}
            false.append(bool(named.keys() - ({str(bad)} if kind != "none" else set())))
            found.append(str(bad) in named)
            last.append(
                str(bad) in {one.sensor for one in faulty_sensors(line, y[-1], sigma=sigma)}
            )
            one = named.get(str(bad))
            if one is not None and one.drift is not None and one.drift_error is not None:
                if kind == "off by one sigma":
                    told.append(abs(one.off - sigma) <= 2 * one.off_error)
                if kind == "drifts by 0.15 sigma a round":
                    told.append(abs(one.drift - 0.15 * sigma) <= 2 * one.drift_error)
        sick = kind != "none"
        lines.append(
            [
                kind,
                share(found) if sick else "-",
                share(last) if sick else "-",
                share(told),
                share(false),
            ]
        )
    header = ["bad sensor", "found in 24 rounds", "found in the last alone", "by how much, within two errors",
              "a sound sensor suspected"]  # fmt: skip
    return rows(header, lines)


def walks(masses: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Cells of sources that walk 0.02 of the line a round, 24 rounds by sources; and all mass in cells."""
    steps = np.vstack(
        [rng.uniform(0, 1, masses.size), 0.02 * rng.standard_normal((23, masses.size))]
    )
    paths = np.abs(np.cumsum(steps, axis=0))
    paths = np.clip(np.where(paths > 1, 2 - paths, paths), 0.01, 1)
    cells = np.round(paths * 100).astype(int) - 1
    truths = np.zeros((24, 100))
    for at in range(24):
        np.add.at(truths[at], cells[at], masses)
    return cells, truths


def count_table(draws: int) -> str:
    """Two sources tracked where there are one or two: how often one fewer is said to be likelier."""
    line = heat_line(sources=100, sensors=50, diffusion_time=STATED)
    lines = []
    for count, epsilon in ((1, 1.0), (1, 4.0), (2, 1.0), (2, 4.0)):
        sigma = noise("line", STATED, epsilon, "analytic")
        told = []
        for trial in range(draws):
            rng = generator("scenes", "count", epsilon, count, trial)
            _, truths = walks(rng.uniform(0.3, 1, count), rng)
            y = np.array([line.readings(truth) for truth in truths]) + sigma * rng.standard_normal(
                (24, 50)
            )
            told.append((track(line, y, sigma=sigma, count=2, rng=rng).fewer or 0.0) > 1)
        lines.append([str(count), f"{epsilon:g}", share(told)])
    return rows(["sources", "epsilon a round", "one fewer is likelier"], lines)


def walk_table(draws: int) -> str:
    """Sources that walk 0.02 a round for 24 rounds: the track, R of each round, R of the average."""
    line = heat_line(sources=100, sensors=50, diffusion_time=STATED)
    lines = []
    for epsilon, count, kind in (
        (1.0, 1, "1"),
        (4.0, 1, "1"),
        (1.0, 1, "0.3 to 1"),
        (1.0, 2, "1"),
        (4.0, 2, "0.3 to 1"),
    ):
        sigma = noise("line", STATED, epsilon, "analytic")
        tracked, alone, averaged, covered, mixed = [], [], [], [], []
        for trial in range(draws if count == 1 else max(4, draws // 5)):
            rng = generator("scenes", "walk", epsilon, count, kind, trial)
            masses = np.ones(count) if kind == "1" else rng.uniform(0.3, 1, count)
            cells, truths = walks(masses, rng)
            y = np.array([line.readings(truth) for truth in truths]) + sigma * rng.standard_normal(
                (24, 50)
            )
            found = track(line, y, sigma=sigma, count=count, rng=rng)
            mixed.append(found.mixed)
            tracked.append(np.mean([emd_of(found.estimate(at), truths[at]) for at in range(24)]))
            if count == 1:
                away = np.abs(
                    line.space.positions[found.cells[:, 0]] - line.space.positions[cells[:, 0]]
                )
                covered += (away <= found.radii[:, 0] + 1e-12).tolist()
            alone.append(
                np.mean(
                    [error(least(line, y[at], sigma, 1.0), truths[at]) for at in range(0, 24, 4)]
                )
            )
            middle = least(line, y.mean(axis=0), sigma / math.sqrt(24), 1.0)
            averaged.append(np.mean([error(middle, truths[at]) for at in range(24)]))
        lines.append(
            [
                f"{epsilon:g}",
                str(count),
                kind,
                str(len(tracked)),
                *(f"{np.mean(part):.4f}" for part in (tracked, alone, averaged)),
                share(covered) if covered else "-",
                share(mixed),
            ]
        )
    header = ["epsilon a round", "sources", "mass", "walks", "track", "R of each round", "R of the average",
              "in the 90 % radius", "mixed"]  # fmt: skip
    return rows(header, lines)


def whisper_table(draws: int) -> str:
    """Two communities of 250: whether the right one is named, and the set of nodes holds the start."""
    graph, labels = block_graph(
        [250, 250], inside=0.05, across=0.001, rng=generator("scenes", "whisper graph")
    )
    lines = []
    for kind in ("as modelled", "cascade, few hear", "cascade, many hear"):
        for epsilon in (1.0, 2.0, math.inf):
            right, sure, held, sizes, heard = [], [], [], [], []
            for trial in range(draws):
                rng = generator("scenes", "whisper", kind, epsilon, trial)
                start = int(rng.integers(500))
                if kind == "as modelled":
                    knows = whisper_spread(graph, start, spread=Spread(0.5, 100.0), rng=rng)
                else:
                    chance = 0.07 if kind == "cascade, few hear" else 0.1
                    knows = whisper_cascade(graph, start, chance=chance, rng=rng)
                lie = 0.0 if math.isinf(epsilon) else float(RandomisedResponse(int(epsilon)).law[1])
                answers = np.where(rng.random(500) < lie, 1 - knows, knows)
                found = whisper_posterior(graph, answers, epsilon=epsilon)
                community = community_of(found.nodes, labels)
                right.append(bool(community.label == labels[start]))
                sure.append(float(community.shares.max()))
                nodes = found.smallest(0.9)
                held.append(bool(start in nodes))
                sizes.append(len(nodes))
                heard.append(int(knows.sum()))
            told = "none" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
            lines.append(
                [kind, f"{np.mean(heard):.0f}", told, share(right), f"{np.mean(sure):.0%}", share(held),
                 f"{np.median(sizes):.0f}"]
            )  # fmt: skip
    header = ["spread", "heard, of 500", "noise", "community right", "as it said", "90 % set holds the start",
              "nodes in it"]  # fmt: skip
    return rows(header, lines)


PAGE = """# The field, walks and whispers, measured

`python -m experiments.sensors.scenes` prints this page in about {minutes:.0f} minutes. Its draws were
used for nothing else.

## A field that is not as stated

The line of [the estimators](estimators.md) at epsilon 4, sources of mass 1; T is stated as 0.05. An ambient
offset of 0.2, one dead sensor, and the true T of the row. `fit_field` is told that the offset is about 0.2
and that T is between 0.0125 and 0.2. *All known*: R with the true T, no offset, and all sensors alive. The
standard error of the offset takes the sources' places and T for known, so that it is too small.

{field}

## When the misfit test warns

At a p-value below 0.001. What other sources explain it cannot see: that is why T four times as large, and an
offset, pass unseen.

{misfit}

## Sensors that are dead, off or drift

Epsilon 1 a round, 24 rounds in which somebody of mass 1 walks; `faulty_sensors` looks at all rounds at once,
at a level of 0.01 for all sensors and tests together. A dead sensor is found where others say that it
should have read something; by how much one is off is asked of those that were found, so it is a little
too much.

{sensors}

## Sources that walk

24 rounds, 0.02 of the line a round. The track is told how many sources there are, not their speed or mass.
Two whose chains disagree are tracked again, longer: on 40 walks that are not in this table (`python -m
experiments.sensors.doubts`) all then agreed, and 94 % of the 90 % radii held.

{walk}

Told that there are two, masses from 0.3 to 1, the track says how many times likelier the readings are with
one source fewer:

{count}

## Whispers

Each of 500 nodes says yes or no by randomised response. The model averages over 15 rates and strengths, and
takes nodes for independent. Cascades run along edges: there the set of nodes is too sure
of itself; told how they run, it is not ([measured](whisper-starts.md)).

{whisper}
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few draws of each")
    parser.add_argument("--out", type=Path, help="write the page here")
    given = parser.parse_args(argv)
    begin = time.monotonic()
    draws = 2 if given.quick else 100
    parts = {
        "field": field_table(draws if given.quick else 40),
        "misfit": misfit_table(draws),
        "sensors": sensors_table(draws),
        "walk": walk_table(draws if given.quick else 40),
        "count": count_table(draws if given.quick else 20),
        "whisper": whisper_table(draws),
    }
    page = PAGE.format(minutes=max(1, round((time.monotonic() - begin) / 60)), **parts)
    if given.out:
        given.out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
