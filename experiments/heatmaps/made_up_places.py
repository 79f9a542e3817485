"""Made-up places of eight sorts that the cities of the package are not: to tune on, never to test on.

Each has a law of where people are, drawn at random; some people are there once, others a few times.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from experiments.heatmaps.protocol import generator

from sfumato.heatmap.benchmark import Place

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
FINE = 1024  # cells of a side of a law that is made of cells


def made_up_places(count: int, people: int) -> list[Place]:
    """So many places, the sorts taking turns; the same ones every time."""
    found = []
    for number in range(count):
        sort = list(SORTS)[number % len(SORTS)]
        name = f"{sort} {number // len(SORTS)}"
        rng = generator("made up", name)
        visits = 1 + rng.poisson(rng.choice([0.0, 1.0, 3.0]), people)
        user = np.repeat(np.arange(people), visits)
        points = SORTS[sort](visits, rng)
        x, y = np.clip(points, 0, 1 - 1e-9).T
        found.append(Place(name, user, x, y, np.ones(user.size, dtype=np.int64)))
    return found


def _of_cells(law: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Points of a density on cells [row, column], evenly inside them."""
    side = len(law)
    cell = rng.choice(law.size, count, p=(law / law.sum()).ravel())
    corner = np.stack([cell % side, cell // side], axis=1)
    return np.asarray((corner + rng.random((count, 2))) / side)


def _field(rng: np.random.Generator, power: float) -> FloatArray:
    """A Gaussian field of mean 0 and deviation 1 whose spectrum falls with this power."""
    waves = np.fft.fftfreq(FINE)[:, None], np.fft.rfftfreq(FINE)[None, :]
    length = np.hypot(*waves)
    length[0, 0] = np.inf
    made = np.fft.irfft2(np.fft.rfft2(rng.normal(size=(FINE, FINE))) * length**-power)
    return np.asarray((made - made.mean()) / made.std())


def _smooth(visits: IntArray, rng: np.random.Generator) -> FloatArray:
    """The exponential of a field: hills and plains."""
    count = int(visits.sum())
    return _of_cells(np.exp(rng.uniform(0.5, 2.5) * _field(rng, rng.uniform(1.2, 2.2))), count, rng)


def _coast(visits: IntArray, rng: np.random.Generator) -> FloatArray:
    """Nobody at sea, and fewer people the farther from it."""
    count = int(visits.sum())
    land = _field(rng, 2.2)
    level = np.quantile(land, rng.uniform(0.2, 0.7))
    inland = np.where(land > level, np.exp(-rng.uniform(1, 6) * (land - level)), 0.0)
    return _of_cells(inland * np.exp(_field(rng, 1.3)), count, rng)


def _cascade(visits: IntArray, rng: np.random.Generator) -> FloatArray:
    """Every cell splits its mass among its quarters by chance, ten times."""
    count = int(visits.sum())
    law, uneven = np.ones((1, 1)), rng.uniform(0.4, 1.2)
    while len(law) < FINE:
        law = np.kron(law, np.ones((2, 2))) * rng.lognormal(0, uneven, (2 * len(law),) * 2)
    return _of_cells(law, count, rng)


def _settlements(visits: IntArray, rng: np.random.Generator) -> FloatArray:
    """Towns of a country: many, by Zipf's law, tight, and some people between them."""
    count = int(visits.sum())
    towns = int(rng.integers(20, 300))
    size = 1.0 / np.arange(1, towns + 1) ** rng.uniform(0.8, 1.3)
    at = rng.choice(towns, count, p=size / size.sum())
    middle = rng.random((towns, 2))
    wide = rng.uniform(0.002, 0.012) * (size / size[0]) ** 0.4
    points = middle[at] + rng.normal(size=(count, 2)) * wide[at, None]
    lone = rng.random(count) < rng.uniform(0, 0.2)
    points[lone] = rng.random((int(lone.sum()), 2))
    return np.asarray(points)


def _blocks(visits: IntArray, rng: np.random.Generator) -> FloatArray:
    """People on the streets of a lattice, turned by an angle, some streets busier."""
    count = int(visits.sum())
    streets, angle = int(rng.integers(8, 30)), rng.uniform(0, np.pi / 2)
    busy = rng.dirichlet(np.full(2 * streets, rng.uniform(0.3, 2.0)))
    at = rng.choice(2 * streets, count, p=busy)
    along = rng.beta(1.5, 1.5, count)
    across = (at % streets + 0.5) / streets + rng.normal(scale=0.002, size=count)
    first = np.where(at < streets, along, across)
    second = np.where(at < streets, across, along)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = (np.stack([first, second], axis=1) - 0.5) @ turn * rng.uniform(0.7, 1.4) + 0.5
    inside = np.all((points >= 0) & (points < 1), axis=1)
    return np.asarray(points[rng.choice(np.flatnonzero(inside), count)])


def _spots(visits: IntArray, rng: np.random.Generator) -> FloatArray:
    """Almost everybody in a few venues, exactly there."""
    count = int(visits.sum())
    venues = int(rng.integers(2, 60))
    liked = rng.dirichlet(np.full(venues, 0.5))
    points = rng.random((venues, 2))[rng.choice(venues, count, p=liked)]
    lone = rng.random(count) < rng.uniform(0.02, 0.4)
    points[lone] = rng.random((int(lone.sum()), 2))
    return np.asarray(points)


def _even(visits: IntArray, rng: np.random.Generator) -> FloatArray:
    """A slope from one corner to the other, or no slope."""
    count = int(visits.sum())
    points = np.empty((count, 2))
    for axis in range(2):
        ends = rng.uniform(0.8, 1.6, 2).tolist()
        points[:, axis] = rng.beta(ends[0], ends[1], count)
    return points


def _walk(visits: IntArray, rng: np.random.Generator) -> FloatArray:
    """Tracks: everybody starts near one of a few hubs and walks by steps of all lengths."""
    hubs = rng.uniform(0.15, 0.85, (int(rng.integers(1, 7)), 2))
    start = hubs[rng.integers(len(hubs), size=visits.size)]
    start = start + rng.normal(size=start.shape) * rng.uniform(0.02, 0.12)
    count, first = int(visits.sum()), np.cumsum(visits) - visits
    angle, length = rng.uniform(0, 2 * np.pi, count), 0.004 * (rng.pareto(1.3, count) + 1)
    steps = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.minimum(length, 0.3)[:, None]
    gone = np.cumsum(steps, axis=0)
    since = np.repeat(gone[first] - steps[first], visits, axis=0)
    return np.asarray(np.repeat(start, visits, axis=0) + gone - since)


Sort = Callable[[IntArray, np.random.Generator], FloatArray]
SORTS: dict[str, Sort] = {
    "smooth": _smooth,
    "coast": _coast,
    "cascade": _cascade,
    "settlements": _settlements,
    "blocks": _blocks,
    "spots": _spots,
    "even": _even,
    "walk": _walk,
}
