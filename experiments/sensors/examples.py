"""Single recoveries: Figures 1, 2a, 2b of [gilbert17], Figure 1 of [gilbert18] and of [gilbertheat17].

The papers draw one recovery each. Here each is repeated, and the picture is the draw of median
error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from experiments.sensors.points import Part, Picture, Point, Table, mean, points
from experiments.sensors.protocol import (
    METHODS,
    OURS,
    PAPERS,
    Draw,
    FloatArray,
    attempt,
    errors,
    generator,
)

from sfumato.figures import draw_line_recovery
from sfumato.sensing import Recovery, heat_line
from sfumato.sensing.model.operators import HeatLine
from sfumato.transport import emd

RADII = (METHODS[0], METHODS[2])
NEAR = 0.1


@dataclass(frozen=True, slots=True)
class Example:
    """One picture of the papers: diffusion time, noise, where the unit sources are.

    `scaled` ones are drawn as their caption says: both vectors with unit l1 norm.
    """

    figure: str
    title: str
    time: float
    sigma: float
    peaks: tuple[float, ...]
    scaled: bool = False


EXAMPLES = (
    # The source is not stated; sec. 5 puts a single one at 0.5.
    Example(
        "1",
        "Figure 1 of the papers' first version and of the abstract",
        0.5,
        0.5,
        (0.5,),
        scaled=True,
    ),
    # Places of 2a are not stated; they are closer than sqrt(2T) = 0.32, and apart by more in 2b.
    Example("2a", "Figure 2a: two sources close together", 0.05, 0.1, (0.45, 0.55)),
    Example(
        "2b",
        "Figure 2b, and Figure 1 of the full version: two sources apart",
        0.05,
        0.1,
        (0.24, 0.76),
    ),
)


def run(*, quick: bool) -> Part:
    """Repeat each example, draw the median one, and measure where the mass went."""
    trials = 20 if quick else 400
    draws: list[Draw] = []
    extra: list[Point] = []
    pictures: list[Picture] = []
    for example in EXAMPLES:
        line = heat_line(sources=100, sensors=50, diffusion_time=example.time)
        truth = np.zeros(100)
        truth[[round(100 * peak) - 1 for peak in example.peaks]] = 1.0
        even = emd(truth, np.full(100, 0.01), line.space, normalize=True).value
        kept: dict[str, list[tuple[float, Recovery]]] = {PAPERS: [], OURS: []}
        for trial in range(trials):
            noise = example.sigma * generator("example", example.figure, trial).standard_normal(50)
            for method in RADII:
                found = attempt(line, line.readings(truth) + noise, example.sigma, method.radius)
                status, distance, apart = errors(truth, found, line.space)
                draws.append(
                    Draw(example.figure, method.name, "T", example.time, trial, example.sigma,
                         status, distance, apart, even)
                )  # fmt: skip
                if found is not None and status == "optimal":
                    kept[method.name].append((distance, found))
        for name, some in kept.items():
            near = np.array([_near(example, line, found.estimate) for _, found in some])
            between = np.array([_between(example, line, found.estimate) for _, found in some])
            for label, values in (("near", near), ("between", between)):
                extra.append(
                    Point(example.figure, f"{name}, {label}", "value", "T", example.time, *mean(values),
                          values.size)
                )  # fmt: skip
            median = sorted(some, key=lambda pair: pair[0])[len(some) // 2][1]
            if not (quick and pictures):
                pictures.append(_picture(example, name, line, truth, median))
    found_points = (*points(draws), *extra)
    about = (
        f"n = 100, m = 50, {trials} draws each; vectors scaled to mass 1, so that l1 is at most 2. "
        f"'near' is the share of the recovered mass within {NEAR} of a source, 'between' the share strictly "
        "between two sources and farther than one cell from both. The pictures are the draws of median error; "
        "Figure 1 has both vectors with unit l1 norm, as its caption says, the others as they are."
    )
    return Part(
        "examples", "Single recoveries", about, found_points, (("", _table(found_points)),),
        tuple(pictures), tuple(draws),
    )  # fmt: skip


def _near(example: Example, line: HeatLine, estimate: FloatArray) -> float:
    at = line.space.positions
    close = np.min([np.abs(at - peak) for peak in example.peaks], axis=0) <= NEAR + 1e-9
    return float(estimate[close].sum() / estimate.sum())


def _between(example: Example, line: HeatLine, estimate: FloatArray) -> float:
    at = line.space.positions
    inside = (at > min(example.peaks) + 0.011) & (at < max(example.peaks) - 0.011)
    return float(estimate[inside].sum() / estimate.sum())


def _table(found: tuple[Point, ...]) -> Table:
    rows = [["figure", "radius", "answered", "EMD", "l1", "near", "between"]]
    at = {(point.figure, point.series, point.metric): point for point in found}

    def said(figure: str, series: str, metric: str) -> str:
        point = at[figure, series, metric]  # type: ignore[index]
        return f"{point.middle:.3f} ± {point.high - point.middle:.3f}"

    for example in EXAMPLES:
        for method in RADII:
            name = method.name
            rows.append(
                [
                    example.figure,
                    name,
                    f"{at[example.figure, name, 'answered'].middle:.0%}",
                    said(example.figure, name, "emd"),
                    said(example.figure, name, "l1"),
                    said(example.figure, f"{name}, near", "value"),
                    said(example.figure, f"{name}, between", "value")
                    if len(example.peaks) > 1
                    else "-",
                ]
            )
    return rows


def _picture(
    example: Example, name: str, line: HeatLine, truth: FloatArray, found: Recovery
) -> Picture:
    # What the estimate would read is that of the estimate itself.
    size, mass = (truth.sum(), found.estimate.sum()) if example.scaled else (1.0, 1.0)
    said = "Both vectors have unit l1 norm. " if example.scaled else ""
    png = draw_line_recovery(
        line.space,
        found.estimate / mass,
        sensors=line.sensors.positions,
        readings=found.readings,
        sigma=example.sigma,
        fitted=line.readings(found.estimate),
        sources=truth / size,
        caption=f"{example.title}. n = 100, m = 50, T = {example.time:g}, sigma = {example.sigma:g}, radius: "
        f"{name}. {said}The draw of median error.",
        rehearsal=True,
    )
    return Picture(f"figure{example.figure}-{name}", png, f"{example.title}, radius: {name}")
