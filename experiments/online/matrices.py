"""Which directions to throw away: perturbed leaders, the thesis' bound, and exponentiated gradient."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from experiments.online.ensemble import gaussian_orthogonal, least_top, symmetric_laplace
from experiments.online.pca import (
    Average,
    average,
    exponentiated_bound,
    exponentiated_gradient,
    gaussian_bound,
    laplace_gain,
    pca_best_loss,
    pca_leader,
    pca_regret,
    perturbed_regrets,
    play,
    tuned_rate,
)
from experiments.online.protocol import generator
from experiments.sensors.points import Part, Point

from sfumato.online import regret_bound
from sfumato.privacy import gaussian_sigma

FloatArray = npt.NDArray[np.float64]

CYCLE, KILLER = "matrices-cycle", "matrices-killer"
DRAWS = {4: 1000, 8: 600, 16: 150}
QUICK_DRAWS = {4: 120, 8: 60}
SIZE, RANK, ROUNDS = 8, 2, 600  # of the killer


def matrices(quick: bool, rng: np.random.Generator) -> dict[str, float]:
    """All numbers, named "figure/series/size", with "/low" and "/high" where they have a 95 % interval."""
    found: dict[str, float] = {}
    for size, draws in (QUICK_DRAWS if quick else DRAWS).items():
        cycled(found, size, draws, rng=rng)
    killed(found, 30 if quick else 200, rng=rng)
    return found


def cycled(found: dict[str, float], size: int, draws: int, *, rng: np.random.Generator) -> None:
    """One direction of `size`, epsilon 1: all axes in turn but the first, which is best and loses nothing."""
    turns = max(40, 5 * size)  # by then the first leads, noise or not, and hardly anything is added
    points = np.eye(size)[1 + np.arange(turns * (size - 1)) % (size - 1)]
    noises = np.array([symmetric_laplace(size, 1.0, rng=rng) for _ in range(draws)])
    followed, been = (average(regrets) for regrets in perturbed_regrets(points, 1, noises=noises))
    gain = laplace_gain(size, 1, draws=draws, rng=rng)
    printed = 1 + math.log(size)
    for series, value, scale in (
        ("be", been, 1.0),
        ("follow", followed, 1.0),
        ("gain", gain, 1.0),
        ("be / printed", been, printed),
        ("follow / printed", followed, 3 * printed),
        ("follow / bound", followed, regret_bound(1.0, best_loss=0.0, ahead=gain.low)),
        ("gain / least", gain, least_top(size, 1.0)),
        ("gain / limit", gain, math.pi / 2 * size),
    ):
        put(found, f"{CYCLE}/{series}/{size}", value, scale)
    calm = pca_regret(
        points, 1, plays=play(points, lambda total: exponentiated_gradient(total, 1, rate=1.0))
    )
    found[f"{CYCLE}/exponentiated/{size}"] = calm
    bound = exponentiated_bound(0.0, size=size, rank=1, rate=1.0)
    found[f"{CYCLE}/exponentiated / bound/{size}"] = calm / bound
    found[f"{CYCLE}/leader/{size}"] = pca_regret(
        points, 1, plays=play(points, lambda total: pca_leader(total, 1))
    )


def killed(found: dict[str, float], draws: int, *, rng: np.random.Generator) -> None:
    """Two directions of eight, each learner tuned by its bound: always the axis that lost least so far."""
    points = np.eye(SIZE)[np.arange(ROUNDS) % SIZE]
    points[:SIZE] *= np.sqrt(np.arange(1, SIZE + 1) / (SIZE + 1))[
        :, None
    ]  # so that there are no ties
    best = pca_best_loss(points, RANK)
    gain = laplace_gain(SIZE, RANK, draws=draws, rng=rng)
    epsilon = min(1.0, math.sqrt(gain.mean / best))
    laplace = np.array([symmetric_laplace(SIZE, epsilon, rng=rng) for _ in range(draws)])
    given = {"size": SIZE, "rank": RANK}
    delta = 1 / (2 * ROUNDS)
    bound, wide = min(
        (gaussian_bound(best, **given, rounds=ROUNDS, epsilon=e, delta=delta), e)
        for e in np.geomspace(0.01, 1, 40).tolist()
    )
    sigma = gaussian_sigma(wide, delta, sensitivity=1)
    gaussian = np.array([gaussian_orthogonal(SIZE, sigma, rng=rng) for _ in range(draws)])
    rate = tuned_rate(best, **given)
    for series, noises, limit in (
        ("laplace", laplace, regret_bound(epsilon, best_loss=best, ahead=gain.low / epsilon)),
        ("gaussian", gaussian, bound),
    ):
        followed = average(perturbed_regrets(points, RANK, noises=noises)[0])
        put(found, f"{KILLER}/{series}/{SIZE}", followed, 1.0)
        put(found, f"{KILLER}/{series} / bound/{SIZE}", followed, limit)
    plays = play(points, lambda total: exponentiated_gradient(total, RANK, rate=rate))
    calm = pca_regret(points, RANK, plays=plays)
    found[f"{KILLER}/exponentiated/{SIZE}"] = calm
    found[f"{KILLER}/exponentiated / bound/{SIZE}"] = calm / exponentiated_bound(
        best, **given, rate=rate
    )
    plays = play(points, lambda total: pca_leader(total, RANK))
    found[f"{KILLER}/leader/{SIZE}"] = pca_regret(points, RANK, plays=plays)


def put(found: dict[str, float], name: str, value: Average, scale: float) -> None:
    """The mean and both ends of its interval, over a number."""
    found[name] = value.mean / scale
    found[f"{name}/low"] = value.low / scale
    found[f"{name}/high"] = value.high / scale


def as_points(found: dict[str, float]) -> list[Point]:
    """The same numbers as `experiments.sensors.claims.decide` takes them."""
    points = []
    for name, value in found.items():
        if not name.endswith(("/low", "/high")):
            figure, _, rest = name.partition("/")
            series, _, size = rest.rpartition("/")
            low, high = found.get(f"{name}/low", value), found.get(f"{name}/high", value)
            points.append(Point(figure, series, "value", "size", float(size), value, low, high, 1))
    return points


def run(*, quick: bool) -> Part:
    """All numbers as one part of the report."""
    found = matrices(quick, generator("matrices"))
    points = as_points(found)
    rows = [["", "value", "95 % interval"]]
    for point in points:
        interval = "" if point.low == point.high else f"{point.low:.3g} to {point.high:.3g}"
        rows.append(
            [f"{point.figure}: {point.series}, size {point.x:g}", f"{point.middle:.3g}", interval]
        )
    about = (
        "Which directions to throw away (sec. 12.2.2): perturbed leaders with the matrix ensemble of lemma "
        "12.5, sampled exactly, with Gaussian matrices, and exponentiated gradient, which we recommend."
    )
    return Part(
        "matrices", "Online principal components", about, tuple(points), (("Numbers", rows),)
    )
