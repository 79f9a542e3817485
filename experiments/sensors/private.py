"""Error of private recovery: Figure 6 of [gilbert17], Figure 2 of [gilbertheat17], and their tables."""

from __future__ import annotations

from experiments.sensors.noisy import said
from experiments.sensors.papers_tables import rates
from experiments.sensors.points import Part, Table, picture, points, table
from experiments.sensors.protocol import Axis, Draw, Setting, run_panel

BASE = Setting()  # t = 0.1 and mu = 1/2, so that T = 0.05
# 6b is m by the text; the other panels and all values are ours. T > 1/2 is beyond the papers'
# assumptions.
PANELS: tuple[tuple[str, Axis, tuple[float, ...], tuple[float, ...]], ...] = (
    ("6a", "n", (50, 100, 200, 400, 800, 1600), (50, 400)),
    ("6b", "m", (5, 10, 20, 50, 100, 200, 400, 800), (10, 100, 400)),
    (
        "6c",
        "T",
        (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
        (0.002, 0.05, 2.0),
    ),
    ("6d", "epsilon", (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), (0.5, 4.0)),
    ("6e", "delta", (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3), (1e-4, 0.1)),
)


def run(*, quick: bool) -> Part:
    """All five panels, and slopes beside the papers' tables."""
    trials = 40 if quick else 300
    draws: list[Draw] = []
    for figure, axis, values, few in PANELS:
        draws += run_panel(figure, BASE, axis, few if quick else values, trials)
    found = points(draws)
    pictures = tuple(
        picture(
            found,
            figure,
            title=f"Figure {figure}: private recovery",
            caption=f"{said(BASE, axis)}, one source at 0.5, two adjacent cells swapped, {trials} draws of "
            "each point, means of those answered with 95 % intervals.",
        )
        for figure, axis, _, _ in PANELS[: 1 if quick else None]
    )
    about = (
        f"One source at 0.5; neighbors are two adjacent cells swapped; {trials} draws of each point. Unless "
        "on the axis, n = 100, m = 50, t = 0.1 (T = 0.05), epsilon = 1, delta = 0.1."
    )
    shown: list[tuple[str, Table]] = [
        (f"Figure {figure}", table(found, figure)) for figure, *_ in PANELS
    ]
    shown.append(
        (
            "Table 1 of the papers, Table II of the abstract: rates",
            rates(found, "private", {"n": "6a", "m": "6b", "T": "6c"}),
        )
    )
    return Part(
        "private", "Private recovery: Figure 6", about, found, tuple(shown), pictures, tuple(draws)
    )
