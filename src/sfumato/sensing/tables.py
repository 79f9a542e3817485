"""Tables of sensors: CSV or JSON, one row for each sensor, reading, edge or source."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato._types import FloatArray
    from sfumato.sensing.model.sensors import Sensors
    from sfumato.sensing.model.site import Site
    from sfumato.spaces import Graph

Rows = list[dict[str, Any]]
AXES = ("x", "y")


def read_rows(path: Path, *, empty: bool = False) -> Rows:
    """The rows of a CSV file with a header line (tabs in .tsv), or of a JSON list of objects.

    A table without rows is refused unless `empty`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}; nothing was charged") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text in UTF-8; nothing was charged") from None
    if path.suffix == ".json":
        try:
            rows = json.loads(text)
        except ValueError:
            rows = None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InvalidInput(f"{path} is not a JSON list of objects; nothing was charged")
    else:
        reader = csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix == ".tsv" else ",")
        try:
            rows = list(reader)
        except csv.Error:  # a text of 100,000 letters, say; what it says is not repeated
            raise InvalidInput(
                f"{path} is not a table with a header line; nothing was charged"
            ) from None
    if not rows and not empty:
        raise InvalidInput(f"{path} has no rows; nothing was charged")
    return rows


def column(rows: Rows, name: str, path: Path) -> list[Any]:
    """One column; a row without it is refused by its number.

    A table without a header has readings in its first line, so names of columns are not repeated
    either.
    """
    if not any(name in row for row in rows):
        raise InvalidInput(
            f"there is no column {name!r} among the {len(rows[0])} of {path}; nothing was charged"
        )
    for number, row in enumerate(rows, 1):
        if row.get(name) in (None, ""):
            raise InvalidInput(f"{path} has no {name!r} in row {number}; nothing was charged")
    found = [row[name] for row in rows]
    # Blanks around a word are of the writing, not of the name.
    return [value.strip() if isinstance(value, str) else value for value in found]


def has(rows: Rows, name: str) -> bool:
    """Whether any row has this column; then all must."""
    return any(name in row for row in rows)


def numbers(rows: Rows, name: str, path: Path) -> list[float]:
    """One column of finite numbers; a text that is none is refused by its row, and not quoted."""
    found: list[float] = []
    for number, value in enumerate(column(rows, name, path), 1):
        try:
            found.append(float(value))
        except (TypeError, ValueError, OverflowError):
            found.append(math.nan)
        if not math.isfinite(found[-1]):
            raise InvalidInput(
                f"the {name} in row {number} of {path} is not a finite number; nothing was charged"
            )
    return found


def read_sensors(path: Path) -> Sensors:
    """Sensors from a table: their names under `sensor`, their places under `x`, or `x` and `y`."""
    from sfumato.sensing.model.sensors import Sensors

    rows = read_rows(path)
    axes = [axis for axis in AXES if has(rows, axis)]
    if not axes:
        raise InvalidInput(
            f"{path} needs the places of sensors in columns x, or x and y; nothing was built"
        )
    names = [str(name) for name in column(rows, "sensor", path)]
    return Sensors(list(zip(*(numbers(rows, axis, path) for axis in axes), strict=True)), names)


def read_graph(
    path: Path, *, largest_part: bool
) -> tuple[Graph, tuple[str, ...], FloatArray | None]:
    """A graph from an edge list (u, v, perhaps length and weight): the graph, names of nodes, weights."""
    import numpy as np

    from sfumato.spaces import Graph

    rows = read_rows(path)
    ends = [
        (str(u), str(v))
        for u, v in zip(column(rows, "u", path), column(rows, "v", path), strict=True)
    ]
    lengths = np.array(numbers(rows, "length", path)) if has(rows, "length") else np.ones(len(rows))
    weights = np.array(numbers(rows, "weight", path)) if has(rows, "weight") else np.ones(len(rows))
    names = in_order(name for pair in ends for name in pair)
    number = {name: i for i, name in enumerate(names)}
    kept: dict[tuple[int, int], int] = {}
    for row, (u, v) in enumerate(ends):
        if u != v:  # an edge given both ways, as many lists do, is one edge
            kept.setdefault((min(number[u], number[v]), max(number[u], number[v])), row)
    edges = sorted(kept)
    order = [kept[edge] for edge in edges]
    graph = Graph(edges, lengths[order], nodes=len(names))
    strengths = weights[order]
    if largest_part and (parts := graph.components()).any():
        inside = parts == np.bincount(parts).argmax()
        again = np.cumsum(inside) - 1
        both = inside[graph.edges].all(axis=1)
        strengths = strengths[both]
        graph = Graph(again[graph.edges[both]], graph.lengths[both], nodes=int(inside.sum()))
        names = [name for name, kept_here in zip(names, inside, strict=True) if kept_here]
    return graph, tuple(names), None if (strengths == 1).all() else strengths


def read_snapshots(path: Path, site: Site) -> list[tuple[str, dict[str, float]]]:
    """Exact readings by sensor, one set for each time in the order in which times come."""
    rows = read_rows(path)
    names = [str(name) for name in column(rows, "sensor", path)]
    values = numbers(rows, "value", path)
    times = (
        [str(time) for time in column(rows, "time", path)]
        if has(rows, "time")
        else [""] * len(rows)
    )
    found: dict[str, dict[str, float]] = {}
    known = set(site.sensors.names)
    for row, (time, name, value) in enumerate(zip(times, names, values, strict=True), 1):
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


def read_sigma(path: Path) -> float | None:
    """The deviation of the noise that a table of noisy readings states, if it does: the largest."""
    rows = read_rows(path)
    return max(numbers(rows, "sigma", path)) if has(rows, "sigma") else None


def read_sources(path: Path, site: Site) -> FloatArray:
    """True sources of a simulation: cell (its number or name) and mass."""
    import numpy as np

    rows = read_rows(path)
    masses = np.zeros(site.operator.space.size)
    number = {site.cell(i): i for i in range(masses.size)}
    for cell, mass in zip(column(rows, "cell", path), numbers(rows, "mass", path), strict=True):
        if str(cell) not in number:
            raise InvalidInput(
                f"{path}: site {site.name!r} has no cell {str(cell)!r}; nothing was recovered"
            )
        masses[number[str(cell)]] += mass
    return masses


def read_layout(path: Path, names: Sequence[str]) -> FloatArray:
    """Where to draw each of some nodes: node, x, y."""
    import numpy as np

    rows = read_rows(path)
    place = {
        str(row.get("node")): (x, y)
        for row, x, y in zip(rows, numbers(rows, "x", path), numbers(rows, "y", path), strict=True)
    }
    missing = [name for name in names if name not in place]
    if missing:
        raise InvalidInput(f"{path} has no place for node {missing[0]!r}; nothing was drawn")
    return np.array([place[name] for name in names])


def in_order(names: Iterable[str]) -> list[str]:
    """Each name once: by number if all are numbers, else as they come."""
    once = list(dict.fromkeys(names))
    return sorted(once, key=int) if all(name.isdecimal() for name in once) else once
