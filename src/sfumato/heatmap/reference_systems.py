"""Coordinate reference systems by name: the planes in which rows and bounds may be given.

Rows are never transformed: the grid of a map lies in the plane of its system, so that a row counts
in the same cell on every engine. Cells are, when a file wants longitudes and latitudes, and so are
zones that come in them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter, MissingPackage
from sfumato.spaces import Bounds

INSTALL = "pip install 'sfumato[geo]'"
DEGREES = "EPSG:4326"
UNDONE = "nothing was read"
# Of an edge of a zone: enough for one around the Earth on a map of a city.
MOST_PIECES = 4096
# Of an edge that leads where the system does not reach.
LEAVING = 64


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
            if re.fullmatch(r"[A-Za-z]+:\w+", name):
                raise InvalidParameter(
                    f"no reference system {name} is known to pyproj; {UNDONE}"
                ) from None
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

    def ring_from_degrees(self, ring: FloatArray, tolerance: float) -> FloatArray:
        """A closed ring of degrees in the plane; edges that are bent there get positions in between.

        An edge is straight in longitudes and latitudes (RFC 7946, 3.1.1); what is returned is no
        further from it than `tolerance`. Infinite where the system does not reach.
        """
        places = self.line_from_degrees(ring, tolerance)
        return places if np.isfinite(places).all() else np.full_like(ring, np.inf)

    def line_from_degrees(self, line: FloatArray, tolerance: float) -> FloatArray:
        """A line of degrees in the plane, bent as the edges of a ring are; infinite where it does not reach.

        An edge that leaves what the system reaches is cut into pieces, so that it ends near there.
        """
        start, end = line[:-1], line[1:]
        quarters = np.array([0.0, 0.25, 0.5, 0.75, 1.0])[:, None, None]
        found = self.places_from_degrees(start * (1 - quarters) + end * quarters)
        reached = np.isfinite(found).all(axis=(0, 2))
        with np.errstate(invalid="ignore"):
            chord = found[:1] * (1 - quarters) + found[-1:] * quarters
            off = np.hypot(*np.moveaxis(found - chord, -1, 0)).max(axis=0)
        # What an arc is off its chord falls with the square of the number of its pieces.
        needed = np.ceil(np.sqrt(np.where(reached, off, 0.0) / tolerance))
        pieces = np.where(reached, needed, LEAVING).clip(1, MOST_PIECES).astype(np.int64)
        owner = np.repeat(np.arange(len(start)), pieces)
        first = np.cumsum(pieces) - pieces
        time = ((np.arange(owner.size) - first[owner]) / pieces[owner])[:, None]
        places = self.places_from_degrees(start[owner] * (1 - time) + end[owner] * time)
        return np.concatenate([places, self.places_from_degrees(line[-1:])])

    def places_from_degrees(self, positions: FloatArray) -> FloatArray:
        """Positions [..., longitude and latitude] in the plane; infinite where it does not reach."""
        x, y = self._between(inverse=True).transform(positions[..., 0], positions[..., 1])
        return np.stack([x, y], axis=-1)

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
