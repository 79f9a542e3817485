"""Mechanisms gone wrong that are none of the package with other parameters, and noise of many keys."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.heatmap.methods import Pyramid, Zoom, ZoomTree
from sfumato.heatmap.methods.baselines import AdaptiveGrid
from sfumato.heatmap.methods.protocol import NoisyLevel, NoisyTree
from sfumato.heatmap.methods.pyramid import _largest
from sfumato.privacy import UNITS, DiscreteLaplace, KeyedNoise, Noise
from sfumato.privacy.ledger.guarded import LARGEST
from sfumato.records import CellSums
from sfumato.spaces import Grid

IntArray = npt.NDArray[np.int64]


class OneKeyEach:
    """Keyed noise with another key for every draw: what many devices with one reading each would send."""

    distance: Fraction | None = Fraction(1, 2**64)
    known = False

    def laplace(self, scale: Any, size: int) -> IntArray:
        return self._each(lambda noise: noise.laplace(scale, 1), size)

    def gaussian(self, sigma: Any, size: int) -> IntArray:
        return self._each(lambda noise: noise.gaussian(sigma, 1), size)

    def rounded_gaussian(self, sigma: Any, size: int) -> IntArray:
        return self._each(lambda noise: noise.rounded_gaussian(sigma, 1), size)

    def uniform(self, below: int, size: int) -> list[int]:
        return [KeyedNoise(os.urandom(32)).uniform(below, 1)[0] for _ in range(size)]

    def _each(self, draw: Callable[[KeyedNoise], IntArray], size: int) -> IntArray:
        found = [draw(KeyedNoise(os.urandom(32))) for _ in range(size)]
        return np.concatenate([np.empty(0, dtype=np.int64), *found])


@dataclass(frozen=True, slots=True)
class ExactChoice:
    """A pyramid that adds its noise and then keeps the cells with the largest exact counts."""

    pyramid: Pyramid

    def sample(self, values: CellSums, noise: Noise) -> NoisyTree:
        cells, levels = np.arange(values.groups << 2 * self.pyramid.first_level), list[NoisyLevel]()
        for level, scale in enumerate(self.pyramid.scales, start=self.pyramid.first_level):
            cells = Grid.children(cells).ravel() if levels else cells
            counts = values.of_cells(level, cells)
            noisy = DiscreteLaplace(scale).sample(counts, noise)
            kept = np.arange(cells.size)[_largest(counts, cells >> 2 * level, self.pyramid.width)]
            cells, noisy = cells[kept], noisy[kept]
            levels.append(NoisyLevel(level, cells, noisy))
        return NoisyTree(values.groups, tuple(levels))


@dataclass(frozen=True, slots=True)
class BusiestFirst:
    """A right pyramid that lists its cells by their exact counts, the busiest first."""

    pyramid: Pyramid

    def sample(self, values: CellSums, noise: Noise) -> NoisyTree:
        tree = self.pyramid.sample(values, noise)
        levels = []
        for one in tree.levels:
            counts = -values.of_cells(one.level, one.codes).reshape(tree.groups, -1)
            each = counts.shape[1]
            order = (
                np.argsort(counts, axis=1, kind="stable") + each * np.arange(tree.groups)[:, None]
            ).ravel()
            levels.append(NoisyLevel(one.level, one.codes[order], one.values[order]))
        return NoisyTree(tree.groups, tuple(levels))


@dataclass(frozen=True, slots=True)
class Noiseless:
    """A mechanism that leaves out the noise of one of its scales."""

    mechanism: Any
    scale: Fraction

    @property
    def levels(self) -> int:
        return int(self.mechanism.levels)

    def sample(self, values: Any, noise: Noise) -> Any:
        return self.mechanism.sample(values, _NoNoiseOf(noise, self.scale))


@dataclass(frozen=True, slots=True)
class _NoNoiseOf:
    """A source of noise that gives none of one scale."""

    noise: Noise
    scale: Fraction

    def laplace(self, scale: Any, size: int) -> IntArray:
        return (
            np.zeros(size, dtype=np.int64)
            if scale == self.scale
            else self.noise.laplace(scale, size)
        )


@dataclass(frozen=True, slots=True)
class FloatNoise:
    """Noise of doubles, added to integers and not rounded."""

    sigma: float
    rng: np.random.Generator

    def sample(self, values: IntArray, _: Noise) -> npt.NDArray[np.float64]:
        return np.asarray(values + self.rng.normal(0.0, self.sigma, values.size))


@dataclass(frozen=True, slots=True)
class ClippedNoise:
    """Laplace noise that a value near the end of the range has less of, so that it stays inside."""

    scale: Fraction

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        room = np.maximum(LARGEST - np.abs(values), 0)
        return values + np.clip(noise.laplace(self.scale, values.size), -room, room)


class FromOneCell(AdaptiveGrid):
    """A right adaptive grid that begins with one cell, so that a small map is cut or not by its count."""

    __slots__ = ()

    def first_level(self, total: float) -> int:  # noqa: ARG002
        return 0


class ExactPrices(Zoom):
    """A zoom whose cells pay for their splits by exact counts."""

    values: CellSums

    def sample(self, values: CellSums, noise: Noise) -> ZoomTree:
        object.__setattr__(self, "values", values)
        return super().sample(values, noise)

    def masses(self, _seen: ZoomTree, level: int, cells: IntArray) -> npt.NDArray[np.float64]:
        return np.asarray(self.values.of_cells(level, cells) / UNITS)
