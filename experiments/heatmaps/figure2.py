"""Figure 2 of [ghazi23]: heatmaps side by side at epsilon 1 and 5.

python experiments/heatmaps/figure2.py [--quick] [--out DIR] [--data DIR]

With real check-ins the leftmost picture is exact: it stays in --out, and is never published.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.heatmaps.claims import conclude
from experiments.heatmaps.protocol import METHODS, USERS, generator, options, places

from sfumato.figures import draw_maps
from sfumato.heatmap.analysis import compare, smooth
from sfumato.heatmap.benchmark import (
    LEVELS,
    SIGMA,
    heatmap,
    known_noise,
    rehearse_sums,
    sample_sums,
    true_shares,
)
from sfumato.spaces import Grid

SHOWN = ("laplace", "top 0.01%", "pyramid", "privtree")


def main(argv: list[str] | None = None) -> None:
    """Draw figure2-epsilon-{1,5}.png, write figure2.csv and figure2.md; the pyramid must come closest."""
    chosen = options("Figure 2: pictures side by side", argv)
    place = places(chosen, 1)[0]
    grid = Grid(LEVELS)
    sums = sample_sums(place, USERS, grid, rng=generator("figure2", place.name))
    truth = smooth(true_shares(sums), SIGMA)
    lines = [
        "| epsilon | method | Similarity ↑ | Pearson ↑ | KL ↓ | EMD ↓ |",
        "|---|---|---|---|---|---|",
    ]
    rows = []
    for epsilon in (1.0, 5.0):
        panels = [("original", truth)]
        for name in SHOWN:
            noise = known_noise("figure2", name, epsilon)
            image = heatmap(rehearse_sums(METHODS[name], sums, epsilon, noise=noise), LEVELS)
            found = compare(truth, image, grid)
            panels.append((name, image))
            rows.append((epsilon, name, found.similarity, found.pearson, found.kl, found.emd))
            numbers = " | ".join(f"{number:.3f}" for number in rows[-1][2:])
            lines.append(f"| {epsilon:g} | {name} | {numbers} |")
        # A third of the peak, so that what lies around it can be seen; the data is public here.
        picture = draw_maps(
            panels,
            top=float(truth.max()) / 3,
            caption=f"epsilon {epsilon:g}, {USERS} users of {place.name}, sigma {SIGMA} sides",
            unit="share of the mass",
            stamp="rehearsal",
        )
        (chosen.out / f"figure2-epsilon-{epsilon:g}.png").write_bytes(picture)
    with (chosen.out / "figure2.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["epsilon", "method", "similarity", "pearson", "kl", "emd"])
        writer.writerows(rows)
    about = f"One sample of {USERS} users of {place.name} ({chosen.source}), as in the pictures."
    conclude(chosen, "figure2", ["### Pictures side by side", about, "\n".join(lines)], [])
    for epsilon in (1.0, 5.0):
        closest = min(
            (row for row in rows if row[0] == epsilon and row[1] != "privtree"),
            key=lambda row: row[5],
        )
        if closest[1] != "pyramid":
            raise SystemExit(
                f"at epsilon {epsilon:g} {closest[1]} is closer in EMD than the pyramid"
            )


if __name__ == "__main__":
    main()
