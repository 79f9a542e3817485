"""Many sources: Figures 5a and 5b of [gilbert17], the error and the sensors needed against k."""

from __future__ import annotations

import math
from dataclasses import replace

from experiments.sensors.points import (
    Metric,
    Part,
    Picture,
    Point,
    Table,
    answered,
    curve,
    picture,
    points,
    table,
)
from experiments.sensors.protocol import OURS, PAPERS, Draw, Setting, run_panel, run_point

from sfumato.figures import draw_intervals

BASE = Setting(m=10, T=0.05, k=4, sigma=0.1)
PRIVATE = Setting(T=0.05, k=4, epsilon=10, delta=0.01)
ENOUGH = 0.1
"""The mean EMD below which sensors are called enough; the paper does not state its own."""


def run(*, quick: bool) -> Part:
    """5a with the noise given, 5b private, as the numbers in the caption suggest."""
    trials = 30 if quick else 300
    counts = (1, 8, 48) if quick else (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
    draws = run_panel("5a", BASE, "k", counts, trials)
    found = list(points(draws))
    sensors = (2, 4, 6, 10) if quick else (2, 3, 4, 5, 6, 8, 10, 15, 20, 50)
    fewer = 30 if quick else 150
    for k in (1, 8, 32) if quick else (1, 2, 4, 8, 16, 32, 64):
        some: list[Draw] = []
        for m in sensors:
            some += run_point(f"5b k={k}", replace(PRIVATE, k=k, m=m), "m", fewer)
        draws += some
        here = points(some)
        found += here
        found += [needed(here, k, name) for name in dict.fromkeys(point.series for point in here)]
    about = (
        f"{trials} draws of each point of 5a, {fewer} of 5b; sources at random cells (one alone at 0.5). 5a: "
        "n = 100, m = 10, T = 0.05, sigma = 0.1; normalised l1 is at most 2. 5b: n = 100, T = 0.05, "
        f"epsilon = 10, delta = 0.01; the fewest sensors at which the mean EMD is at most {ENOUGH}, and the "
        "fewest at which the lower and the upper end of its interval are. The caption has sigma and epsilon "
        "both; which panel is which is our guess."
    )
    tables = (
        ("Figure 5a, EMD", table(found, "5a")),
        ("Figure 5a, normalised l1", table(found, "5a", "l1")),
        ("Figure 5b, sensors needed", counts_table(found)),
    )
    pictures = (
        _both(found, trials),
        picture(
            found,
            "5b",
            title=f"Figure 5b: sensors for a mean EMD of {ENOUGH}",
            caption=f"n = 100, T = 0.05, epsilon = 10, delta = 0.01, {fewer} draws of each number.",
            metric="value",
            y_label="sensors",
        ),
    )
    return Part(
        "many", "Many sources: Figure 5", about, tuple(found), tables, pictures, tuple(draws)
    )


def needed(here: tuple[Point, ...], k: int, series: str) -> Point:
    """The fewest sensors at which the error, and either end of its interval, is at most ENOUGH."""
    some = sorted(
        (p for p in here if (p.series, p.metric) == (series, "emd")), key=lambda point: point.x
    )

    def fewest(field: str) -> float:
        return next((point.x for point in some if getattr(point, field) <= ENOUGH), math.inf)

    most = some[-1].x
    middle, low, high = (min(fewest(field), most) for field in ("middle", "low", "high"))
    return Point("5b", series, "value", "k", k, middle, low, high, some[-1].count)


def counts_table(found: list[Point]) -> Table:
    """Sensors needed, with the ends of the interval."""
    here = [point for point in found if point.figure == "5b"]
    names = list(dict.fromkeys(point.series for point in here))
    at = {(point.series, point.x): point for point in here}
    return [
        ["k", *names],
        *(
            [
                f"{x:g}",
                *(f"{at[n, x].middle:g} ({at[n, x].low:g} to {at[n, x].high:g})" for n in names),
            ]
            for x in sorted({point.x for point in here})
        ),
    ]


def _both(found: list[Point], trials: int) -> Picture:
    wanted: tuple[tuple[str, Metric, str], ...] = (
        (PAPERS, "emd", "papers, EMD"),
        (OURS, "emd", "ours, EMD"),
        (PAPERS, "l1", "papers, l1"),
        (OURS, "l1", "ours, l1"),
    )
    lines = [
        one for name, metric, label in wanted if (one := curve(found, "5a", name, metric, label))
    ]
    title = "Figure 5a: many sources, noise given"
    caption = (
        f"n = 100, m = 10, T = 0.05, sigma = 0.1, {trials} draws of each point, means of those answered with "
        f"95 % intervals. {answered(found, '5a')}"
    )
    png = draw_intervals(
        lines, x_label="k", y_label="error: EMD, or l1", title=title, x_scale="log", y_scale="log",
        caption=caption,
    )  # fmt: skip
    return Picture("5a", png, title)
