"""Operators: how sources spread to sensors. Each is a linear map from masses on a space to readings.

    Operator = HeatLine | HeatPlane | GraphDiffusion | Matrix

All four give readings, the adjoint and single columns without forming the matrix where it would be
large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ive

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.diffuse_kernel import SIDE, chebyshev, chebyshev_side
from sfumato.sensing.model.sensors import Sensors
from sfumato.spaces import Graph, Grid, Line, Points

CHUNK = 1 << 22
"""Entries of a matrix that are formed at a time."""


@dataclass(frozen=True)
class HeatLine:
    """Heat on a line without ends: a unit at x reads g(s - x) at s [gilbert17, eq. 1].

    g(d) = exp(-d**2 / 4T) / sqrt(4 pi T); T is the diffusion time, the papers' mu t.
    """

    space: Line
    sensors: Sensors
    diffusion_time: float

    @property
    def shape(self) -> tuple[int, int]:
        """Sensors, cells."""
        return len(self.sensors), self.space.size

    def kernel(self, distance: FloatArray) -> FloatArray:
        """What a unit reads at a distance."""
        return _heat(distance, self.diffusion_time)

    def columns(self, cells: npt.ArrayLike) -> FloatArray:
        """What one unit in each of these cells reads: sensors by cells."""
        at = self.space.positions[np.asarray(cells, dtype=np.int64)]
        return self.kernel(self.sensors.positions - at)

    def readings(self, sources: npt.ArrayLike) -> FloatArray:
        """What the sensors read of these masses, without noise."""
        return _readings_by_columns(self, sources)

    def adjoint(self, dual: npt.ArrayLike) -> FloatArray:
        """The transposed map: one number for each cell."""
        return _adjoint_by_columns(self, dual)


@dataclass(frozen=True)
class HeatPlane:
    """Heat in a plane without borders: a unit at x reads exp(-|s - x|**2 / 4T) / (4 pi T) at s.

    Sources are the cells of a grid (distance l1) or any points. On a grid the kernel is a product
    of one factor for columns and one for rows, so a map is two matrix products.
    """

    space: Grid | Points
    sensors: Sensors
    diffusion_time: float

    @property
    def shape(self) -> tuple[int, int]:
        """Sensors, cells."""
        return len(self.sensors), self.space.size

    def columns(self, cells: npt.ArrayLike) -> FloatArray:
        """What one unit in each of these cells reads: sensors by cells."""
        chosen = np.asarray(cells, dtype=np.int64)
        at = (
            self.space.centers(chosen)
            if isinstance(self.space, Grid)
            else self.space.positions[chosen]
        ).reshape(-1, 2)
        east, north = (
            _heat(self.sensors.positions[:, [axis]] - at[:, axis], self.diffusion_time)
            for axis in (0, 1)
        )
        return east * north

    def readings(self, sources: npt.ArrayLike) -> FloatArray:
        """What the sensors read of these masses, without noise."""
        if not isinstance(self.space, Grid):
            return _readings_by_columns(self, sources)
        east, north = self._factors
        image = self.space.image(_masses(sources, self.space.size))
        return np.asarray(np.einsum("mr,mr->m", north @ image, east))

    def adjoint(self, dual: npt.ArrayLike) -> FloatArray:
        """The transposed map: one number for each cell."""
        if not isinstance(self.space, Grid):
            return _adjoint_by_columns(self, dual)
        east, north = self._factors
        image = (north * _duals(dual, len(self.sensors))[:, np.newaxis]).T @ east
        return np.asarray(self.space.values_of_image(image))

    @cached_property
    def _factors(self) -> tuple[FloatArray, FloatArray]:
        grid = cast(Grid, self.space)
        west, south, _, _ = grid.bounds
        middle = np.arange(grid.side) + 0.5
        places = self.sensors.positions
        return (
            _heat(places[:, [0]] - (west + middle * grid.cell_width), self.diffusion_time),
            _heat(places[:, [1]] - (south + middle * grid.cell_height), self.diffusion_time),
        )


@dataclass(frozen=True, eq=False)
class GraphDiffusion:
    """Heat, or a rumour, on a graph: exp(-rate L), read at some nodes or all [gilbert18, sec. 5].

    Computed as a Chebyshev series of the Laplacian L on an interval that holds its spectrum; the
    coefficients are modified Bessel functions, and it is cut where they are below 1e-17.
    """

    space: Graph
    sensors: Sensors
    rate: float
    weights: FloatArray | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphDiffusion):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (
            self.space,
            self.sensors,
            self.rate,
            None if self.weights is None else self.weights.tobytes(),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Sensors, nodes."""
        return len(self.sensors), self.space.size

    @cached_property
    def nodes(self) -> IntArray:
        """The nodes that have a sensor, in the order of the readings."""
        return np.asarray(self.sensors.positions[:, 0], dtype=np.int64)

    @cached_property
    def everywhere(self) -> bool:
        """Whether every node has a sensor, in order: the matrix is then symmetric."""
        return np.array_equal(self.nodes, np.arange(self.space.size))

    @cached_property
    def laplacian(self) -> sparse.csr_array[np.float64]:
        """Weighted degrees minus weights."""
        if self.weights is None:
            return self.space.laplacian()
        low, high = self.space.edges.T
        rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
        links = sparse.csr_array(
            (np.concatenate([self.weights, self.weights]), (rows, columns)),
            shape=(self.space.size,) * 2,
        )
        return sparse.csr_array(sparse.diags_array(links.sum(axis=1)) - links)

    @cached_property
    def _series(self) -> tuple[float, FloatArray]:
        half = self._half_spectrum
        reach = self.rate * half
        terms = np.arange(int(64 + 12 * math.sqrt(reach)))  # far past where they matter
        coefficients = 2 * (-1.0) ** terms * ive(terms, reach)
        coefficients[0] /= 2
        last = int(np.flatnonzero(np.abs(coefficients) > 1e-17)[-1])
        return half, np.asarray(coefficients[: max(2, last + 1)], dtype=np.float64)

    @cached_property
    def _half_spectrum(self) -> float:
        """Half of a bound on the spectrum, a little above what it is.

        The radius of D + A bounds that of L = D - A, and for every positive x it is at most the
        largest of ((D + A) x / x): with x the degrees, a degree plus the mean degree around it
        [merris98]. Each further product with D + A lowers it.
        """
        degrees = self.laplacian.diagonal()
        if degrees.max() == 0:
            return 0.0
        x, bound = np.ones(degrees.size), 0.0
        for _ in range(8):
            spread = 2 * degrees * x - self.laplacian @ x  # (D + A) x
            bound = float((spread / x).max())
            x = spread / spread.max()
        return bound * (1 + 1e-12) / 2

    @cached_property
    def _shifted(self) -> tuple[IntArray, IntArray, FloatArray]:
        """L / half - 1, whose spectrum lies in [-1, 1], as compressed rows."""
        half, _ = self._series
        shifted = sparse.csr_array(
            self.laplacian / half - sparse.eye_array(self.space.size, format="csr")
        )
        return (
            np.asarray(shifted.indptr, dtype=np.int64),
            np.asarray(shifted.indices, dtype=np.int64),
            np.asarray(shifted.data, dtype=np.float64),
        )

    def diffuse(self, masses: FloatArray) -> FloatArray:
        """exp(-rate L) times one vector or the columns of a matrix, on all nodes."""
        half, coefficients = self._series
        if half == 0:
            return masses.copy()
        if masses.ndim == 1:
            return np.asarray(chebyshev(*self._shifted, coefficients, np.array(masses)))
        out = np.empty(masses.shape)
        for begin in range(0, masses.shape[1], SIDE):
            part = np.zeros((masses.shape[0], SIDE))
            wide = min(SIDE, masses.shape[1] - begin)
            part[:, :wide] = masses[:, begin : begin + wide]
            out[:, begin : begin + wide] = chebyshev_side(*self._shifted, coefficients, part)[
                :, :wide
            ]
        return out

    def columns(self, cells: npt.ArrayLike) -> FloatArray:
        """What one unit in each of these nodes reads: sensors by nodes."""
        chosen = np.asarray(cells, dtype=np.int64)
        if (
            self.nodes.size < chosen.size
        ):  # exp(-rate L) is symmetric: units at the sensors are fewer
            units = np.zeros((self.space.size, self.nodes.size))
            units[self.nodes, np.arange(self.nodes.size)] = 1.0
            return np.ascontiguousarray(self.diffuse(units)[chosen].T)
        units = np.zeros((self.space.size, chosen.size))
        units[chosen, np.arange(chosen.size)] = 1.0
        return self.diffuse(units)[self.nodes]

    def readings(self, sources: npt.ArrayLike) -> FloatArray:
        """What the sensors read of these masses, without noise."""
        return self.diffuse(_masses(sources, self.space.size))[self.nodes]

    def adjoint(self, dual: npt.ArrayLike) -> FloatArray:
        """The transposed map: one number for each node."""
        spread = np.zeros(self.space.size)
        np.add.at(spread, self.nodes, _duals(dual, len(self.sensors)))
        return self.diffuse(spread)


