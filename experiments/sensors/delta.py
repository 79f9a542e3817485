"""The sensitivity itself: Figure 4 of [gilbert17], Figure 2 and Table 2 of [gilbert18]."""

from __future__ import annotations

import math

from experiments.sensors.points import Part, Point, Table, exact_point, picture

from sfumato.privacy import MovedMass, SwappedCells
from sfumato.sensing import conditioning, graph_diffusion, heat_line, sensitivity
from sfumato.sensing.model.operators import GraphDiffusion
from sfumato.spaces import Graph

RAW = "Delta_2"
SUM = "sum of Lemma 18, squared"
ALPHA = 0.1
SMALL = (math.sqrt(2 * math.pi) / (16 * math.pi)) ** 0.5  # times T**-3/4, for small T
LARGE = (48 * math.pi) ** -0.5  # times T**-3/2, for large T


def run(*, quick: bool) -> Part:
    """Delta_2 against m, n and T, scaled as the papers scale it and as it grows; two graphs of Table 2."""
    found: list[Point] = []
    for m in (10, 100, 1000) if quick else (5, 10, 20, 50, 100, 200, 500, 1000, 2000):
        value = moved(500, m, 0.05)
        found.append(exact_point("4a", RAW, "m", m, value))
        found.append(exact_point("4a", "Delta_2 n / sqrt(m)", "m", m, value * 500 / math.sqrt(m)))
    for n in (50, 500) if quick else (20, 50, 100, 200, 500, 1000, 2000, 5000):
        value = moved(n, 500, 0.05)
        found.append(exact_point("4b", RAW, "n", n, value))
        found.append(exact_point("4b", "Delta_2 n / sqrt(m)", "n", n, value * n / math.sqrt(500)))
    few = (0.001, 0.01, 10.0, 100.0)
    full = (
        0.0005,
        0.001,
        0.002,
        0.005,
        0.01,
        0.02,
        0.05,
        0.1,
        0.2,
        0.5,
        1.0,
        2.0,
        5.0,
        10.0,
        50.0,
        100.0,
    )
    for time in few if quick else full:
        value = moved(1000, 500, time)
        unit = value * 1000 / math.sqrt(500)
        found.append(exact_point("4c", RAW, "T", time, value))
        found.append(exact_point("4c", "Delta_2 T^1.5 n / sqrt(m)", "T", time, unit * time**1.5))
        found.append(exact_point("4c", "Delta_2 T^0.75 n / sqrt(m)", "T", time, unit * time**0.75))
        found.append(
            exact_point("4c", "over the law of small T", "T", time, unit * time**0.75 / SMALL)
        )
        found.append(
            exact_point("4c", "over the law of large T", "T", time, unit * time**1.5 / LARGE)
        )
    steps = literal_step(100, 50, 0.05)
    needed = sensitivity(
        heat_line(sources=100, sensors=50, diffusion_time=0.05), MovedMass(ALPHA, "line")
    ).l2
    found.append(exact_point("prop5", "needed over printed", "n", 100, needed / steps))
    graphs, table2 = closed_forms((6,) if quick else (4, 8, 16, 32))
    shown = tuple(found) + graphs
    scaled = [
        p
        for p in found
        if p.series not in (RAW, "over the law of small T", "over the law of large T")
    ]
    captions = {"4a": "n = 500, T = 0.05", "4b": "m = 500, T = 0.05", "4c": "n = 1000, m = 500"}
    pictures = tuple(
        picture(
            scaled,
            figure,
            title=f"Figure {figure}: sensitivity, scaled",
            caption=f"{caption}. Computed, without chance: what is flat grows as its scaling says.",
            metric="value",
            y_label="scaled sensitivity",
        )
        for figure, caption in list(captions.items())[: 1 if quick else None]
    )
    about = (
        "Computed, without chance. Unless on the axis, m = 500 and t = 0.1 (T = 0.05); n = 500 in 4a, 1000 "
        f"in 4c. For neighbors of the full version, mass moved by alpha = {ALPHA} on [0, 1], the sensitivity "
        f"at n = 100, m = 50, T = 0.05 is {needed:.4f}; its Proposition 5 taken literally, alpha times the "
        f"largest step between adjacent cells, gives {steps:.4f}."
    )
    tables = (
        *((f"Figure {figure}", values(found, figure)) for figure in ("4a", "4b", "4c")),
        ("Table 2 of the full version: Delta_2 squared", table2),
    )
    return Part("delta", "Sensitivity: Figure 4", about, shown, tables, pictures)


def moved(n: int, m: int, time: float) -> float:
    """Delta_2 of the line: the largest change when two adjacent cells are swapped."""
    return sensitivity(heat_line(sources=n, sensors=m, diffusion_time=time), SwappedCells(1)).l2


def literal_step(n: int, m: int, time: float) -> float:
    """Proposition 5 of [gilbert18] as it is printed, on [0, 1]."""
    return ALPHA * moved(n, m, time)


def values(found: list[Point], figure: str) -> Table:
    """One row for each x, one column for each series."""
    here = [point for point in found if point.figure == figure]
    names = list(dict.fromkeys(point.series for point in here))
    at = {(point.series, point.x): point.middle for point in here}
    rows = [[here[0].axis, *names]]
    return rows + [
        [f"{x:g}", *(f"{at[name, x]:.4g}" for name in names)] for x in sorted({p.x for p in here})
    ]


def closed_forms(sizes: tuple[int, ...]) -> tuple[tuple[Point, ...], Table]:
    """Delta_2 squared of complete and star graphs at rate 0.5: printed, corrected, computed, bounded."""
    rate = 0.5
    rows = [["graph", "n", "printed", "corrected", "computed", "printed / computed", SUM]]
    found: list[Point] = []
    for name in ("complete", "star"):
        for n in sizes:
            edges = [
                (i, j) for i in range(n) for j in range(i + 1, n) if name == "complete" or i == 0
            ]
            network = graph_diffusion(Graph(edges, nodes=n), rate)
            computed = sensitivity(network, MovedMass(1, "graph")).l2 ** 2
            printed, corrected = forms(name, n, rate)
            found.append(
                exact_point(f"table2 {name}", "printed over computed", "n", n, printed / computed)
            )
            found.append(
                exact_point(
                    f"table2 {name}", "corrected over computed", "n", n, corrected / computed
                )
            )
            rows.append(
                [name, str(n), f"{printed:.4g}", f"{corrected:.4g}", f"{computed:.4g}",
                 f"{printed / computed:.4g}", f"{_sum_of_lemma_18(network):.4g}"]
            )  # fmt: skip
    return tuple(found), rows


def _sum_of_lemma_18(network: GraphDiffusion) -> float:
    """The square of the bound of [gilbert18, lem. 18], for the worst edge."""
    told = conditioning(network).connectivity
    return math.nan if told is None or told.lemma is None else told.lemma**2


def forms(name: str, n: int, rate: float) -> tuple[float, float]:
    """Table 2 of [gilbert18], and with a factor 2 in the exponent and n - 2 leaves where they belong."""
    if name == "complete":
        return 2 * math.exp(-rate * n), 2 * math.exp(-2 * rate * n)
    q = (math.exp(-rate * n) - math.exp(-rate)) / (n - 1)
    ends = math.exp(-2 * rate * n) + (q + math.exp(-rate)) ** 2
    return ends + q**2, ends + (n - 2) * q**2
