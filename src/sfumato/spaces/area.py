"""Public areas: a grid over a map, an image or a plane, and what its coordinates mean on the ground."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, assert_never, get_args

import numpy as np

from sfumato._types import BoolArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.spaces.grid import MAX_LEVELS, Grid

Kind = Literal["degrees", "pixels", "plane"]
Bounds = tuple[float, float, float, float]

# Mean radius of the Earth in metres (IUGG): a degree of latitude is 111,195 m.
DEGREE = math.pi * 6_371_008.8 / 180
# Methods count cells from this level on: where the bounds are whole cells of it, none that is
# counted is cut.
FITTED_LEVEL = 2
# A cell is never longer one way than so many times the other.
MOST_STRETCHED = math.sqrt(2)


@dataclass(frozen=True, slots=True)
class Area:
    """The part of the world a map shows, chosen in public: `bounds` as asked and the grid laid over them.

    `kind` is "degrees" (x longitude, y latitude), "pixels" (y grows downward from the top of an
    image) or "plane" (any other units). The grid covers the bounds, and more where it was grown to
    make its cells nearly square on the ground; nothing outside the bounds is ever counted, and no
    noise is bought there.

    A plane may be that of a coordinate reference system: `crs` names it, and a step of 1 in the
    middle of the bounds is `metre` metres on the ground.
    """

    grid: Grid
    bounds: Bounds
    kind: Kind
    crs: str = ""
    metre: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidParameter(f"kind must be one of {get_args(Kind)}, got {self.kind!r}")
        if self.crs and not (self.kind == "plane" and 0 < self.metre < math.inf):
            raise InvalidParameter(
                "a reference system is that of a plane, with its metres on the ground, got "
                f"{self.crs} for {self.kind} and {self.metre:g}; no area was made"
            )
        west, south, east, north = self.grid.bounds
        inside = (
            west <= self.bounds[0] < self.bounds[2] <= east
            and south <= self.bounds[1] < self.bounds[3] <= north
        )
        if not inside:
            raise InvalidParameter(
                f"the grid must cover the bounds, got {self.grid.bounds} for {self.bounds}; no area was made"
            )

    @property
    def crosses_antimeridian(self) -> bool:
        """Whether the area goes on past 180 degrees east: there, longitude -179 is 181."""
        return self.kind == "degrees" and self.bounds[2] > 180

    @property
    def cell_size(self) -> tuple[float, float]:
        """Width and height of a cell on the ground: metres for degrees and reference systems.

        At the middle of the bounds.
        """
        width, height = self.grid.cell_width, self.grid.cell_height
        if self.crs:
            return width * self.metre, height * self.metre
        if self.kind != "degrees":
            return width, height
        return width * DEGREE * _shrink(self.bounds), height * DEGREE

    @property
    def unit(self) -> str:
        """The unit of `cell_size`: "m", "px", or "" for a plane without a reference system."""
        return "m" if self.crs else {"degrees": "m", "pixels": "px", "plane": ""}[self.kind]

    def window(self, level: int) -> tuple[int, int, int, int]:
        """The columns and rows at a level that the bounds touch: first column, first row, and the ends.

        There is at least one of each.
        """
        side = 1 << whole("level", level, low=0, high=self.grid.levels)
        west, south, east, north = self.grid.bounds
        low_x, low_y, high_x, high_y = self.bounds
        width, height = (east - west) / side, (north - south) / side
        first_column, end_column = _touched((low_x - west) / width, (high_x - west) / width, side)
        first_row, end_row = _touched((low_y - south) / height, (high_y - south) / height, side)
        return first_column, first_row, end_column, end_row

    def touches(self, level: int, codes: IntArray) -> BoolArray:
        """Which cells of a level, by Z-order code, the bounds touch."""
        first_column, first_row, end_column, end_row = self.window(level)
        columns, rows = self.grid.at_level(level).decode(codes)
        across = (columns >= first_column) & (columns < end_column)
        return np.asarray(across & (rows >= first_row) & (rows < end_row), dtype=np.bool_)


def area_in_degrees(bounds: Bounds, levels: int, *, square: bool = True) -> Area:
    """A map area given by longitudes and latitudes: west, south, east, north.

    West above east means the area crosses the antimeridian; one that would then be wider than half
    the Earth has them exchanged, and is refused. With `square` cells are as square in metres, at
    the middle latitude, as whole cells on the bounds allow: the shorter side of the grid is grown
    by whole cells, so that the bounds cut none, and a cell is at most 1.42 times as long one way as
    the other. It is moved back where it would reach beyond a pole. Without, the grid is the bounds.

    Args:
        bounds: West, south, east, north in degrees.
        levels: 2**levels cells to a side, 0 to 16.
        square: Whether cells are nearly square on the ground.

    Returns:
        The area.

    Raises:
        InvalidParameter: The bounds are no box on the Earth, or no square holds them.

    Example:
        >>> area = area_in_degrees((-74.3, 40.5, -73.7, 40.9), 8)
        >>> [round(length) for length in area.cell_size]
        [198, 174]
        >>> area_in_degrees((170, -20, -170, 0), 4).bounds
        (170.0, -20.0, 190.0, 0.0)

    """
    west, _, east, _ = _numbers(bounds)
    if -180 <= east < west <= 180 and west - east < 180:
        raise InvalidParameter(
            f"west {west:g} must be below east {east:g}: across the antimeridian the area would be "
            f"{360 + east - west:g} degrees wide, more than 180; no area was made"
        )
    return _in_degrees(bounds, levels, square=square)


def _in_degrees(bounds: Bounds, levels: int, *, square: bool) -> Area:
    west, south, east, north = _numbers(bounds)
    if not (-180 <= west <= 180 and -180 <= east <= 180):
        raise InvalidParameter(
            f"longitudes must lie in -180..180, got {west:g} and {east:g}; no area was made"
        )
    if not (-90 <= south < north <= 90):
        raise InvalidParameter(
            f"latitudes must rise from south to north in -90..90, got {south:g}, {north:g}; no area was made"
        )
    if west == east or (west, east) == (180, -180):
        raise InvalidParameter(
            f"west and east must differ, {west:g} and {east:g} are one meridian; no area was made"
        )
    if west > east:
        east += 360
    asked = (west, south, east, north)
    if not square:
        return Area(Grid(levels, asked), asked, "degrees")
    shrink = _shrink(asked)
    grown = _fitted(asked, 1 / max(shrink, 1e-3), highest=90.0)
    if not _on_earth(grown):
        # Between the poles is no room for whole cells: the bounds cut some.
        grown = _between_poles(_square(asked, 1 / max(shrink, 1e-3)), asked)
    if shrink < 0.01 or not _on_earth(grown):
        raise InvalidParameter(
            f"no square on the Earth holds {west:g},{south:g},{east:g},{north:g}; ask for stretched cells "
            "(`square=False`), or a smaller area; no area was made"
        )
    return Area(Grid(levels, grown), asked, "degrees")


def area_of_image(width: int, height: int, levels: int, *, square: bool = True) -> Area:
    """The area of an image in pixels, (0, 0) at its top left; no cell is cut by an edge of the image.

    Args:
        width: Pixels across.
        height: Pixels down.
        levels: 2**levels cells to a side, 0 to 16.
        square: Whether cells are nearly square, as in `area_in_degrees`; else the grid is the image.

    Returns:
        The area.

    Raises:
        InvalidParameter: The image has no pixels.

    Example:
        >>> area_of_image(1920, 1080, 4).grid.bounds
        (0.0, 0.0, 1920.0, 2160.0)

    """
    if width < 1 or height < 1:
        raise InvalidParameter(
            f"an image has at least 1 x 1 pixels, got {width} x {height}; no area was made"
        )
    asked = (0.0, 0.0, float(width), float(height))
    return Area(Grid(levels, _fitted(asked, 1.0) if square else asked), asked, "pixels")


def area_of_plane(
    bounds: Bounds, levels: int, *, square: bool = True, crs: str = "", metre: float = 0.0
) -> Area:
    """An area in any other units: low x, low y, high x, high y.

    Args:
        bounds: Low x, low y, high x, high y, finite.
        levels: 2**levels cells to a side, 0 to 16.
        square: Whether cells are nearly square, as in `area_in_degrees`.
        crs: The coordinate reference system of the plane, e.g. EPSG:3857; any units, if empty.
        metre: How many metres on the ground a step of 1 is in the middle, for a reference system.

    Returns:
        The area.

    Raises:
        InvalidParameter: The bounds are no box.

    """
    low_x, low_y, high_x, high_y = asked = _numbers(bounds)
    if not (low_x < high_x and low_y < high_y):
        raise InvalidParameter(f"bounds must rise from low to high, got {asked}; no area was made")
    grid = Grid(levels, _fitted(asked, 1.0) if square else asked)
    return Area(grid, asked, "plane", crs, metre)


def part_of(area: Area, bounds: Bounds, levels: int) -> Area:
    """The part of an area within bounds, of the same kind, its cells as square or stretched as before.

    Bounds are in the coordinates of the area, where 181 is a longitude that was crossed to. Where
    no square on the Earth holds them, cells are stretched.

    Args:
        area: The whole area.
        bounds: Low x, low y, high x, high y of the part.
        levels: 2**levels cells to a side of the part.

    Returns:
        The part.

    Raises:
        InvalidParameter: The bounds are no box.

    Example:
        >>> part_of(area_in_degrees((170, -20, -170, 0), 4), (181, -9, 183, -8), 4).bounds
        (-179.0, -9.0, -177.0, -8.0)

    """
    low_x, low_y, high_x, high_y = bounds
    width, height = area.cell_size
    square = max(width, height) <= 1.001 * MOST_STRETCHED * min(width, height)
    match area.kind:
        case "degrees":
            turned = (_turned(low_x, west=True), low_y, _turned(high_x, west=False), high_y)
            try:
                return _in_degrees(turned, levels, square=square)
            except InvalidParameter:
                return _in_degrees(turned, levels, square=False)
        case "pixels" | "plane":
            grid = Grid(levels, _fitted(bounds, 1.0) if square else bounds)
            return replace(area, grid=grid, bounds=bounds)
        case _:
            assert_never(area.kind)


def _turned(longitude: float, *, west: bool) -> float:
    """A longitude in -180..180; 180 itself stays where it begins or ends an area."""
    beyond = longitude >= 180 if west else longitude > 180
    return longitude - 360 if beyond else longitude


def _numbers(bounds: Bounds) -> Bounds:
    try:
        a, b, c, d = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"bounds must be four numbers, got {bounds!r}; no area was made"
        ) from None
    if not all(map(math.isfinite, (a, b, c, d))):
        raise InvalidParameter(f"bounds must be finite, got {bounds!r}; no area was made")
    return a, b, c, d


def _shrink(bounds: Bounds) -> float:
    """How much shorter a degree of longitude is than one of latitude, in the middle of the bounds."""
    return math.cos(math.radians((bounds[1] + bounds[3]) / 2))


def _fitted(bounds: Bounds, stretch: float, *, highest: float = math.inf) -> Bounds:
    """Bounds grown along their shorter side until cells are nearly square, by whole cells.

    A step in y is as long as `stretch` steps in x. The shorter side is a whole number of cells of
    FITTED_LEVEL, the one that makes them the most square; of a strip too narrow for that it is one
    cell of a finer level. It grows to the east, or to the north as far as y may be `highest`, and
    then to the south.
    """
    low_x, low_y, high_x, high_y = bounds
    width, height = high_x - low_x, high_y - low_y
    ratio = stretch * height / width
    few, many = _whole_cells(min(ratio, 1 / ratio))
    if few == many:
        return bounds
    if ratio > 1:
        return low_x, low_y, low_x + width * (many / few), high_y
    row = height / few
    room = math.floor(max(0.0, min(many - few, (highest - high_y) / row + 1e-9)))
    below = many - few - room
    return low_x, low_y - below * row, high_x, max(high_y, low_y + (many - below) * row)


def _whole_cells(ratio: float) -> tuple[float, int]:
    """How many cells of how many the shorter side is, if it is `ratio` of the longer one."""
    level = FITTED_LEVEL
    while ratio * 2**level * MOST_STRETCHED < 1 and level < MAX_LEVELS:
        level += 1
    cells = ratio * 2**level
    if cells * MOST_STRETCHED < 1:  # a thread: a part of one cell
        return cells, 2**level
    few = max(1, math.floor(cells))
    return few + (cells * cells > few * (few + 1)), 2**level


def _on_earth(grid: Bounds) -> bool:
    return grid[1] >= -90 and grid[3] <= 90 and grid[2] - grid[0] <= 360


def _square(bounds: Bounds, stretch: float) -> Bounds:
    """Bounds grown to both sides until width = stretch * height."""
    low_x, low_y, high_x, high_y = bounds
    width, height = high_x - low_x, high_y - low_y
    more_x, more_y = max(0.0, stretch * height - width) / 2, max(0.0, width / stretch - height) / 2
    return low_x - more_x, low_y - more_y, high_x + more_x, high_y + more_y


def _between_poles(grown: Bounds, asked: Bounds) -> Bounds:
    """Grown bounds moved north or south until they end at a pole; they stay around what was asked."""
    west, south, east, north = grown
    height = north - south
    if height > 180:
        return grown
    if south < -90:
        return west, -90.0, east, max(height - 90, asked[3])
    if north > 90:
        return west, min(90 - height, asked[1]), east, 90.0
    return grown


def _touched(low: float, high: float, side: int) -> tuple[int, int]:
    """The first cell from low to high, both in cells from the start of a line, and the one after the last."""
    # A sliver of a cell under a millionth, left by rounding, is no cell, unless there is nothing
    # else.
    first, end = math.floor(low + 1e-6), min(side, math.ceil(high - 1e-6))
    if first < end:
        return first, end
    first = min(side - 1, math.floor(low))
    return first, min(side, max(first + 1, math.ceil(high)))
