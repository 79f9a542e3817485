"""How often bands and tracks hold a source anywhere in its cell: python -m experiments.sensors.off_centers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from experiments.sensors.protocol import generator

from sfumato._types import FloatArray
from sfumato.sensing import heat_line, heat_plane, posterior
from sfumato.sensing.recovery.estimators import bands
from sfumato.sensing.tracking import track
from sfumato.spaces import Grid

MOST = 3
"""Sources of mass 1, 1 to 3 of them, as likely each."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Bands that were made, what they say on average, and how many hold, with and without the half cell."""

    count: int
    said: float
    held: int
    middles: int


LINE = heat_line(sources=40, sensors=20, diffusion_time=0.02)
FIVE = (np.arange(5) + 0.5) / 5
PLANE = heat_plane(
    sources=Grid(4),
    sensors=np.column_stack([np.tile(FIVE, 5), np.repeat(FIVE, 5)]),
    diffusion_time=0.01,
)
HALF = {1: 1 / 80, 2: 1 / 16}
"""Half a cell of the line, and of the plane, whose distances go along the axes."""


def read_from(operator: Any, places: FloatArray) -> FloatArray:
    """What sensors read of units at any places, without noise."""
    sensors, time = operator.sensors.positions, float(operator.time)
    squares = ((sensors[:, np.newaxis] - places) ** 2).sum(axis=2)
    kernel = np.exp(-squares / (4 * time)) / (4 * np.pi * time) ** (places.shape[1] / 2)
    return np.asarray(kernel.sum(axis=1))


def count_bands(
    operator: Any,
    sigma: float,
    place: Callable[[np.random.Generator, int], FloatArray],
    *,
    scenes: int,
    rng: np.random.Generator,
) -> Counted:
    """All bands of so many scenes, whose sources `place` puts somewhere."""
    said, held, middles = list[float](), 0, 0
    half = HALF[operator.sensors.positions.shape[1]]
    for _ in range(scenes):
        at = place(rng, int(rng.integers(1, MOST + 1)))
        noise = sigma * rng.standard_normal(len(operator.sensors))
        beliefs = posterior(
            operator, read_from(operator, at) + noise, sigma=sigma, rng=rng, max_sources=MOST,
            anywhere=True,
        )  # fmt: skip
        for one in bands(beliefs):
            near = float(np.abs(at - one.place).sum(axis=1).min())
            said.append(one.probability)
            held += near <= one.radius + 1e-12
            middles += near <= one.radius - half + 1e-12
    return Counted(len(said), float(np.mean(said)) if said else 0.0, held, middles)


def in_cells(operator: Any) -> Callable[[np.random.Generator, int], FloatArray]:
    """Sources in the middle of cells."""
    return lambda rng, count: operator.space.places(rng.integers(0, operator.space.size, count))


def anywhere(operator: Any) -> Callable[[np.random.Generator, int], FloatArray]:
    """Sources anywhere on the site."""
    return lambda rng, count: rng.random((count, operator.sensors.positions.shape[1]))


WALK = heat_line(sources=50, sensors=25, diffusion_time=0.01)
ROUNDS, STEP = 8, 0.02
"""Of a walk along the line of `WALK`: a cell in a round, as a deviation."""


def count_walks(
    sigma: float, *, walks: int, middles: bool, rng: np.random.Generator
) -> dict[bool, tuple[float, float]]:
    """How often 90 % radii hold who walks anywhere, and their mean: for people anywhere, and for middles."""
    at, found = WALK.space.positions, dict[bool, list[tuple[bool, float]]]({True: [], False: []})
    for _ in range(walks):
        path = rng.uniform(0.25, 0.75) + np.cumsum(STEP * rng.standard_normal(ROUNDS))
        path = np.clip(path, 0.01, 1.0)
        if middles:
            path = at[np.abs(at[:, np.newaxis] - path).argmin(axis=0)]
        clean = np.array([read_from(WALK, np.array([[place]])) for place in path])
        rounds = clean + sigma * rng.standard_normal(clean.shape)
        for anywhere, held in found.items():
            told = track(WALK, rounds, sigma=sigma, anywhere=anywhere)
            near = np.abs(at[told.cells[:, 0]] - path) <= told.radii[:, 0] + 1e-12
            held += zip(near.tolist(), told.radii[:, 0].tolist(), strict=True)
    return {
        anywhere: (float(np.mean([one for one, _ in held])), float(np.mean([r for _, r in held])))
        for anywhere, held in found.items()
    }


def print_walks(walks: int) -> None:
    """The table of tracks."""
    print("| source over sigma | who walks | held | mean radius | middles alone | mean radius |")
    print("|---|---|---|---|---|---|")
    peak = float(WALK.columns([25]).max())
    for sigma in (0.03, 0.1, 0.3):
        for words in ("through middles", "anywhere"):
            rng = generator("off centers", "walks", sigma, words)
            told = count_walks(sigma, walks=walks, middles=words != "anywhere", rng=rng)
            cells = [f"{held:.1%} | {radius:.4f}" for held, radius in (told[True], told[False])]
            print(f"| {peak / sigma:.0f} | {words} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print two tables: how often bands hold, by noise, and by where sources stand; and radii of tracks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--walks", type=int, default=40)
    given = parser.parse_args()
    scenes = given.scenes
    print_walks(given.walks)
    print()
    print("| site | source over sigma | sources | bands | said | held | middles alone |")
    print("|---|---|---|---|---|---|---|")
    for name, operator, sigmas in (
        ("line of 40 cells", LINE, (0.03, 0.1, 0.3)),
        ("plane of 256 cells", PLANE, (0.1, 0.5)),
    ):
        peak = float(operator.columns(np.arange(operator.space.size)).max())
        for sigma in sigmas:
            for words, place in (("middle of cells", in_cells), ("anywhere", anywhere)):
                rng = generator("off centers", name, sigma, words)
                found = count_bands(operator, sigma, place(operator), scenes=scenes, rng=rng)
                cells = [f"{found.held / found.count:.1%}", f"{found.middles / found.count:.1%}"]
                print(
                    f"| {name} | {peak / sigma:.0f} | {words} | {found.count} | {found.said:.1%} | "
                    f"{' | '.join(cells)} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
