"""Error against n, m, T and sigma for noise that is given: Figures 3a-d of [gilbert17], and its Table 2."""

from __future__ import annotations

from experiments.sensors.papers_tables import rates
from experiments.sensors.points import Part, picture, points, table
from experiments.sensors.protocol import Axis, Draw, Setting, run_panel

BASE = Setting(T=0.5, sigma=0.1)
# The axes are not in our copy of the paper; these values are ours.
PANELS: tuple[tuple[str, Axis, Setting, tuple[float, ...], tuple[float, ...]], ...] = (
    ("3a", "n", BASE, (50, 100, 200, 400, 800), (50, 400)),
    ("3b", "m", BASE, (5, 10, 20, 50, 100, 200, 400, 800, 1600, 3200), (10, 100, 1600)),
    ("3c", "T", Setting(T=0.5, sigma=0.2), (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (0.01, 0.1)),
    (
        "3d",
        "sigma",
        Setting(T=0.05, sigma=0.2),
        (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6),
        (0.02, 0.1, 0.4),
    ),
)


def run(*, quick: bool) -> Part:
    """All four panels."""
    trials = 30 if quick else 300
    draws: list[Draw] = []
    for figure, axis, base, values, few in PANELS:
        draws += run_panel(figure, base, axis, few if quick else values, trials)
    found = points(draws)
    pictures = tuple(
        picture(
            found,
            figure,
            title=f"Figure {figure}: noise given",
            caption=f"{said(base, axis)}, one source at 0.5, {trials} draws of each point, means of those "
            "answered with 95 % intervals. Papers: radius sigma sqrt(m); ours: the default radius.",
        )
        for figure, axis, base, _, _ in PANELS[: 1 if quick else None]
    )
    about = (
        f"One source at 0.5, noise sigma given, {trials} draws of each point. Unless on the axis, n = 100, "
        "m = 50, T = 0.5, sigma = 0.1; sigma = 0.2 in 3c; T = 0.05 in 3d."
    )
    shown = [(f"Figure {figure}", table(found, figure)) for figure, *_ in PANELS]
    figures: dict[str, str] = {axis: figure for figure, axis, *_ in PANELS}
    shown.append(
        (
            "Table 2 of the papers, Table I of the abstract: rates",
            rates(found, "noisy", figures),
        )
    )
    return Part(
        "noisy", "Noise given: Figure 3", about, found, tuple(shown), pictures, tuple(draws)
    )


def said(base: Setting, axis: Axis) -> str:
    """The numbers of a setting that are not on the axis."""
    names = ("n", "m", "T", "sigma") if not base.private else ("n", "m", "T", "epsilon", "delta")
    return ", ".join(f"{name} = {getattr(base, name):g}" for name in names if name != axis)
