"""The sweeps of [ghazi23, sec. 4.1] over users and resolution, and EMD against sqrt(k) / n of Theorem 1.1.

python experiments/heatmaps/sweeps.py [--quick] [--out DIR] [--data DIR]
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from experiments.heatmaps.claims import conclude, decide, plot, read_claims, table, write_rows
from experiments.heatmaps.protocol import Options, generator, options, places, run

from sfumato.heatmap.analysis import emd_share
from sfumato.heatmap.benchmark import known_noise, rehearse_sums, true_shares
from sfumato.heatmap.methods import PyramidMethod
from sfumato.privacy import UNITS
from sfumato.records import CellSums
from sfumato.spaces import Grid

EPSILON = 1.0  # the paper fixes one and does not say which
NUMBERS = (50, 100, 200, 300, 400, 500)
SIDES = (6, 7, 8)
METHODS = ["laplace", "top 0.01%", "top 0.1%", "pyramid", "privtree"]
# The largest EMD n epsilon / sqrt(k) may be, and by what factor it may vary over k and n.
LARGEST, FACTOR = 20.0, 3.0


def sparse_distance(k: int, n: int, trial: int) -> float:
    """The EMD of one release of n users on k random cells, before any filter, at Delta = 64."""
    grid = Grid(6)
    rng = generator("sparse", k, n, trial)
    codes = np.sort(rng.choice(grid.size, k, replace=False)).astype(np.int64)
    counts = rng.multinomial(n, np.full(k, 1 / k))
    sums = CellSums(grid, codes[counts > 0], UNITS * counts[counts > 0].astype(np.int64))
    tiles = rehearse_sums(
        PyramidMethod(4 * k), sums, EPSILON, noise=known_noise("sparse", k, n, trial)
    )
    return emd_share(true_shares(sums), tiles.normalized().image(grid.levels), grid)


def scaling(chosen: Options) -> tuple[str, bool]:
    """A table of EMD n epsilon / sqrt(k), and whether it stays within a constant."""
    sparsities, numbers, trials = (
        ((4, 16), (400, 6400), 2) if chosen.quick else ((4, 16, 64), (400, 1600, 6400), 6)
    )
    lines = ["| k | n | EMD | EMD n epsilon / sqrt(k) |", "|---|---|---|---|"]
    rows = []
    for k in sparsities:
        for n in numbers:
            distance = float(np.mean([sparse_distance(k, n, trial) for trial in range(trials)]))
            rows.append((k, n, distance, distance * n * EPSILON / math.sqrt(k)))
            lines.append(f"| {k} | {n} | {distance:.5f} | {rows[-1][3]:.2f} |")
    with (chosen.out / "scaling.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["k", "n", "emd", "ratio"])
        writer.writerows(rows)
    ratios = [row[3] for row in rows]
    kept = max(ratios) <= LARGEST and max(ratios) <= FACTOR * min(ratios)
    said = (
        f"The ratio lies between {min(ratios):.2f} and {max(ratios):.2f}: "
        f"{'within' if kept else '**outside**'} a factor {FACTOR:g} and at most {LARGEST:g}, while n grows "
        f"{max(numbers) // min(numbers)}-fold and k {max(sparsities) // min(sparsities)}-fold."
    )
    return "\n".join(lines) + "\n\n" + said, kept


def main(argv: list[str] | None = None) -> None:
    """Run, write users.csv, sides.csv, scaling.csv, two PNGs and sweeps.md, and assert the claims."""
    chosen = options("Sweeps over users, resolution and sparsity", argv)
    place = places(chosen, 1, least_users=max(NUMBERS) + 1)
    trials = 2 if chosen.quick else 10
    methods = ["laplace", "pyramid"] if chosen.quick else METHODS
    by_users = run(
        chosen, place, epsilons=(EPSILON,), trials=trials, methods=methods,
        users=(50, 500) if chosen.quick else NUMBERS,
    )  # fmt: skip
    by_side = run(
        chosen, place, epsilons=(EPSILON,), trials=trials, methods=methods,
        levels=(6, 8) if chosen.quick else SIDES,
    )  # fmt: skip
    for name, rows in (("users", by_users), ("sides", by_side)):
        write_rows(chosen.out / f"{name}.csv", rows)
    plot(chosen, "users", by_users, "users", log=lambda metric: metric in ("kl", "emd"))
    plot(chosen, "sides", by_side, "side", log=lambda metric: metric in ("kl", "emd"))
    ratios, kept = scaling(chosen)
    findings = [
        *(
            decide(c, by_users, "users")
            for c in read_claims("users", chosen.source, quick=chosen.quick)
        ),
        *(
            decide(c, by_side, "side")
            for c in read_claims("sides", chosen.source, quick=chosen.quick)
        ),
    ]
    about = f"{place[0].name} ({chosen.source}), epsilon {EPSILON:g}, {trials} trials."
    parts = [
        "### More users", f"{about} 256 x 256 cells.", table(by_users, "users"),
        "### Finer maps", f"{about} 200 users; filter and EMD in sides, whatever the cells.",
        table(by_side, "side"),
        "### EMD against sqrt(k) / n",
        "Users on k random cells, width 4 k, Delta = 64, no filter; mean over trials (thm. 1.1).", ratios,
        "### The paper's sentences",
    ]  # fmt: skip
    conclude(chosen, "sweeps", parts, findings)
    if not kept:
        raise SystemExit("EMD n epsilon / sqrt(k) is not constant as thm. 1.1 says")


if __name__ == "__main__":
    main()
