"""The protocol of operators: what a linear map from sources to readings says of itself.

A new operator is a frozen value that inherits from `Operator`, gives `kind`, `space`, `sensors`, `columns`,
`to_json` and `from_json`, and is registered with `register_operator`. Everything else has a default that works
from its columns; an operator that knows better overrides it. One default does not hold everywhere: columns do
not say how readings change between cells, so beside a graph an operator gives `changes` too, or says that its
sources are nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeGuard

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.sensors import Sensors

if TYPE_CHECKING:
    from scipy import sparse

    from sfumato.sensing.model.changes import Largest
    from sfumato.spaces import Graph, Grid, Line, Points

    SourceSpace = Line | Grid | Graph | Points

CHUNK = 1 << 22
"""Entries of a matrix that are formed at a time."""
KEPT_PARTS = 16
"""Operators to some of the sensors that are kept, where sensors miss rounds."""


@dataclass(frozen=True, slots=True, eq=False)
class Diffusion:
    """exp(-rate L) between the nodes of a graph, read at some of them: what proofs on a graph go by.

    Attributes:
        laplacian: L, weighted degrees minus weights, in compressed rows.
        rate: How far mass spreads.
        nodes: The nodes that have a sensor, in the order of the readings.
        spread: exp(-rate L) times a vector, on all nodes.
    """

    laplacian: sparse.csr_array[np.float64]
    rate: float
    nodes: IntArray
    spread: Callable[[FloatArray], FloatArray]


class Operator(Protocol):
    """A linear map from masses on the cells of a space to the readings of sensors.

    Attributes:
        kind: Its name in site files, and in the registry.
        space: Where sources may be: a line, a grid, a graph or points.
        sensors: Names and places of the sensors, in the order of the readings.
        sources_at: "cells" if sources are at cells and nowhere between them, so that the columns tell all;
            "anywhere" unless said, and then `changes` is the operator's own (but on a graph, whose nodes
            are all places there are).
    """

    kind: ClassVar[str]
    sources_at: ClassVar[str] = "anywhere"
    space: SourceSpace
    sensors: Sensors

    # What every operator gives.

    def columns(self, cells: npt.ArrayLike) -> FloatArray:
        """What one unit in each of these cells reads: sensors by cells. This defines the operator."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Its parameters, for a site file; the space, the sensors and the kind are saved beside them."""
        ...

    @classmethod
    def from_json(cls, data: dict[str, Any], space: SourceSpace, sensors: Sensors) -> Operator:
        """The operator that `to_json` described."""
        ...

    # The map.

    @property
    def shape(self) -> tuple[int, int]:
        """Sensors, cells."""
        return len(self.sensors), self.space.size

    def readings(self, sources: npt.ArrayLike) -> FloatArray:
        """What the sensors read of these masses, without noise."""
        m, n = self.shape
        masses = masses_of(sources, n)
        cells = np.flatnonzero(masses)
        out = np.zeros(m)
        for part in np.array_split(cells, max(1, math.ceil(m * cells.size / CHUNK))):
            out += self.columns(part) @ masses[part]
        return out

    def adjoint(self, dual: npt.ArrayLike) -> FloatArray:
        """The transposed map: one number for each cell."""
        m, n = self.shape
        z = duals_of(dual, m)
        parts = np.array_split(np.arange(n), max(1, math.ceil(m * n / CHUNK)))
        return np.concatenate([z @ self.columns(part) for part in parts])

    def apply(self, block: FloatArray) -> FloatArray:
        """The readings of several source vectors at once: cells by vectors in, sensors by vectors out."""
        return np.stack([self.readings(column) for column in block.T], axis=1)

    def apply_adjoint(self, block: FloatArray) -> FloatArray:
        """The adjoint of several dual vectors at once: sensors by vectors in, cells by vectors out."""
        return np.stack([self.adjoint(column) for column in block.T], axis=1)

    def gram(self, cells: IntArray) -> FloatArray:
        """Inner products of the columns of these cells."""
        columns = self.columns(cells)
        return columns.T @ columns

    def dense(self) -> FloatArray:
        """The whole matrix, sensors by cells, from its columns: the adjoint is not trusted."""
        n = self.space.size
        parts = np.array_split(np.arange(n), max(1, math.ceil(n * self.column_entries / CHUNK)))
        return np.concatenate([self.columns(part) for part in parts], axis=1)

    # Variants: other sensors, another time.

    def take(self, rows: IntArray) -> Operator:
        """The operator to some of its sensors, by their numbers; all of its columns as a matrix by default.

        Where sources stand between cells the part moves as far as the whole says of it, not as far as
        its columns do.
        """
        from sfumato.sensing.model.operators.matrix import MatrixPart, linear

        columns = self.columns(np.arange(self.space.size))[rows]
        part = linear(columns, self.space, sensors=some_sensors(self.sensors, rows))
        if columns_tell_all(self):
            return part
        return MatrixPart(part.space, part.sensors, part.map, self, rows)

    @property
    def time(self) -> float | None:
        """The diffusion time or rate, None where there is none."""
        return None

    @property
    def time_name(self) -> str:
        """What `time` is called."""
        return "diffusion time"

    def with_time(self, time: float) -> Self:  # noqa: ARG002
        """The same operator with another time."""
        raise InvalidParameter(
            f"a site by a {self.kind} has no diffusion time; nothing was computed"
        )

    def sensor_count(self, count: float) -> int | None:  # noqa: ARG002
        """How many sensors such a site can have, about so many; None where it has its own sensors only."""
        return None

    def with_sensors(self, count: int) -> Operator:  # noqa: ARG002
        """The same operator with so many sensors, placed evenly."""
        raise InvalidParameter(
            f"a site by a {self.kind} has its own sensors; nothing was simulated"
        )

    # Sensitivity.

    def changes(self, *, over_distance: bool) -> Largest:
        """The largest change of readings when a unit moves, over the way it moves; or when two cells swap.

        With `over_distance` it is that of one unit that moves anywhere, over the distance. Without, it is
        that of sources of mass up to 1 in two cells one step apart that change places, each keeping its
        place in its cell: of two units that move a step, where they stand at two places of the cells.

        Noise is calibrated to it, so it may be too large and must not be too small: it counts every place
        where a source may be. By default from the columns of all pairs of neighboring cells, which is
        refused where sources may be between them.
        """
        from sfumato.sensing.model.changes import column_changes

        if not columns_tell_all(self):
            raise InvalidParameter(
                f"columns do not tell how readings change between cells: the operator {self.kind!r} must "
                'override `changes`, or say `sources_at = "cells"` if sources are nowhere else; no '
                "sensitivity was computed, nothing was charged"
            )
        return column_changes(self, over_distance=over_distance)

    def l1_changes(self, *, over_distance: bool) -> float:
        """A bound of what all sensors together change in l1 that is tighter than `changes` gives; or infinity.

        Laplace noise is calibrated to the least of both, so it must not be too small either. Whoever overrides
        `changes` overrides this too, or it is not asked.
        """
        from sfumato.sensing.model.l1_changes import column_l1_changes

        if not columns_tell_all(self):
            return math.inf
        return column_l1_changes(self, over_distance=over_distance)

    def sampled_changes(self, *, over_distance: bool) -> FloatArray | None:  # noqa: ARG002
        """Changes of single sensors at some places (sensors by places), to compare sets; None to use cells."""
        return None

    def largest_reading(self) -> float:
        """What a source of mass 1 adds at most to any reading, wherever it and the sensor stand."""
        cells = np.arange(self.space.size)
        return max(float(self.columns(some).max()) for some in column_chunks(self, cells))

    # What solvers and diagnostics may rely on.

    @property
    def nodes(self) -> IntArray | None:
        """The nodes of the graph that have a sensor; None where positions of sensors are coordinates."""
        return None

    @property
    def in_space(self) -> bool:
        """Whether positions of sensors are places of the space, so that its distances hold between them."""
        return False

    @property
    def kernel_width(self) -> float | None:
        """The deviation sqrt(2T) of a heat kernel that is known anywhere, also between cells; else None.

        Then `time` is T, and a unit at x reads g(s - x) at a sensor at s, g the density of a Gaussian of
        that deviation along every axis.
        """
        return None

    @property
    def factors(self) -> tuple[FloatArray, FloatArray] | None:
        """On a grid, what columns and what rows read (sensors by either), if entries are their products."""
        return None

    @property
    def diffusion(self) -> Diffusion | None:
        """What the operator is on a graph, if it is exp(-rate L) there: then proofs are of that; else None."""
        return None

    @property
    def holds_matrix(self) -> bool:
        """Whether the whole matrix is held, so that `dense` makes nothing."""
        return False

    def adjoint_rounding(
        self,
        dual: FloatArray,  # noqa: ARG002
        level: float,  # noqa: ARG002
    ) -> FloatArray | float | None:
        """How far `adjoint` is at most from what the columns give, beside a level; None where nobody knows."""
        return None

    @property
    def nonnegative(self) -> bool:
        """Whether no entry is negative, by construction."""
        return False

    @property
    def symmetric(self) -> bool:
        """Whether the matrix is symmetric and positive definite: a diffusion that is read everywhere."""
        return False

    @property
    def constant(self) -> bool:
        """Whether its entries can never change, so that what was computed from them may be kept."""
        return True

    @property
    def costly_columns(self) -> bool:
        """Whether a column takes far longer to make than to use."""
        return False

    @property
    def column_entries(self) -> int:
        """How many numbers are held for each column while it is made."""
        return len(self.sensors)


