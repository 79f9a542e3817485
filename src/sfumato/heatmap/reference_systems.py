"""Coordinate reference systems by name: the planes in which rows and bounds may be given.

Rows are never transformed: the grid of a map lies in the plane of its system, so that a row counts
in the same cell on every engine. Only cells are, and only when a file wants longitudes and
latitudes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter, MissingPackage
from sfumato.spaces import Bounds

INSTALL = "pip install 'sfumato[geo]'"
DEGREES = "EPSG:4326"
UNDONE = "nothing was read"


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceSystem:
    """A projected system: x grows to the east and y to the north, whatever order it writes them in."""

    name: str
    system: Any

    @classmethod
    def named(cls, name: str) -> ReferenceSystem | None:
        """The system of a name such as EPSG:3857; None for that of degrees."""
        try:
            import pyproj
        except ImportError:
            raise MissingPackage(INSTALL) from None
        try:
            found = pyproj.CRS.from_user_input(name)
        except pyproj.exceptions.CRSError:
            raise InvalidParameter(
                f"a reference system has a name such as EPSG:3857 or EPSG:32632, got {name!r}; {UNDONE}"
            ) from None
        short = (
            found.to_string() if found.to_authority() is None else ":".join(found.to_authority())
        )
        if found.is_geographic and short in (DEGREES, "OGC:CRS84"):
            return None
        if not found.is_projected:
            raise InvalidParameter(
                f"a map lies in a plane: a projected system, or {DEGREES} for degrees, is wanted, got "
                f"{short} ({found.name}); {UNDONE}"
            )
        return cls(short, found)

    def to_degrees(self, x: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        """Longitudes and latitudes of places; infinite where the system does not reach."""
        longitudes, latitudes = self._between(inverse=False).transform(x, y)
        return np.asarray(longitudes), np.asarray(latitudes)

    def from_degrees(self, bounds: Bounds) -> Bounds:
        """The smallest box of the plane around one of degrees."""
        low_x, low_y, high_x, high_y = self._between(inverse=True).transform_bounds(*bounds)
        return low_x, low_y, high_x, high_y

    def places_from_degrees(self, places: FloatArray) -> FloatArray:
        """Places [place, longitude and latitude] in the plane [place, x and y]."""
        x, y = self._between(inverse=True).transform(places[:, 0], places[:, 1])
        return np.column_stack([x, y])

    def metre(self, bounds: Bounds) -> float:
        """How many metres on the ground a step of 1 is in the middle of bounds.

        Bounds that the system does not reach are refused, and those that look like degrees.
        """
        low_x, low_y, high_x, high_y = bounds
        if max(abs(low_x), abs(high_x)) <= 180 and max(abs(low_y), abs(high_y)) <= 90:
            meant = ",".join(f"{number:.0f}" for number in self.from_degrees(bounds))
            raise InvalidParameter(
                f"bounds are in the units of {self.name}, got what look like degrees; in its units "
                f"they are {meant}; {UNDONE}"
            )
        x, y = (low_x + high_x) / 2, (low_y + high_y) / 2
        step = max(abs(high_x - low_x), abs(high_y - low_y)) / 1000
        longitudes, latitudes = self.to_degrees([x, x + step, x], [y, y, y + step])
        if not (np.isfinite(longitudes).all() and np.isfinite(latitudes).all()):
            raise InvalidParameter(
                f"{self.name} does not reach the middle of the bounds, {x:g},{y:g}; {UNDONE}"
            )
        geod = self.system.get_geod()
        lengths = [
            geod.inv(longitudes[0], latitudes[0], longitudes[k], latitudes[k])[2] for k in (1, 2)
        ]
        return math.sqrt(lengths[0] * lengths[1]) / step

    def _between(self, *, inverse: bool) -> Any:
        import pyproj

        start, end = (DEGREES, self.system) if inverse else (self.system, DEGREES)
        return pyproj.Transformer.from_crs(start, end, always_xy=True)
