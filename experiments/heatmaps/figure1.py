"""Figure 1 of [ghazi23]: four metrics against epsilon, 30 places, 2 trials of 200 users each.

python experiments/heatmaps/figure1.py [--quick] [--out DIR] [--data DIR]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.heatmaps.claims import conclude, decide, plot, read_claims, table, write_rows
from experiments.heatmaps.protocol import (
    CELLS,
    EPSILONS,
    METHODS,
    TRIALS,
    USERS,
    options,
    places,
    run,
)

QUICK = ["laplace", "top 0.01%", "pyramid", "privtree"]


def main(argv: list[str] | None = None) -> None:
    """Run, write figure1.csv, figure1.png and figure1.md, and assert the claims."""
    chosen = options("Figure 1: four metrics against epsilon", argv)
    where = places(chosen, 4 if chosen.quick else CELLS)
    trials = 1 if chosen.quick else TRIALS
    rows = run(
        chosen,
        where,
        epsilons=(1.0, 5.0) if chosen.quick else EPSILONS,
        trials=trials,
        methods=QUICK if chosen.quick else list(METHODS),
    )
    write_rows(chosen.out / "figure1.csv", rows)
    plot(chosen, "figure1", rows, "epsilon", log=lambda metric: metric in ("kl", "emd"))
    claims = read_claims("figure1", chosen.source, quick=chosen.quick)
    about = (
        f"{len(where)} places ({chosen.source}), {trials} trials of {USERS} users each, 256 x 256 cells; "
        "means with 95 % intervals."
    )
    conclude(
        chosen,
        "figure1",
        ["### Four metrics against epsilon", about, table(rows, "epsilon")],
        [decide(claim, rows, "epsilon") for claim in claims],
    )


if __name__ == "__main__":
    main()