def column_chunks(operator: Operator, cells: IntArray) -> Iterator[IntArray]:
    """The cells in turn, as many as have columns of CHUNK entries; none of none."""
    step = max(1, CHUNK // operator.column_entries)
    for begin in range(0, cells.size, step):
        yield cells[begin : begin + step]


def columns_tell_all(operator: Operator) -> bool:
    """Whether sources are at cells alone: as the operator says, or because nodes are all places there are."""
    from sfumato.spaces import Graph

    return operator.sources_at == "cells" or isinstance(operator.space, Graph)


def part_of(operator: Operator, rows: IntArray) -> Operator:
    """The operator to some of its sensors, by their numbers; itself for all of them in order.

    Args:
        operator: The operator.
        rows: Numbers of the sensors to keep, from 0, in the order wanted.

    Returns:
        An operator with one row for each number, on the same cells.
    """
    whole = np.array_equal(rows, np.arange(operator.shape[0]))
    return operator if whole else operator.take(rows)


def parts_of(operator: Operator) -> Callable[[tuple[int, ...]], Operator]:
    """Its parts by the numbers of their sensors; the last few are kept, with what was computed for them.

    For rounds that sensors miss.

    Args:
        operator: The operator to all sensors.

    Returns:
        `part_of` this operator, which gives the same value for the same sensors.
    """

    @lru_cache(maxsize=KEPT_PARTS)
    def part(rows: tuple[int, ...]) -> Operator:
        return part_of(operator, np.array(rows, dtype=np.int64))

    return part


def is_operator(value: object) -> TypeGuard[Operator]:
    """Whether a value is an operator rather than an array or a data frame.

    What has `columns`, a `space` and `sensors` is taken for one.
    """
    return hasattr(value, "columns") and hasattr(value, "space") and hasattr(value, "sensors")


def some_sensors(sensors: Sensors, rows: IntArray) -> Sensors:
    """The sensors of these numbers, in their order."""
    return Sensors(sensors.positions[rows], [sensors.names[row] for row in rows.tolist()])


def masses_of(sources: npt.ArrayLike, size: int) -> FloatArray:
    """A vector of masses, one for each cell."""
    return _vector(sources, size, name="sources", each="cells")


def duals_of(dual: npt.ArrayLike, size: int) -> FloatArray:
    """A dual vector, one number for each sensor."""
    return _vector(dual, size, name="a dual vector", each="sensors")


def time_within(value: float, name: str) -> float:
    """A diffusion time or rate in the range for which bounds on rounding are proved."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    # Beyond these, squares and heights leave the doubles, and bounds on their rounding would not
    # hold.
    if not 1e-20 <= number <= 1e20:
        raise InvalidParameter(
            f"{name} must lie between 1e-20 and 1e20, got {value}; nothing was built"
        )
    return number


def _vector(values: npt.ArrayLike, size: int, *, name: str, each: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise InvalidParameter(
            f"{name} must be one number for each of {size} {each}, got shape {array.shape}; "
            "nothing was computed"
        )
    return array
