"""Stand-ins for the posterior of a map, for tests of what is made of one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sfumato.heatmap.inference import MapPosterior

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Given(MapPosterior):
    """The very maps that are given [draw, row, column], at their own level or a coarser one."""

    drawn: FloatArray
    asked: list[int] = field(default_factory=list)

    def maps(self, count: int, level: int) -> FloatArray:
        assert len(self.drawn) >= count
        self.asked.append(level)
        return pooled(self.drawn[:count], level)


@dataclass(frozen=True, eq=False)
class Broken(MapPosterior):
    """A posterior that cannot be drawn from."""

    def maps(self, count: int, level: int) -> FloatArray:
        raise MemoryError(f"{count} maps of level {level}")


def pooled(images: FloatArray, level: int) -> FloatArray:
    """Images summed up to cells of a level."""
    side = images.shape[-1]
    shape = (*images.shape[:-2], 1 << level, side >> level, 1 << level, side >> level)
    return np.asarray(images.reshape(shape).sum(axis=(-3, -1)))


def around(
    image: FloatArray, rng: np.random.Generator, *, noise: float = 2.0, level: int = 5
) -> Given:
    """Maps whose blocks of a level have gamma laws with the picture's means and some users of noise.

    Inside a block they keep the picture's shape.
    """
    least = image + 1e-6
    blocks = pooled(least, level)
    times = len(image) // len(blocks)
    shape = blocks**2 / (noise * np.maximum(blocks, noise))
    drawn = rng.gamma(np.broadcast_to(shape, (200, *shape.shape))) / shape
    return Given(np.repeat(np.repeat(drawn, times, axis=1), times, axis=2) * least)
