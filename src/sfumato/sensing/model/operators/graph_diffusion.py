"""Diffusion on a graph."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.places import even_nodes
from sfumato.sensing.model.operators.protocol import (
    Diffusion,
    Operator,
    duals_of,
    masses_of,
    some_sensors,
    time_within,
)
from sfumato.sensing.model.sensors import Sensors, check_dimensions

if TYPE_CHECKING:
    from scipy import sparse

    from sfumato.sensing.model.changes import Largest
    from sfumato.sensing.model.operators.protocol import SourceSpace
    from sfumato.spaces import Graph

EPS = float(np.finfo(np.float64).eps)
FARTHEST = 1e9
"""Of the rate times half the spectrum: beyond, no Bessel functions are known, and all has long been mixed."""


@dataclass(frozen=True, eq=False)
class GraphDiffusion(Operator):
    """Heat, or a rumour, on a graph: exp(-rate L), read at some nodes or all [gilbert18, sec. 5].

    Computed as a Chebyshev series of the Laplacian L on an interval that holds its spectrum; the
    coefficients are modified Bessel functions, and it is cut where they are below 1e-17.
    """

    space: Graph
    sensors: Sensors
    rate: float
    weights: FloatArray | None = None
    kind: ClassVar[str] = "graph-diffusion"

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

    @cached_property
    def nodes(self) -> IntArray:
        """The nodes that have a sensor, in the order of the readings."""
        return np.asarray(self.sensors.positions[:, 0], dtype=np.int64)

    @cached_property
    def laplacian(self) -> sparse.csr_array[np.float64]:
        """Weighted degrees minus weights."""
        if self.weights is None:
            return self.space.laplacian()
        from scipy import sparse

        low, high = self.space.edges.T
        rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
        links = sparse.csr_array(
            (np.concatenate([self.weights, self.weights]), (rows, columns)),
            shape=(self.space.size,) * 2,
        )
        return sparse.csr_array(sparse.diags_array(links.sum(axis=1)) - links)

    @cached_property
    def _series(self) -> tuple[float, FloatArray]:
        from scipy.special import ive

        half = self._half_spectrum
        reach = self.rate * half
        if reach > FARTHEST:
            raise InvalidParameter(
                f"the rate times half the largest eigenvalue of the graph must be at most {FARTHEST:g}, "
                f"got {reach:.3g}; nothing was computed"
            )
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
        from scipy import sparse

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
        from sfumato.sensing.model.operators.diffuse_kernel import SIDE, chebyshev, chebyshev_side

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
        if self.nodes.size < chosen.size:
            # exp(-rate L) is symmetric: units at the sensors are fewer.
            units = np.zeros((self.space.size, self.nodes.size))
            units[self.nodes, np.arange(self.nodes.size)] = 1.0
            return np.ascontiguousarray(self.diffuse(units)[chosen].T)
        units = np.zeros((self.space.size, chosen.size))
        units[chosen, np.arange(chosen.size)] = 1.0
        return self.diffuse(units)[self.nodes]

    def readings(self, sources: npt.ArrayLike) -> FloatArray:
        """What the sensors read of these masses, without noise."""
        return self.diffuse(masses_of(sources, self.space.size))[self.nodes]

    def adjoint(self, dual: npt.ArrayLike) -> FloatArray:
        """The transposed map: one number for each node."""
        spread = np.zeros(self.space.size)
        np.add.at(spread, self.nodes, duals_of(dual, len(self.sensors)))
        return self.diffuse(spread)

    def apply(self, block: FloatArray) -> FloatArray:
        """The readings of several source vectors at once."""
        return self.diffuse(block)[self.nodes]

    def apply_adjoint(self, block: FloatArray) -> FloatArray:
        """The adjoint of several dual vectors at once."""
        spread = np.zeros((self.space.size, block.shape[1]))
        np.add.at(spread, self.nodes, block)
        return self.diffuse(spread)

    def gram(self, cells: IntArray) -> FloatArray:
        """Inner products of the columns of these nodes."""
        return self.apply_adjoint(self.columns(cells))[cells]

    def take(self, rows: IntArray) -> GraphDiffusion:
        """The operator to some of its sensors, by their numbers."""
        return replace(self, sensors=some_sensors(self.sensors, rows))

    @property
    def time(self) -> float:
        """The rate."""
        return self.rate

    @property
    def time_name(self) -> str:
        """On a graph the time is called a rate."""
        return "rate"

    def with_time(self, time: float) -> GraphDiffusion:
        """The same operator with another rate."""
        return self if time == self.rate else replace(self, rate=time)

    def sensor_count(self, count: float) -> int:
        """At most one sensor at each node."""
        return min(max(2, round(count)), self.space.size)

    def with_sensors(self, count: int) -> GraphDiffusion:
        """So many sensors at nodes evenly spaced by number."""
        nodes = Sensors(even_nodes(self.space.size, count))
        return graph_diffusion(self.space, self.rate, sensors=nodes, weights=self.weights)

    def changes(self, *, over_distance: bool) -> Largest:
        """The largest change along an edge, exact or within proven bounds."""
        from sfumato.sensing.model.changes import no_change
        from sfumato.sensing.model.graph_sensitivity import graph_changes

        if self.space.size == 1:
            return no_change(self)
        return graph_changes(self, over_distance=over_distance)

    def l1_changes(self, *, over_distance: bool) -> float:
        """The same in l1, edge by edge."""
        from sfumato.sensing.model.graph_sensitivity import graph_l1_changes

        if self.space.size == 1:
            return 0.0
        return graph_l1_changes(self, over_distance=over_distance)

    @property
    def in_space(self) -> bool:
        """Sensors sit on nodes."""
        return True

    @cached_property
    def diffusion(self) -> Diffusion:
        """The diffusion itself."""
        return Diffusion(self.laplacian, self.rate, self.nodes, self.diffuse)

    def adjoint_rounding(self, dual: FloatArray, level: float) -> float:  # noqa: ARG002
        """A bound on the length of all rounding errors of the adjoint.

        A step of the recurrence on x, in a matrix S of norm 1, rounds by at most (entries of a row + 4)
        eps |x|; the error of step j reaches step k multiplied by at most k - j + 1 (Chebyshev
        polynomials of the second kind), so by k**2 in all, and the coefficients are a law on k with
        mean square reach = rate half.
        """
        half, coefficients = self._series
        reach = self.rate * half
        row = int(np.diff(self.laplacian.indptr).max())
        shared = math.sqrt(int(np.bincount(self.nodes).max()))  # sensors on one node add up there
        steps = 2 * (row + 4) * (reach + math.sqrt(reach)) + coefficients.size + 64
        return steps * EPS * shared * math.hypot(*dual.tolist())

    @property
    def nonnegative(self) -> bool:
        """Diffused mass is never negative."""
        return True

    @cached_property
    def symmetric(self) -> bool:
        """Whether every node has a sensor, in order."""
        return np.array_equal(self.nodes, np.arange(self.space.size))

    @property
    def costly_columns(self) -> bool:
        """A column is one diffusion."""
        return True

    @property
    def column_entries(self) -> int:
        """A column is made on all nodes."""
        return self.space.size

    def to_json(self) -> dict[str, Any]:
        """The rate, and the weights of edges if they are not all 1."""
        weights = None if self.weights is None else self.weights.tolist()
        return {"rate": self.rate, "weights": weights}

    @classmethod
    def from_json(
        cls, data: dict[str, Any], space: SourceSpace, sensors: Sensors
    ) -> GraphDiffusion:
        """The operator that a site file describes."""
        graph = cast("Graph", space)
        return graph_diffusion(graph, data["rate"], sensors=sensors, weights=data["weights"])


def graph_diffusion(
    graph: Graph,
    rate: float,
    *,
    sensors: Sensors | npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> GraphDiffusion:
    """exp(-rate L) on a connected graph, read at every node unless sensors name some.

    Args:
        graph: A connected graph.
        rate: How far mass spreads, from 1e-20 to 1e20: time times conductance.
        sensors: Nodes that have a sensor; all of them unless given.
        weights: How strongly each of `graph.edges` conducts, from 1e-20 to 1e20; 1 unless given. Lengths of
            edges are distances only.

    Returns:
        The operator.

    Raises:
        InvalidParameter: The graph is in several parts, a sensor is on no node, or a number is out of range.

    >>> from sfumato.spaces import Graph
    >>> graph_diffusion(Graph([(0, 1), (1, 2)]), 0.3).shape
    (3, 3)
    """
    if graph.components().any():
        raise InvalidParameter(
            "a graph for diffusion must be connected, got one in several parts; nothing was built"
        )
    if sensors is None:
        placed = Sensors(np.arange(graph.size))
    else:
        placed = sensors if isinstance(sensors, Sensors) else Sensors(sensors)
    check_dimensions(placed, 1)
    for node in placed.positions[:, 0].tolist():
        if node != int(node) or not 0 <= node < graph.size:
            raise InvalidParameter(
                f"a sensor on a graph sits on a node from 0 to {graph.size - 1}, got {node:g}; "
                "nothing was built"
            )
    strengths = None
    if weights is not None:
        strengths = real_array("weights", weights)
        if (
            strengths.shape != (len(graph.edges),)
            or not ((strengths >= 1e-20) & (strengths <= 1e20)).all()
        ):
            raise InvalidParameter(
                f"weights must be one number between 1e-20 and 1e20 for each of {len(graph.edges)} edges; "
                "nothing was built"
            )
        read_only(strengths)
    return GraphDiffusion(graph, placed, time_within(rate, "rate"), strengths)
