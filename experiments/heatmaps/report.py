"""Gather the summaries of all runs into docs/explain/heatmap-experiments.md: tables only, no pictures.

python experiments/heatmaps/report.py [--out DIR], after figure1.py, figure2.py and sweeps.py with
--out DIR/real, and with --out DIR/city --data none.
"""

from __future__ import annotations

import argparse
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explain" / "heatmap-experiments.md"
SOURCES = {
    "real": "Real check-ins",
    "city": "Made-up cities",
}
MISSING = "`{}.py` has not been run in full on these; its quick form runs in `make test`.\n"
HEAD = """# The heatmap experiments again

Figures 1 and 2 and the sweeps of *Differentially Private Heatmaps* [ghazi23, sec. 4], run with sfumato.
This page is made by

```
for script in figure1 figure2 sweeps; do
  python experiments/heatmaps/$script.py --out demo/heatmaps/real
  python experiments/heatmaps/$script.py --out demo/heatmaps/city --data none
done
python experiments/heatmaps/report.py --out demo/heatmaps
```

`pyramid` is the paper's algorithm with its parameters (width 20, decay 1/√2), `laplace` its baseline,
`top t%` the baseline with a threshold; the others are rivals, `gaussian` at δ = 10⁻⁶. All are user-level:
one person's whole mass is 1. Filter 0.02 sides (the paper does not state its own); EMD in sides of the map,
l1, on maps pooled to 64 x 64; ± is 1.96 standard errors. Releases are rehearsals.

The paper's files are not to be had. Real check-ins are, in its box and on its 300 x 300 grid, the 30 cells
with most check-ins and at least 200 people, over Gowalla (a 30 % sample of visits to popular places, all
months) and Brightkite (600 people, all months; two of its cells have enough of them). Made-up cities are ten
each of the three families of `sfumato.heatmap.benchmark.synthetic_city`, 1,000 people each.
"""


def main(argv: list[str] | None = None) -> None:
    """Write the page from DIR/real/*.md and DIR/city/*.md."""
    parser = argparse.ArgumentParser(description="Gather the summaries of all runs")
    parser.add_argument(
        "--out", type=Path, default=Path("demo/heatmaps"), help="folder of the runs"
    )
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    given = parser.parse_args(argv)
    parts = [HEAD]
    for source, title in SOURCES.items():
        parts.append(f"## {title}\n")
        for name in ("figure1", "figure2", "sweeps"):
            summary = given.out / source / f"{name}.md"
            # A page that hides what was left out would read as if it had been run.
            parts.append(
                summary.read_text(encoding="utf-8") if summary.exists() else MISSING.format(name)
            )
    given.page.write_text("\n".join(parts), encoding="utf-8")
    print(given.page)


if __name__ == "__main__":
    main()
