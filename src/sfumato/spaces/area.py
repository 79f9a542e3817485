"""Public areas: a grid over a map, an image or a plane, and what its coordinates mean on the ground."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, assert_never, get_args

from sfumato.errors import InvalidParameter
from sfumato.spaces.grid import Grid

Kind = Literal["degrees", "pixels", "plane"]
Bounds = tuple[float, float, float, float]

# Mean radius of the Earth in metres (IUGG): a degree of latitude is 111,195 m.
DEGREE = math.pi * 6_371_008.8 / 180


@dataclass(frozen=True, slots=True)
class Area:
    """The part of the world a map shows, chosen in public: `bounds` as asked and the grid laid over them.

    `kind` is "degrees" (x longitude, y latitude), "pixels" (y grows downward from the top of an
    image) or "plane" (any other units). The grid covers the bounds, and more where it was grown to
    make its cells square on the ground; nothing outside the bounds is ever counted.
    """

    grid: Grid
    bounds: Bounds
    kind: Kind

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidParameter(f"kind must be one of {get_args(Kind)}, got {self.kind!r}")
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
        """Width and height of a cell on the ground: metres for degrees (at the middle latitude)."""
        width, height = self.grid.cell_width, self.grid.cell_height
        if self.kind != "degrees":
            return width, height
        return width * DEGREE * _shrink(self.bounds), height * DEGREE

    @property
    def unit(self) -> str:
        """The unit of `cell_size`: "m", "px", or "" for a plane."""
        return {"degrees": "m", "pixels": "px", "plane": ""}[self.kind]

    def window(self, level: int) -> tuple[int, int, int, int]:
        """The columns and rows at a level that the bounds touch: first column, first row, and the ends.

        There is at least one of each.
        """
        grid = self.grid.at_level(level)
        west, south, _, _ = grid.bounds
        low_x, low_y, high_x, high_y = self.bounds
        first_column, end_column = _touched(
            (low_x - west) / grid.cell_width, (high_x - west) / grid.cell_width, grid.side
        )
        first_row, end_row = _touched(
            (low_y - south) / grid.cell_height, (high_y - south) / grid.cell_height, grid.side
        )
        return first_column, first_row, end_column, end_row


def area_in_degrees(bounds: Bounds, levels: int, *, square: bool = True) -> Area:
    """A map area given by longitudes and latitudes: west, south, east, north; cells square on the ground.

    West above east means the area crosses the antimeridian; one that would then be wider than half
    the Earth has them exchanged, and is refused. With `square` the shorter side of the
    grid is grown to both sides, at the scale of the middle latitude, until its cells are square in
    metres, and moved back where it would reach beyond a pole; without, the grid is the bounds.

    Args:
        bounds: West, south, east, north in degrees.
        levels: 2**levels cells to a side, 0 to 16.
        square: Whether cells are square on the ground.

    Returns:
        The area.

    Raises:
        InvalidParameter: The bounds are no box on the Earth, or no square holds them.

    Example:
        >>> area = area_in_degrees((-74.3, 40.5, -73.7, 40.9), 8)
        >>> [round(length) for length in area.cell_size]
        [198, 198]
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
    grown = _between_poles(_square(asked, 1 / shrink), asked)
    if grown[1] < -90 or grown[3] > 90 or grown[2] - grown[0] > 360 or shrink < 0.01:
        raise InvalidParameter(
            f"no square on the Earth holds {west:g},{south:g},{east:g},{north:g}; ask for stretched cells "
            "(`square=False`), or a smaller area; no area was made"
        )
    return Area(Grid(levels, grown), asked, "degrees")


def area_of_image(width: int, height: int, levels: int) -> Area:
    """The area of an image in pixels, (0, 0) at its top left; cells are square.

    Args:
        width: Pixels across.
        height: Pixels down.
        levels: 2**levels cells to a side, 0 to 16.

    Returns:
        The area.

    Raises:
        InvalidParameter: The image has no pixels.

    Example:
        >>> area_of_image(800, 600, 4).grid.bounds
        (0.0, -100.0, 800.0, 700.0)

    """
    if width < 1 or height < 1:
        raise InvalidParameter(
            f"an image has at least 1 x 1 pixels, got {width} x {height}; no area was made"
        )
    asked = (0.0, 0.0, float(width), float(height))
    return Area(Grid(levels, _square(asked, 1.0)), asked, "pixels")


def area_of_plane(bounds: Bounds, levels: int, *, square: bool = True) -> Area:
    """An area in any other units: low x, low y, high x, high y.

    Args:
        bounds: Low x, low y, high x, high y, finite.
        levels: 2**levels cells to a side, 0 to 16.
        square: Whether cells are square.

    Returns:
        The area.

    Raises:
        InvalidParameter: The bounds are no box.

    """
    low_x, low_y, high_x, high_y = asked = _numbers(bounds)
    if not (low_x < high_x and low_y < high_y):
        raise InvalidParameter(f"bounds must rise from low to high, got {asked}; no area was made")
    return Area(Grid(levels, _square(asked, 1.0) if square else asked), asked, "plane")


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
    square = math.isclose(width, height, rel_tol=1e-6)
    match area.kind:
        case "degrees":
            turned = (_turned(low_x, west=True), low_y, _turned(high_x, west=False), high_y)
            try:
                return _in_degrees(turned, levels, square=square)
            except InvalidParameter:
                return _in_degrees(turned, levels, square=False)
        case "pixels" | "plane":
            return Area(Grid(levels, _square(bounds, 1.0) if square else bounds), bounds, area.kind)
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
