"""Tables of sensors: CSV or JSON, one row for each sensor, reading, edge or source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.files import column_of, has_column, numbers_of, read_edge_list, read_rows
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.table_form import Columns

if TYPE_CHECKING:
    from sfumato._types import FloatArray
    from sfumato.sensing.model.site import Site
    from sfumato.spaces import Graph, Points


def read_sensors(path: str | Path, *, columns: Columns | None = None) -> Sensors:
    """Read the sensors of a table.

    A table with columns sensor and x, or sensor, x and y; in the order of the rows. `columns` says what they
    are called.
    """
    return placed_sensors(path, columns=columns)[0]


def placed_sensors(
    path: str | Path,
    *,
    columns: Columns | None = None,
    origin: tuple[float, float] | None = None,
) -> tuple[Sensors, tuple[float, float] | None]:
    """The sensors of a table, and the latitude and longitude of 0, 0 where it has such.

    Where it has no x but lat and lon, metres east and north of the origin are made of them: the middle of the
    sensors, to 4 decimals, unless it is given.
    """
    called = columns or Columns()
    rows = read_rows(path)
    axes = [axis for axis in (called.x, called.y) if has_column(rows, axis)]
    if axes:
        names = map(str, column_of(rows, called.sensor, path))
        places = list(zip(*(numbers_of(rows, axis, path) for axis in axes), strict=True))
        if origin is not None:
            raise InvalidInput(
                f"`origin` is of a table with lat and lon, {path} has {axes[0]!r}; nothing was built"
            )
        return Sensors(places, names), None
    found = {
        axis: next((one for one in GEOGRAPHIC[axis] if has_column(rows, one)), "")
        for axis in GEOGRAPHIC
    }
    if not all(found.values()):
        raise InvalidInput(
            f"{path} needs the places of sensors in columns {called.x}, or {called.x} and {called.y}, or in "
            "lat and lon; nothing was built"
        )
    north, east = (np.array(numbers_of(rows, found[axis], path)) for axis in ("lat", "lon"))
    middle = [round(float(one.min() + one.max()) / 2, 4) for one in (north, east)]
    start = (middle[0], middle[1]) if origin is None else origin
    names = map(str, column_of(rows, called.sensor, path))
    return Sensors(local_metres(north, east, start), names), start


AXES = ("x", "y")
GEOGRAPHIC = {"lat": ("lat", "latitude"), "lon": ("lon", "lng", "long", "longitude")}
EARTH = 6_371_008.8
"""Mean radius of the earth in metres."""
FARTHEST = 20.0
"""Degrees from its origin up to which a plane is made of the earth: beyond, metres are off by percents."""


def local_metres(
    latitude: FloatArray, longitude: FloatArray, origin: tuple[float, float]
) -> FloatArray:
    """Metres east and north of an origin: a plane that touches the earth there, good for cities.

    East is scaled by the cosine of the origin's latitude, so that places a degree north or south of it are
    off by up to 3 percent there.
    """
    both = np.concatenate([np.abs(latitude) / 90, np.abs(longitude) / 180])
    if not (both <= 1).all() or not (abs(origin[0]) <= 90 and abs(origin[1]) <= 180):
        raise InvalidInput(
            "latitudes lie within 90 degrees and longitudes within 180, got another; nothing was built"
        )
    up, across = latitude - origin[0], longitude - origin[1]
    if max(np.abs(up).max(), np.abs(across).max()) > FARTHEST:
        raise InvalidInput(
            f"places must lie within {FARTHEST:g} degrees of their origin, got one further: give x and y in a "
            "projection of your own; nothing was built"
        )
    scale = EARTH * math.cos(math.radians(origin[0]))
    return np.column_stack([scale * np.radians(across), EARTH * np.radians(up)])


def read_offsets(path: str | Path) -> dict[str, str]:
    """How much more single sensors read where nobody is: sensor and offset."""
    rows = read_rows(path)
    numbers_of(rows, "offset", path)
    found: dict[str, str] = {}
    names = map(str, column_of(rows, "sensor", path))
    for name, offset in zip(names, map(str, column_of(rows, "offset", path)), strict=True):
        if name in found:
            raise InvalidInput(f"{path} has two offsets of sensor {name!r}; nothing was built")
        found[name] = offset
    return found


def read_graph(
    path: str | Path, *, largest_part: bool = False
) -> tuple[Graph, tuple[str, ...], FloatArray | None]:
    """Read a graph for diffusion.

    An edge list with columns u and v, perhaps length and weight. The graph, the names of its nodes, and
    weights of its edges (None where all are 1).
    """
    from sfumato.spaces import Graph

    if Path(path).suffix in {".csv", ".tsv"}:
        rows = read_rows(path)
        for end in ("u", "v"):
            column_of(rows, end, path)
    listed = read_edge_list(path, ends=("u", "v"), values=("length", "weight"))
    names, ones = listed.names, np.ones(len(listed.edges))
    graph = Graph(listed.edges, listed.values.get("length", ones), nodes=len(names))
    strengths = listed.values.get("weight", ones)
    if largest_part and (parts := graph.components()).any():
        inside = parts == np.bincount(parts).argmax()
        again = np.cumsum(inside) - 1
        both = inside[graph.edges].all(axis=1)
        strengths = strengths[both]
        graph = Graph(again[graph.edges[both]], graph.lengths[both], nodes=int(inside.sum()))
        names = tuple(name for name, kept in zip(names, inside, strict=True) if kept)
    return graph, names, None if (strengths == 1).all() else strengths


def read_sigma(path: str | Path) -> float | None:
    """The deviation of the noise that a table of noisy readings states, if it does: the largest."""
    rows = read_rows(path)
    return max(numbers_of(rows, "sigma", path)) if has_column(rows, "sigma") else None


def read_sources(path: str | Path, site: Site) -> FloatArray:
    """True sources of a simulation: cell (its number or name) and mass."""
    rows = read_rows(path)
    masses = np.zeros(site.operator.space.size)
    number = {site.cell(i): i for i in range(masses.size)}
    for cell, mass in zip(
        column_of(rows, "cell", path), numbers_of(rows, "mass", path), strict=True
    ):
        if str(cell) not in number:
            raise InvalidInput(
                f"{path}: site {site.name!r} has no cell {str(cell)!r}; nothing was recovered"
            )
        masses[number[str(cell)]] += mass
    return masses


def read_layout(path: str | Path, names: Sequence[str]) -> FloatArray:
    """Where to draw each of some nodes: node, x, y."""
    rows = read_rows(path)
    place = {
        str(row.get("node")): (x, y)
        for row, x, y in zip(
            rows, numbers_of(rows, "x", path), numbers_of(rows, "y", path), strict=True
        )
    }
    missing = [name for name in names if name not in place]
    if missing:
        raise InvalidInput(f"{path} has no place for node {missing[0]!r}; nothing was drawn")
    return np.array([place[name] for name in names])


def read_nodes_with_sensors(path: str | Path, names: tuple[str, ...]) -> Sensors:
    """Sensors on a graph, from a table whose x is the name of a node."""
    rows = read_rows(path)
    number = {name: i for i, name in enumerate(names)}
    nodes = []
    for name in map(str, column_of(rows, "x", path)):
        if name not in number:
            raise InvalidInput(f"the graph has no node {name!r}; nothing was built")
        nodes.append(number[name])
    return Sensors(nodes, map(str, column_of(rows, "sensor", path)))


def read_places(path: str | Path) -> Points:
    """Places of sources: x and y."""
    from sfumato.spaces import Points

    rows = read_rows(path)
    return Points(list(zip(numbers_of(rows, "x", path), numbers_of(rows, "y", path), strict=True)))


def read_matrix(path: str | Path) -> FloatArray:
    """A matrix from .npy, or from .csv without a header."""
    file = Path(path)
    try:
        if file.suffix == ".npy":
            return np.asarray(np.load(file))
        # Line by line, because an empty file is a warning of loadtxt, not an error.
        lines = file.read_text(encoding="utf-8-sig").splitlines()
        return np.array(
            [[float(entry) for entry in line.split(",")] for line in lines if line.strip()]
        )
    except (OSError, EOFError, ValueError):
        raise InvalidInput(f"{path} is not a matrix in .npy or .csv; nothing was built") from None
