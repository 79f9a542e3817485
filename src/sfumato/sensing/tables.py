"""Tables of sensors: CSV or JSON, one row for each sensor, reading, edge or source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.files import column_of, has_column, numbers_of, read_edge_list, read_rows
from sfumato.sensing.model.sensors import Sensors

if TYPE_CHECKING:
    from sfumato._types import FloatArray
    from sfumato.sensing.model.site import Site
    from sfumato.spaces import Graph, Points

AXES = ("x", "y")


class Frame(Protocol):
    """What tables of pandas, polars and pyarrow can be asked, so that none of these is needed."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""
        ...

    def __getitem__(self, name: str, /) -> Any:
        """A column."""
        ...


def read_sensors(path: str | Path) -> Sensors:
    """Read the sensors of a table.

    A table with columns sensor and x, or sensor, x and y; in the order of the rows.
    """
    rows = read_rows(path)
    axes = [axis for axis in AXES if has_column(rows, axis)]
    if not axes:
        raise InvalidInput(
            f"{path} needs the places of sensors in columns x, or x and y; nothing was built"
        )
    names = [str(name) for name in column_of(rows, "sensor", path)]
    return Sensors(list(zip(*(numbers_of(rows, axis, path) for axis in axes), strict=True)), names)


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


def read_snapshots(path: str | Path, site: Site) -> list[tuple[str, dict[str, float]]]:
    """Exact readings by sensor, one set for each time in the order in which times come."""
    rows = read_rows(path)
    names = [str(name) for name in column_of(rows, "sensor", path)]
    values = numbers_of(rows, "value", path)
    times = (
        [str(time) for time in column_of(rows, "time", path)]
        if has_column(rows, "time")
        else [""] * len(rows)
    )
    return _by_time(zip(times, names, values, strict=True), site, str(path))


def snapshots_of(frame: Frame, site: Site) -> list[tuple[str, dict[str, float]]]:
    """The same from a table in memory, of pandas, polars or pyarrow; numbers keep their type."""
    where, undone = "the table", "nothing was charged"
    columns = {str(name) for name in getattr(frame, "column_names", frame.columns)}
    if not {"sensor", "value"} <= columns:
        raise InvalidInput(
            f"a table of readings has columns sensor and value, perhaps time, got others; {undone}"
        )
    # As an array: item by item, floats of a short type come as doubles, and nobody sees their rounding.
    values = np.asarray(frame["value"])
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise InvalidInput(f"the values of {where} must be numbers of one type; {undone}")
    broken = np.flatnonzero(~np.isfinite(values))
    if broken.size:
        raise InvalidInput(
            f"the value in row {broken[0] + 1} of {where} is not a finite number; {undone}"
        )
    times = _listed(frame["time"]) if "time" in columns else [""] * len(values)
    for row, time in enumerate(times, 1):
        if time is None or time != time:  # not a number, not a time
            raise InvalidInput(f"{where} has no 'time' in row {row}; {undone}")
    names = map(str, _listed(frame["sensor"]))
    return _by_time(zip(map(str, times), names, values, strict=True), site, where)


def _listed(column: Any) -> list[Any]:
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)


def _by_time(
    rows: Iterable[tuple[str, str, float]], site: Site, path: str
) -> list[tuple[str, dict[str, float]]]:
    """Readings of one time together, of known sensors, each once."""
    found: dict[str, dict[str, float]] = {}
    known = set(site.sensors.names)
    for row, (time, name, value) in enumerate(rows, 1):
        if name not in known:  # not quoted: where columns are mixed up it is a reading
            raise InvalidInput(
                f"row {row} of {path} is of no sensor that site {site.name!r} has; nothing was charged"
            )
        at = found.setdefault(time, {})
        if name in at:
            raise InvalidInput(
                f"row {row} of {path} reads sensor {name!r} again at its time; nothing was charged"
            )
        at[name] = value
    return list(found.items())


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
