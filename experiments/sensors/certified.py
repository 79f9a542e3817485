"""Certified errors in every setting of the estimators' table: how often they hold, and how wide.

python -m experiments.sensors.certified [--trials 60] [--trials-beyond 25] [--out FILE]

A certificate on a line holds where the truth lies in its band at every cut and the answer is no farther from
the truth than its bound; in a plane or on a graph where the answer is no farther than its bound. The answer is
R, which is quick; on a line the band is the same for any. Asked is 90 % in every setting whose largest mass is
right, less what so many draws may differ by; a miss is exit code 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from experiments.sensors.estimators import SETTINGS, Setting, least, noise, scene
from experiments.sensors.protocol import generator
from scipy.stats import binom

from sfumato.sensing.recovery import ErrorCertificate, Estimate, LaplaceNoise, certify_error
from sfumato.transport import emd_apart

LEVEL = 0.9
SURE = 1e-3  # the chance that a level of 90 % looks as bad in one of the rows
BROKEN = "larger than it believes"
BETWEEN = ("between cells", "between cells, T 0.005")
BETWEEN_IN_PLANE = "plane, between cells"
LAPLACE = "Laplace noise"  # of the same deviation
HEAD = """# Certified errors, measured

`python -m experiments.sensors.certified --out docs/reference/certified.md` prints this page. Line: 100
cells, 50 sensors, T 0.05, two adjacent cells swapped, delta 0.1, epsilon 4 unless said, as in
[estimators](estimators.md), whose settings these are, and sources between cells. *Held* is the share of draws
in which the truth was in the band at every cut and R was no farther from it than its bound; *none* the share in
which the readings contradicted all sources, so that nothing was certified (they count as not held). Medians:
the *bound* of R, the *least* that any answer could be certified, and how far R was in truth. Mass spread evenly
is 1/2 from a source at an end, without any reading. What it means and why it holds:
[proof](../proofs/certified-error.md).

Plane: 32 x 32 cells, 49 sensors, T 0.01, mass moved by 1/50. Graph: two communities of 250 nodes, every node
read, rate 0.5, mass moved by 1/8 of an edge. There *held* is the share of draws in which R was no farther
from the truth than its bound, along a tree; a tree has no *least*. Distances on the plane are l1, at most 2;
on the graph edges. Rows of *Laplace noise* have it in place of Gaussian noise, of the same deviation.

| setting | draws | held | none | bound of R | least of any | R in truth |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One setting over all draws; medians are of those that were certified."""

    name: str
    draws: int
    held: int
    none: int
    bound: float
    least: float
    truth: float

    @property
    def fails(self) -> bool:
        """Whether so few held that 90 % is not to be believed."""
        return BROKEN not in self.name and bool(binom.cdf(self.held, self.draws, LEVEL) < SURE)


def places(setting: Setting, trial: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where sources stand, their masses, and what the sensors read of them without noise."""
    operator = scene(setting.on, setting.time)
    rng = generator("certified", setting.name, trial)
    masses = rng.uniform(*setting.masses, setting.sources)
    if not any(setting.name.startswith(one) for one in (BETWEEN[0], BETWEEN_IN_PLANE)):
        truth = np.zeros(operator.space.size)
        truth[rng.choice(truth.size, setting.sources, replace=False)] = masses
        if setting.spread:
            wide = round(setting.spread * truth.size)
            truth = np.convolve(truth, np.full(wide, 1 / wide), mode="same")
        cells = np.flatnonzero(truth)
        return operator.space.places(cells), truth[cells], operator.readings(truth)
    cells = rng.choice(operator.space.size, setting.sources, replace=False)
    axes = 1 if setting.on == "line" else 2
    side = 100 if setting.on == "line" else 32
    at = operator.space.places(cells) + rng.uniform(-0.5, 0.5, (setting.sources, axes)) / side
    apart = ((operator.sensors.positions[:, np.newaxis] - at) ** 2).sum(axis=2)
    width = operator.kernel_width or 0.0
    reads = np.exp(-apart / width**2 / 2) / (width * np.sqrt(2 * np.pi)) ** axes
    return at, masses, reads @ masses


def tried(setting: Setting, trials: int) -> Row:
    """All draws of a setting."""
    operator = scene(setting.on, setting.time)
    sigma = noise(setting.on, setting.time, setting.epsilon, "analytic")
    held, none, rows = 0, 0, []
    for trial in range(trials):
        at, masses, clean = places(setting, trial)
        standard = generator("certified noise", setting.name, trial).standard_normal(clean.size)
        if LAPLACE in setting.name:
            standard = generator("certified noise", setting.name, trial).laplace(
                scale=np.sqrt(0.5), size=clean.size
            )
        y = clean + sigma * standard
        answer = least(operator, y, sigma, setting.max_mass)
        if answer is None or not answer.masses.sum() > 0:
            every = np.arange(operator.space.size)
            answer = Estimate(operator, operator.space.places(every), np.ones(every.size))
        found = certify_error(
            operator,
            y,
            answer,
            sigma=sigma,
            max_mass=setting.max_mass,
            laplace=LaplaceNoise() if LAPLACE in setting.name else None,
        )
        if found is None:
            none += 1
            continue
        apart = operator.space.distances_between(answer.places, at)
        off = emd_apart(answer.masses, masses, apart, normalize=True).value
        inside, lowest = True, np.nan
        if isinstance(found, ErrorCertificate):
            lowest = found.least
            left = np.array([masses[at[:, 0] <= cut].sum() for cut in found.cuts]) / masses.sum()
            inside = bool(((found.low - 1e-9 <= left) & (left <= found.high + 1e-9)).all())
        held += inside and off <= found.bound + 1e-9
        rows.append((found.bound, lowest, off))
    bound, lowest, off = np.median(rows, axis=0) if rows else (np.nan,) * 3
    return Row(setting.name, trials, held, none, float(bound), float(lowest), float(off))


def settings() -> Iterator[Setting]:
    """Those of the table, and sources between cells."""
    yield from SETTINGS
    two = next(one for one in SETTINGS if one.name == "2 sources, mass 0.3 to 1")
    yield replace(two, name=f"{BETWEEN[0]}: 2 sources, mass 0.3 to 1")
    yield replace(two, name=f"{BETWEEN[1]}: 2 sources, mass 0.3 to 1", time=0.005)
    yield replace(two, name=f"{BETWEEN_IN_PLANE}: 2 sources, mass 0.3 to 1", on="plane")
    for name in (
        "1 source, mass 1",
        "2 sources, mass 0.3 to 1",
        "8 sources, mass 0.3 to 1",
        "plane, 3 sources, mass 0.3 to 1",
        "graph of 500 nodes, 3 sources, mass 0.3 to 1",
    ):
        same = next(one for one in SETTINGS if one.name == name)
        yield replace(same, name=f"{name}, {LAPLACE}")


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--trials-beyond", type=int, default=25, help="off the line")
    parser.add_argument("--only", default="", help="settings whose name has this in it")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    lines, failed = [], []
    for setting in settings():
        if asked.only not in setting.name:
            continue
        row = tried(setting, asked.trials if setting.on == "line" else asked.trials_beyond)
        line = (
            f"| {row.name} | {row.draws} | {row.held / row.draws:.1%} | {row.none / row.draws:.1%} | "
            f"{row.bound:.3f} | {'-' if np.isnan(row.least) else f'{row.least:.3f}'} | {row.truth:.4f} |"
        )
        print(line, flush=True)
        lines.append(line)
        failed += [row.name] if row.fails else []
    if asked.out:
        asked.out.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    for name in failed:
        print(f"not as asked: {name}", file=sys.stderr)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
