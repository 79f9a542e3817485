"""Any linear map: a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator, duals_of, masses_of
from sfumato.sensing.model.sensors import Sensors

if TYPE_CHECKING:
    from sfumato.sensing.model.changes import Largest
    from sfumato.sensing.model.operators.protocol import SourceSpace

MAX_ENTRIES = 4_000_000


@dataclass(frozen=True, eq=False)
class Matrix(Operator):
    """Any linear map: a matrix or a scipy LinearOperator, sensors by cells of a space.

    Its sources are where its columns were measured: it knows nothing of places between them.
    """

    space: SourceSpace
    sensors: Sensors
    map: Any
    kind: ClassVar[str] = "matrix"
    sources_at: ClassVar[str] = "cells"

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
        return np.asarray(self.map @ masses_of(sources, self.space.size), dtype=np.float64)

    def adjoint(self, dual: npt.ArrayLike) -> FloatArray:
        """The transposed map: one number for each cell."""
        return np.asarray(self.map.T @ duals_of(dual, len(self.sensors)), dtype=np.float64)

    def apply(self, block: FloatArray) -> FloatArray:
        """The readings of several source vectors at once."""
        return np.asarray(self.map @ block, dtype=np.float64)

    def apply_adjoint(self, block: FloatArray) -> FloatArray:
        """The adjoint of several dual vectors at once."""
        return np.asarray(self.map.T @ block, dtype=np.float64)

    def dense(self) -> FloatArray:
        """The whole matrix, by its forward map: the adjoint is not trusted."""
        if isinstance(self.map, np.ndarray):
            return np.asarray(self.map, dtype=np.float64)
        return Operator.dense(self)

    @property
    def holds_matrix(self) -> bool:
        """An array is held; of a LinearOperator columns are made one by one."""
        return isinstance(self.map, np.ndarray)

    @property
    def constant(self) -> bool:
        """A map that only its owner knows may have other data tomorrow."""
        return isinstance(self.map, np.ndarray)

    @property
    def column_entries(self) -> int:
        """A map makes its columns from units of as many numbers as there are cells."""
        return len(self.sensors) if isinstance(self.map, np.ndarray) else max(self.shape)

    def to_json(self) -> dict[str, Any]:
        """All entries, row by row; a site file holds at most four million."""
        if math.prod(self.shape) > MAX_ENTRIES:
            raise InvalidParameter(
                f"a site file holds a matrix of at most {MAX_ENTRIES} entries, got "
                f"{math.prod(self.shape)}; work in Python instead"
            )
        return {"rows": self.columns(np.arange(self.space.size)).tolist()}

    @classmethod
    def from_json(cls, data: dict[str, Any], space: SourceSpace, sensors: Sensors) -> Matrix:
        """The operator that a site file describes."""
        return linear(data["rows"], space, sensors=sensors)


@dataclass(frozen=True, eq=False)
class MatrixPart(Matrix):
    """Some rows of an operator whose sources stand between cells: a matrix that moves as the whole does."""

    whole: Operator
    rows: IntArray
    sources_at: ClassVar[str] = "anywhere"

    def take(self, rows: IntArray) -> Operator:
        """The whole operator to some of these sensors."""
        return self.whole.take(self.rows[rows])

    def changes(self, *, over_distance: bool) -> Largest:
        """At most what the whole operator says of these sensors."""
        from sfumato.sensing.model.changes import part_changes

        return part_changes(self.whole, self.rows, over_distance=over_distance)

    def to_json(self) -> dict[str, Any]:
        """None: read again it would be a matrix, whose sources are at cells alone."""
        raise InvalidParameter(
            f"some sensors of an operator {self.whole.kind!r} make no site, because their matrix does not "
            f"tell how readings change between cells; make a {self.whole.kind!r} with these sensors; "
            "nothing was written"
        )


def linear(
    matrix: Any,
    space: SourceSpace,
    *,
    sensors: Sensors | npt.ArrayLike | None = None,
) -> Matrix:
    """Any matrix, or scipy LinearOperator, with the space its sources live on.

    Args:
        matrix: Finite numbers, sensors by cells: an array, a sparse matrix or a LinearOperator.
        space: Where sources may be; one column of the matrix for each of its cells.
        sensors: Names or places of the sensors, one for each row; numbered unless given.

    Returns:
        The operator.

    Raises:
        InvalidParameter: The matrix has another shape, or an entry that is not finite.

    >>> from sfumato.spaces import Line
    >>> linear([[1, 0], [0.5, 0.5]], Line(2)).readings([1, 2])
    array([1. , 1.5])
    """
    if hasattr(matrix, "matvec"):
        held = matrix
    else:
        # A sparse matrix, of whatever library, can be made an array.
        held = real_array("matrix", matrix.toarray() if hasattr(matrix, "toarray") else matrix)
        if not np.isfinite(held).all():
            raise InvalidParameter(
                "matrix entries must be finite, got one that is not; nothing was built"
            )
        read_only(held)
    if len(held.shape) != 2 or held.shape[1] != space.size or held.shape[0] < 1:
        raise InvalidParameter(
            f"matrix must have one column for each of {space.size} cells, got shape {tuple(held.shape)}; "
            "nothing was built"
        )
    if sensors is None:
        placed = Sensors(np.arange(held.shape[0]))
    else:
        placed = sensors if isinstance(sensors, Sensors) else Sensors(sensors)
    if len(placed) != held.shape[0]:
        raise InvalidParameter(
            f"matrix must have one row for each of {len(placed)} sensors, got {held.shape[0]}; "
            "nothing was built"
        )
    return Matrix(space, placed, held)
