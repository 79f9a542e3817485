"""Square grids whose cells are numbered along the Z-order curve, so that a quadtree is integer division."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import Scalar, whole
from sfumato.errors import InvalidParameter
from sfumato.spaces._apart import apart

MAX_LEVELS = 16
OUTSIDE = -1

_SPREAD = ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555))
_GATHER = ((1, 0x33333333), (2, 0x0F0F0F0F), (4, 0x00FF00FF), (8, 0x0000FFFF))


@dataclass(frozen=True, slots=True)
class Grid:
    """A map area cut into 2**levels by 2**levels cells, with every coarser level of the quadtree.

    `bounds` are west, south, east, north. A cell's code interleaves the bits of its column (even
    bits) and its row (odd bits); columns grow eastward and rows northward, so the four children of
    a cell are, in order, its south-west, south-east, north-west and north-east quarter. The metric
    is l1 between cell centers in the units of the bounds: a step east costs a cell's width, a step
    north its height.

    >>> grid = Grid(1, bounds=(0, 0, 8, 2))
    >>> grid.codes_of_image()
    array([[0, 1],
           [2, 3]])
    >>> grid.cells_of([1.0, 4.0, 8.0, 9.0], [0.5, 0.0, 2.0, 1.0])
    array([ 0,  1,  3, -1])
    >>> grid.distance(0, 3), grid.neighbors(0)
    (5.0, array([1, 2]))
    """

    levels: int
    bounds: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)
    kind: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        levels = whole("levels", self.levels, low=0, high=MAX_LEVELS)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "bounds", _checked_bounds(self.bounds, levels))

    @property
    def metric(self) -> str:
        """What a neighbor relation calls this distance."""
        return "grid-l1"

    @property
    def side(self) -> int:
        """How many cells lie along one side."""
        return 1 << self.levels

    @property
    def size(self) -> int:
        """How many cells there are: 4**levels."""
        return 1 << 2 * self.levels

    @property
    def cell_width(self) -> float:
        """What a step east costs."""
        west, _, east, _ = self.bounds
        return (east - west) / self.side

    @property
    def cell_height(self) -> float:
        """What a step north costs."""
        _, south, _, north = self.bounds
        return (north - south) / self.side

    @property
    def diameter(self) -> float:
        """The distance between the cells of two opposite corners."""
        return self.distance(0, self.size - 1)

    def at_level(self, level: int) -> Grid:
        """The same area cut into the 4**level cells of a coarser level."""
        return Grid(whole("level", level, low=0, high=self.levels), self.bounds)

    def distance(self, i: int, j: int) -> float:
        """How far apart the centers of two cells are in l1."""
        pair = [whole("cell", code, low=0, high=self.size - 1) for code in (i, j)]
        columns, rows = self.decode(pair)
        across, up = abs(int(columns[0] - columns[1])), abs(int(rows[0] - rows[1]))
        return across * self.cell_width + up * self.cell_height

    def neighbors(self, i: int) -> IntArray:
        """The cells that share a side with cell i: four, or fewer at the border."""
        column, row = self.decode(whole("cell", i, low=0, high=self.size - 1))
        columns, rows = column + np.array([-1, 1, 0, 0]), row + np.array([0, 0, -1, 1])
        inside = (columns >= 0) & (columns < self.side) & (rows >= 0) & (rows < self.side)
        return np.sort(self.encode(columns[inside], rows[inside]))

    def encode(self, columns: npt.ArrayLike, rows: npt.ArrayLike) -> IntArray:
        """The codes of cells given by column and row; the two arrays broadcast."""
        return _spread(self._checked("columns", columns, self.side)) | (
            _spread(self._checked("rows", rows, self.side)) << 1
        )

    def decode(self, codes: npt.ArrayLike) -> tuple[IntArray, IntArray]:
        """The columns and the rows of cells given by code."""
        codes = self._checked("codes", codes, self.size)
        return _gather(codes), _gather(codes >> 1)

    @staticmethod
    def parent(codes: npt.ArrayLike) -> IntArray:
        """The cells one level up that hold these; outside (-1) stays outside."""
        return Grid.ancestor(codes, 1)

    @staticmethod
    def ancestor(codes: npt.ArrayLike, levels_up: int) -> IntArray:
        """The cells levels_up levels up that hold these; outside (-1) stays outside.

        A code does not know its level: the caller keeps level - levels_up at 0 or more.

        >>> Grid.ancestor([0, 27, -1], 1)
        array([ 0,  6, -1])
        """
        return _integers("codes", codes) >> 2 * whole(
            "levels_up", levels_up, low=0, high=MAX_LEVELS
        )

    @staticmethod
    def children(codes: npt.ArrayLike) -> IntArray:
        """The four quarters of each cell, one level down, along a new last axis; outside (-1) stays outside.

        >>> Grid.children([6])
        array([[24, 25, 26, 27]])
        """
        codes = _integers("codes", codes)[..., None]
        return np.where(codes < 0, OUTSIDE, 4 * codes + np.arange(4))

    def cells_of(self, x: npt.ArrayLike, y: npt.ArrayLike) -> IntArray:
        """The cell each point falls in, or -1 for a point that is outside, NaN, infinite or masked.

        Cells hold their west and south edges; the far edges of the area belong to the last cells.
        Points may be private, so their values never cause an error or a warning; only types and
        shapes do.
        """
        x, y = _coordinates(x), _coordinates(y)
        if x.shape != y.shape:
            raise InvalidParameter("x and y must have the same shape; no cell was assigned")
        west, south, east, north = self.bounds
        inside = (west <= x) & (x <= east) & (south <= y) & (y <= north)
        column_edges, row_edges = self.edges()
        codes = self.encode(
            _slot(column_edges, np.where(inside, x, west)),
            _slot(row_edges, np.where(inside, y, south)),
        )
        return np.where(inside, codes, OUTSIDE)

    def edges(self) -> tuple[FloatArray, FloatArray]:
        """Where columns and rows begin and end: side + 1 increasing numbers each.

        Edge k is the double west + k * cell_width, the last one east exactly; `cells_of` and
        `boxes` use these same numbers, so that boxes tile the area without gap or overlap.
        """
        west, south, east, north = self.bounds
        steps = np.arange(self.side + 1, dtype=np.float64)
        column_edges, row_edges = west + steps * self.cell_width, south + steps * self.cell_height
        column_edges[-1], row_edges[-1] = east, north
        return column_edges, row_edges

    def boxes(self, codes: npt.ArrayLike) -> FloatArray:
        """The west, south, east and north edges of cells, along a new last axis."""
        columns, rows = self.decode(codes)
        x, y = self.edges()
        return np.stack([x[columns], y[rows], x[columns + 1], y[rows + 1]], axis=-1)

    def centers(self, codes: npt.ArrayLike) -> FloatArray:
        """The x and y of the middle of cells, along a new last axis."""
        columns, rows = self.decode(codes)
        west, south, _, _ = self.bounds
        x, y = west + (columns + 0.5) * self.cell_width, south + (rows + 0.5) * self.cell_height
        return np.stack([x, y], axis=-1)

    def codes_of_image(self) -> IntArray:
        """The code of the cell at [row, column], row 0 at the south: an index from pictures to codes."""
        line = np.arange(self.side)
        return self.encode(line[None, :], line[:, None])

    def image(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Values by code as a picture [row, column]; row 0 is the south, so draw with origin="lower".

        >>> Grid(1).image(np.array([10, 11, 12, 13]))
        array([[10, 11],
               [12, 13]])
        """
        if values.shape != (self.size,):
            raise InvalidParameter(
                f"values must have one entry for each of {self.size} cells, got shape {values.shape}; "
                "no image was made"
            )
        return values[self.codes_of_image()]

    def values_of_image(self, image: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Values by code from a picture [row, column] with row 0 at the south: undoes `image`."""
        if image.shape != (self.side, self.side):
            raise InvalidParameter(
                f"image must be {self.side} x {self.side}, got shape {image.shape}; no values were taken"
            )
        values = np.empty(self.size, dtype=image.dtype)
        values[self.codes_of_image()] = image
        return values

    def distances_from(self, i: int) -> FloatArray:
        """How far every cell is from cell i, by code."""
        columns, rows = self.decode(np.arange(self.size))
        column, row = self.decode(whole("cell", i, low=0, high=self.size - 1))
        wide, high = np.abs(columns - column), np.abs(rows - row)
        return np.asarray(wide * self.cell_width + high * self.cell_height)

    def places(self, cells: IntArray) -> FloatArray:
        """The centers of some cells: [cells, 2]."""
        return self.centers(cells).reshape(-1, 2)

    def distances_between(self, places: FloatArray, others: FloatArray) -> FloatArray:
        """How far each of some places [n, 2] is from each of others [m, 2], in l1."""
        return apart(places, others, "l1")

    def nearest_cells(self, places: FloatArray) -> IntArray:
        """The cell that each place [n, 2] lies in; for one outside, the cell at the border nearest to it."""
        west, south, east, north = self.bounds
        return self.cells_of(places[:, 0].clip(west, east), places[:, 1].clip(south, north))

    def describe(self) -> str:
        """The grid in words."""
        west, south, east, north = self.bounds
        across = f"{east - west:g} wide and {north - south:g} high"
        return f"a grid of {self.side} x {self.side} cells, {across}, l1 metric"

    def to_json(self) -> dict[str, Any]:
        """Its levels and bounds."""
        return {"kind": self.kind, "levels": self.levels, "bounds": list(self.bounds)}

    @staticmethod
    def from_json(data: Any) -> Grid:
        """The grid a JSON object states."""
        return Grid(data["levels"], tuple(data["bounds"]))

    def _checked(self, name: str, values: npt.ArrayLike, end: int) -> IntArray:
        array = _integers(name, values)
        if array.size and (array.min() < 0 or array.max() >= end):
            # Codes may come from private points: the message states the rule and keeps the value to
            # itself.
            raise InvalidParameter(f"{name} must be from 0 to {end - 1}; nothing was computed")
        return array


def _checked_bounds(bounds: object, levels: int) -> tuple[float, float, float, float]:
    try:
        west, south, east, north = (float(bound) for bound in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"bounds must be four numbers west, south, east, north, got {bounds!r}; no grid was built"
        ) from None
    if not all(map(math.isfinite, (west, south, east, north, (east - west) + (north - south)))):
        raise InvalidParameter(
            f"bounds must span finite lengths, got {bounds!r}; no grid was built"
        )
    if not (west < east and south < north):
        raise InvalidParameter(
            f"bounds must have west < east and south < north, got {bounds!r}; no grid was built"
        )
    for low, high in ((west, east), (south, north)):
        # Edges are off by a few roundings at most; sixteen keep them apart and centers inside.
        resolution = max(math.ulp(max(abs(low), abs(high))), float(np.finfo(np.float64).tiny))
        if (high - low) / (1 << levels) < 16 * resolution:
            raise InvalidParameter(
                f"cells must be wider than the rounding of a double, got 2**{levels} cells "
                f"from {low} to {high}; no grid was built"
            )
    return west, south, east, north


def _integers(name: str, values: npt.ArrayLike) -> IntArray:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidParameter(
            f"{name} must be whole numbers, got type {array.dtype}; nothing was computed"
        )
    return array.astype(np.int64)


def _coordinates(values: npt.ArrayLike) -> FloatArray:
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InvalidParameter("x and y must be arrays of real numbers; no cell was assigned")
    # A wide float may overflow in the cast; infinity is outside, and a warning would tell of a row.
    with np.errstate(all="ignore"):
        doubles = array.astype(np.float64)
    # DuckDB hands out NULL as a masked entry, with any number under the mask.
    return doubles.filled(np.nan) if isinstance(doubles, np.ma.MaskedArray) else doubles


def _slot(edges: FloatArray, points: FloatArray) -> IntArray:
    """The last k with edges[k] <= point; a point on the last edge counts to the slot before it."""
    last = edges.size - 2
    width = (edges[-1] - edges[0]) / (last + 1)
    slots = np.minimum(((points - edges[0]) / width).astype(np.int64), last)
    # Edges are wider apart than their rounding, so the quotient is at most one slot off.
    slots = slots - (points < edges[slots])
    slots = slots + (points >= edges[slots + 1])
    return np.asarray(np.minimum(slots, last), dtype=np.int64)


def _spread(numbers: IntArray) -> IntArray:
    """Move bit k of a 16-bit number to bit 2k."""
    for shift, mask in _SPREAD:
        numbers = (numbers | (numbers << shift)) & mask
    return numbers


def _gather(codes: IntArray) -> IntArray:
    """Move bit 2k back to bit k and forget the odd bits."""
    codes = codes & 0x55555555
    for shift, mask in _GATHER:
        codes = (codes | (codes >> shift)) & mask
    return codes