@dataclass(frozen=True, eq=False)
class Matrix:
    """Any linear map: a matrix or a scipy LinearOperator, sensors by cells of a space."""

    space: Line | Grid | Graph | Points
    sensors: Sensors
    map: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Sensors, cells."""
        return len(self.sensors), self.space.size

    def columns(self, cells: npt.ArrayLike) -> FloatArray:
        """What one unit in each of these cells reads: sensors by cells."""
        chosen = np.asarray(cells, dtype=np.int64)
        if isinstance(self.map, np.ndarray):
            return np.asarray(self.map[:, chosen], dtype=np.float64)
        units = np.zeros((self.space.size, chosen.size))
        units[chosen, np.arange(chosen.size)] = 1.0
        return np.asarray(self.map @ units, dtype=np.float64)

    def readings(self, sources: npt.ArrayLike) -> FloatArray:
        """What the sensors read of these masses, without noise."""
        return np.asarray(self.map @ _masses(sources, self.space.size), dtype=np.float64)

    def adjoint(self, dual: npt.ArrayLike) -> FloatArray:
        """The transposed map: one number for each cell."""
        return np.asarray(self.map.T @ _duals(dual, len(self.sensors)), dtype=np.float64)


Operator = HeatLine | HeatPlane | GraphDiffusion | Matrix


def _heat(distance: FloatArray, time: float) -> FloatArray:
    return np.asarray(np.exp(-(distance**2) / (4 * time)) / math.sqrt(4 * math.pi * time))


def _readings_by_columns(operator: HeatLine | HeatPlane, sources: npt.ArrayLike) -> FloatArray:
    m, n = operator.shape
    masses = _masses(sources, n)
    cells = np.flatnonzero(masses)
    out = np.zeros(m)
    for part in np.array_split(cells, max(1, math.ceil(m * cells.size / CHUNK))):
        out += operator.columns(part) @ masses[part]
    return out


def _adjoint_by_columns(operator: HeatLine | HeatPlane, dual: npt.ArrayLike) -> FloatArray:
    m, n = operator.shape
    z = _duals(dual, m)
    parts = np.array_split(np.arange(n), max(1, math.ceil(m * n / CHUNK)))
    return np.concatenate([z @ operator.columns(part) for part in parts])


def _masses(sources: npt.ArrayLike, size: int) -> FloatArray:
    return _vector(sources, size, name="sources", each="cells")


def _duals(dual: npt.ArrayLike, size: int) -> FloatArray:
    return _vector(dual, size, name="a dual vector", each="sensors")


def _vector(values: npt.ArrayLike, size: int, *, name: str, each: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise InvalidParameter(
            f"{name} must be one number for each of {size} {each}, got shape {array.shape}; "
            "nothing was computed"
        )
    return array
