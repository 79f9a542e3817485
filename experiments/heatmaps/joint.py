"""Whether joint maps are as good as maps of one hand with the same law, and what they cost beside central ones.

python -m experiments.heatmaps.joint [--quick] [--trials N] [--out DIR]

Samples of 2,000 people of made-up cities are released at epsilon 1: with shares of three parties of
whom one is curious, drawn one by one as parties draw them; with noise of the law of their sum, drawn
at once by another sampler; and some with shares for outsiders only, and with central noise. The
first two must have the same EMD within MARGIN: their 90 % interval of the ratio of means must lie
within it (two one-sided tests of 5 % each). Shares come from the system's randomness, so that numbers
differ a little from run to run. Writes joint.csv and joint.md; ends with 1 if the two differ.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from experiments.heatmaps.protocol import chance, generator
from scipy import stats

from sfumato.heatmap import HeatmapRelease, release_sums
from sfumato.heatmap.analysis import emd_share, similarity, smooth
from sfumato.heatmap.benchmark import known_noise, sample_sums, synthetic_places
from sfumato.heatmap.methods import JointMethod, MapMethod, method_named
from sfumato.privacy import REHEARSAL, Joint, Ledger, Noise, PureDP
from sfumato.privacy.accounting import InShares
from sfumato.privacy.noise import SharedNoise, SimulatedShares
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid

UNIT = Area(Grid(6), (0.0, 0.0, 1.0, 1.0), "plane")
TRUST, OUTSIDERS = Joint(3, 1), Joint(3, 0)
USERS, EPSILON, SIGMA = 2_000, PureDP(1), 0.02
MARGIN = 0.03
LOT = 20
KINDS = ("joint", "same law", "outsiders", "central")
METHODS = ("zoom", "pyramid")
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """One map: how far it is off, in sides, and the mass it shares with the truth."""

    method: str
    kind: str
    place: str
    trial: int
    emd: float
    similarity: float


class AtOnce(SharedNoise):
    """Noise of the law of the sum by NumPy's negative binomial draws, for comparison."""

    distance: Fraction | None = None
    known = True

    def __init__(self, trust: InShares, rng: np.random.Generator) -> None:
        self._trust, self._rng = trust, rng

    @property
    def trust(self) -> InShares:
        """As it was made."""
        return self._trust

    def noisy_sum(
        self, values: Ints, scales: Sequence[Fraction], which: Ints, trust: InShares
    ) -> Ints:
        """The difference of two draws of shape parties / (parties - curious)."""
        shape = float(trust.sum_shape)
        stop = -np.expm1(-1 / np.array([float(scale) for scale in scales]))[which]
        draw = self._rng.negative_binomial
        return np.asarray(values + draw(shape, stop) - draw(shape, stop), dtype=np.int64)


def simulated(method: MapMethod[Any], sums: CellSums, noise: Noise) -> tuple[HeatmapRelease, ...]:
    """Releases of all parties' sums in one process, which protect nobody: a map of each group."""
    trust = getattr(noise, "trust", None)
    return release_sums(
        guard_sums(sums, source=REHEARSAL),
        UNIT,
        ledger=Ledger.rehearsal(EPSILON, model="central" if trust is None else trust),
        epsilon=EPSILON.epsilon,
        method=method if trust is None else JointMethod(method, trust),
        groups=[str(group) for group in range(sums.groups)],
        noise=noise,
    )


def together(samples: Sequence[CellSums]) -> CellSums:
    """Samples as groups of one release: noise is drawn for all of them at once, each for itself."""
    codes = [one.codes + at * UNIT.grid.size for at, one in enumerate(samples)]
    units = [one.units for one in samples]
    return CellSums(UNIT.grid, np.concatenate(codes), np.concatenate(units), len(samples), UNIT)


