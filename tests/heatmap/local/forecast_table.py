"""What `local plan` forecasts, beside simulated maps: `python -m tests.heatmap.local.forecast_table`.

Nine made-up cities of three kinds, at many numbers of users and epsilons. A line for each of these has the
5, 50 and 95 % quantiles of the earth mover's distance and of Similarity, simulated and forecast.
About half an hour of one core.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.analysis import emd_share, smooth
from sfumato.heatmap.analysis.metrics import similarity
from sfumato.heatmap.inference import CountsPosterior
from sfumato.heatmap.local import plan_local, simulate_local_map
from sfumato.spaces import Grid

CITIES = 9
# Clusters, their deviation in sides, and the part of the people who are anywhere.
KINDS = ((5, 0.05, 0.1), (40, 0.015, 0.05), (2, 0.15, 0.3))
GRID = {
    30: ("1", "3", "5", "8", "16"),
    100: ("0.3", "1", "2", "3", "5", "8", "12", "16"),
    300: ("1", "2", "3", "5", "8", "16"),
    1000: ("0.3", "1", "2", "3", "5", "8", "12", "16"),
    3000: ("1", "3", "5", "8", "16"),
    10_000: ("0.1", "0.3", "1", "2", "3", "5", "8", "12"),
    30_000: ("1", "3", "5", "8"),
    100_000: ("0.1", "0.3", "1", "3", "5"),
    1_000_000: ("0.1", "0.3", "1", "3"),
}


def made_up_city(number: int, users: int) -> IntArray:
    """Codes of level 8 of the people of a city; the kinds take turns."""
    rng = np.random.default_rng([number, 28])
    clusters, spread, anywhere = KINDS[number % len(KINDS)]
    centers, weights = rng.random((clusters, 2)), rng.dirichlet(np.ones(clusters))
    rng = np.random.default_rng([number, users])
    places = centers[rng.choice(clusters, users, p=weights)]
    places = places + spread * rng.standard_normal((users, 2))
    lost = rng.random(users) < anywhere
    places[lost] = rng.random((int(lost.sum()), 2))
    x, y = np.clip(places, 0, 1 - 1e-9).T
    return np.asarray(Grid(8).cells_of(x, y))


def images(found: CountsPosterior, codes: IntArray, level: int) -> tuple[FloatArray, FloatArray]:
    """The true map and the mean map of a level."""
    truth = np.bincount(codes >> 2 * (8 - level), minlength=4**level) / codes.size
    means = found.means(level)
    return Grid(level).image(truth), Grid(level).image(means / means.sum())


def alike(found: CountsPosterior, codes: IntArray) -> float:
    """Similarity at a blur of 0.02."""
    truth, mean = (smooth(one, 0.02) for one in images(found, codes, 7))
    return similarity(truth, mean)


def how_good(codes: IntArray, epsilon: str, *, rng: np.random.Generator) -> tuple[float, float]:
    """Earth mover's distance in sides, and Similarity, of a simulated map."""
    found = simulate_local_map(codes, epsilon, rng=rng)
    return emd_share(*images(found, codes, 6), Grid(6)), alike(found, codes)


def quantiles(users: int, epsilon: str, *, cities: int = CITIES) -> FloatArray:
    """Of the distance and of Similarity [which, quantile]."""
    found = [
        how_good(made_up_city(city, users), epsilon, rng=np.random.default_rng(city))
        for city in range(cities)
    ]
    return np.quantile(found, [0.05, 0.5, 0.95], axis=0).T


def shown(numbers: Iterable[float]) -> str:
    return " ".join(f"{one:.3f}" for one in numbers)


if __name__ == "__main__":
    for users, epsilons in GRID.items():
        for epsilon in epsilons:
            emd, shared = quantiles(users, epsilon)
            said = plan_local(users, epsilon)
            line = f"{users} {epsilon} emd {shown(emd)} similarity {shown(shared)}"
            if said.emd is not None and said.similarity is not None:
                both = ((one.low, one.middle, one.high) for one in (said.emd, said.similarity))
                line += "; forecast {} and {}".format(*map(shown, both))
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
