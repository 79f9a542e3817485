"""Sensors: their names and places, as one value that a guarantee can name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import read_only, real_array
from sfumato.errors import InvalidParameter


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Sensors:
    """A named set of sensors: one name and one place each, in the order of their readings.

    A place is a row of coordinates; on a graph it is the number of a node.

    >>> hall = Sensors([[0.25], [0.75]], names=["door", "window"])
    >>> hall.names, hall.digest[:8]
    (('door', 'window'), 'dea6cc81')
    """

    names: tuple[str, ...]
    positions: FloatArray

    def __init__(self, positions: npt.ArrayLike, names: Iterable[str] | None = None) -> None:
        places = real_array("sensor positions", positions)
        if places.ndim == 1:
            places = places[:, np.newaxis]
        if places.ndim != 2 or 0 in places.shape:
            raise InvalidParameter(
                f"sensors need at least one place, each of the same number of coordinates, got shape "
                f"{places.shape}; nothing was built"
            )
        wrong = np.flatnonzero(~np.isfinite(places).all(axis=1))
        if wrong.size:
            raise InvalidParameter(
                f"sensor positions must be finite, got {places[wrong[0]].tolist()} at {wrong[0]}; "
                "nothing was built"
            )
        given = (
            tuple(str(i) for i in range(len(places))) if names is None else tuple(map(str, names))
        )
        if len(given) != len(places):
            raise InvalidParameter(
                f"every sensor needs one name, got {len(given)} names for {len(places)} sensors; "
                "nothing was built"
            )
        seen: set[str] = set()
        for name in given:
            if not name or not name.isprintable():
                raise InvalidParameter(
                    f"a sensor's name must be printable and not empty, got {name!r}; nothing was built"
                )
            if name in seen:
                raise InvalidParameter(
                    f"a sensor must be named once, got {name!r} again; nothing was built"
                )
            seen.add(name)
        object.__setattr__(self, "names", given)
        object.__setattr__(self, "positions", read_only(places + 0.0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sensors):
            return NotImplemented
        return self.names == other.names and np.array_equal(self.positions, other.positions)

    def __hash__(self) -> int:
        return hash((self.names, self.positions.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        return Sensors, (self.positions, self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def digest(self) -> str:
        """SHA-256 over names and places, in the order of the names: the same set has the same digest."""
        rows = sorted(zip(self.names, self.positions.tolist(), strict=True))
        return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


def check_dimensions(sensors: Sensors, expected: int) -> None:
    """Refuse sensors with another number of coordinates."""
    count = sensors.positions.shape[1]
    if count != expected:
        raise InvalidParameter(
            f"sensors here have {expected} coordinate{'s' * (expected > 1)}, got {count}; "
            "nothing was built"
        )