def run(cities: int, trials: int, people: int) -> list[Row]:
    """Every map of every sample; of the kinds that are shown alone, those of the first LOT."""
    rows = []
    for place in synthetic_places(cities, people=people, chance=chance):
        for first in range(0, trials, LOT):
            numbers = range(first, min(first + LOT, trials))
            samples = [
                sample_sums(
                    place,
                    min(USERS, people),
                    UNIT.grid,
                    rng=generator("joint", place.name, number),
                )
                for number in numbers
            ]
            for name in METHODS:
                words = (name, place.name, first)
                noises: list[Noise] = [SimulatedShares(TRUST), AtOnce(TRUST, generator(*words))]
                if not first:
                    noises += [SimulatedShares(OUTSIDERS), known_noise(*words)]
                for kind, noise in zip(KINDS, noises, strict=False):
                    maps = simulated(method_named(name), together(samples), noise)
                    for number, sums, made in zip(numbers, samples, maps, strict=True):
                        rows.append(judged(made, sums, (name, kind, place.name, number)))
    return rows


def judged(made: HeatmapRelease, sums: CellSums, which: tuple[str, str, str, int]) -> Row:
    """How far a map is off."""
    truth = np.zeros(UNIT.grid.size)
    truth[sums.codes] = sums.units / sums.units.sum()
    seen, shown = smooth(UNIT.grid.image(truth), SIGMA), made.image(sigma=SIGMA)
    return Row(*which, emd_share(shown, seen, UNIT, level=5), similarity(shown, seen))


def interval(rows: Sequence[Row], method: str) -> tuple[float, float, float]:
    """The ratio of the mean EMD of joint maps to those of the same law, with its 90 % interval.

    The interval is that of the mean of log ratios of pairs of maps of one sample.
    """
    of = {
        kind: np.array([row.emd for row in rows if row.method == method and row.kind == kind])
        for kind in KINDS[:2]
    }
    logs = np.log(of["joint"]) - np.log(of["same law"])
    wide = stats.t.ppf(0.95, logs.size - 1) * logs.std(ddof=1) / np.sqrt(logs.size)
    middle, low, high = (float(np.exp(logs.mean() + step)) for step in (0.0, -wide, wide))
    return middle, low, high


def alike(low: float, high: float) -> bool:
    """Whether an interval of a ratio lies within the margin."""
    return 1 - MARGIN < low <= high < 1 + MARGIN


def table(rows: Sequence[Row]) -> str:
    """Means of all kinds, and the verdicts."""
    lines = ["| method | noise | maps | EMD (sides) | similarity |", "|---|---|---|---|---|"]
    for method in METHODS:
        for kind in KINDS:
            some = [row for row in rows if row.method == method and row.kind == kind]
            emd, shared = (
                np.mean([getattr(row, name) for row in some]) for name in ("emd", "similarity")
            )
            lines.append(f"| {method} | {kind} | {len(some)} | {emd:.5f} | {shared:.4f} |")
    lines.append("")
    for method in METHODS:
        middle, low, high = interval(rows, method)
        verdict = "the same" if alike(low, high) else "not shown to be the same"
        lines.append(
            f"{method}: joint / same law {middle:.4f} (90 %: {low:.4f} to {high:.4f}), {verdict} within "
            f"{MARGIN:.0%}"
        )
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run, write, and print the table."""
    parser = argparse.ArgumentParser(description="Joint maps beside maps of one hand")
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
    parser.add_argument("--trials", type=int, default=100, help="samples of each of 10 cities")
    parser.add_argument("--out", type=Path, default=Path("demo/heatmaps"))
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    rows = run(1, 2, 300) if given.quick else run(10, given.trials, 5_000)
    with (given.out / "joint.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(map(asdict, rows))
    page = table(rows)
    (given.out / "joint.md").write_text(page, encoding="utf-8")
    print(page, end="")
    held = all(alike(*interval(rows, method)[1:]) for method in METHODS)
    return 0 if given.quick or held else 1


if __name__ == "__main__":
    sys.exit(main())
