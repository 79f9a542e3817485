"""Compare two masses: from files or arrays, on the space they fit, to a typed result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.spaces import Graph, Grid, Line
from sfumato.transport.distance import emd
from sfumato.transport.mass_files import Masses, grid_levels, masses_of, read_graph, usual_space
from sfumato.transport.rectangle import emd_rectangle
from sfumato.transport.results import EmdResult

SpaceName = Literal["line", "grid", "graph"]


def compare_masses(
    a: Masses,
    b: Masses,
    *,
    space: SpaceName | None = None,
    edges: str | Path | None = None,
    bounds: tuple[float, float, float, float] | None = None,
    normalize: bool = False,
    flow: bool = False,
    watch: Callable[[str], None] | None = None,
) -> EmdResult:
    """Measure how far mass must move to turn a into b, between proven bounds.

    Args:
        a: Masses: an array, a table, or a file (.npy, .csv or a grey .png, where white is most). A
            list is one number for each cell; an image is [row, column], row 0 in the south.
        b: Masses of the same shape.
        space: Where the mass lives. By default a list is on a line (on a graph, if edges are
            given) and a square whose side is a power of two is on a grid; "grid" takes any
            rectangle. On a line of n cells they are 1/n apart, on a grid the metric is l1, on a
            graph it is shortest paths.
        edges: The edges of a graph, CSV: two nodes, counted from 0, and perhaps a length.
        bounds: West, south, east and north of a grid, for its units; by default the longer side is 1.
        normalize: Whether to scale both masses to 1; otherwise unequal masses are refused.
        flow: Whether the result also says where mass moves.
        watch: Called with one sentence before the distance is computed.

    Returns:
        The distance, its bounds and the space.

    Raises:
        InvalidParameter: The options do not go together.
        InvalidInput: A file cannot be read, or the masses do not fit the space.

    Example:
        >>> compare_masses([1, 0, 0], [0, 0, 1]).to_json()["space"]
        'line'

    """
    check_space_options(space, edges=edges, bounds=bounds)
    names = _name(a, "a"), _name(b, "b")
    p, q = masses_of(a, "a"), masses_of(b, "b")
    if p.shape != q.shape:
        raise InvalidInput(
            f"{names[0]} and {names[1]} must have one shape, got {p.shape} and {q.shape}"
        )
    kind = space or ("graph" if edges else usual_space(p.shape, names[0]))
    if kind != "grid" and (bounds or flow):
        raise InvalidParameter(
            f"`{'bounds' if bounds else 'flow'}` is for a grid, and {names[0]} is on a {kind}"
        )
    if kind == "grid" and p.ndim == 2 and grid_levels(p.shape) is None:
        if watch is not None:
            watch(f"on a grid of {p.shape[1]} x {p.shape[0]} cells, l1 metric")
        found = emd_rectangle(p, q, bounds=bounds, normalize=normalize, flow=flow)
    else:
        place = _place(kind, p.shape, name=names[0], edges=edges, bounds=bounds)
        if watch is not None:
            watch(f"on {place.describe()}")
        found = emd(p, q, place, normalize=normalize, flow=flow)
    if normalize:
        p, q = p / p.sum(), q / q.sum()
    return EmdResult(
        value=found.value,
        lower=found.lower,
        upper=found.upper,
        space=kind,
        mass=1.0 if normalize else float(p.sum()),
        masses=(p, q),
        flow=found.flow,
    )


def check_space_options(
    space: SpaceName | None,
    *,
    edges: str | Path | None,
    bounds: object = None,
    flow: bool = False,
) -> None:
    """Refuse what can be known to be wrong before any file is read.

    Args:
        space: The name of the space, or None.
        edges: The file of edges, or None.
        bounds: Bounds of a grid, or None.
        flow: Whether the flow on a grid is asked for.

    Raises:
        InvalidParameter: The options do not go together.

    """
    if space == "graph" and edges is None:
        raise InvalidParameter("`space` graph needs `edges`")
    if edges is not None and space not in (None, "graph"):
        raise InvalidParameter(f"`edges` goes with `space` graph, got `space` {space}")
    on_grid = space in (None, "grid") and edges is None
    for name, asked in (("bounds", bounds), ("flow", flow)):
        if asked and not on_grid:
            raise InvalidParameter(f"`{name}` is for a grid, got `space` {space or 'graph'}")


def _name(masses: Masses, name: str) -> str:
    return str(masses) if isinstance(masses, str | Path) else name


def _place(
    kind: SpaceName,
    shape: tuple[int, ...],
    *,
    name: str,
    edges: str | Path | None,
    bounds: tuple[float, float, float, float] | None,
) -> Line | Grid | Graph:
    if kind == "grid":
        levels = grid_levels(shape)
        if levels is None:
            raise InvalidInput(
                f"a grid needs rows and columns of masses, got shape {shape} in {name}; no distance was "
                "computed"
            )
        return Grid(levels, bounds) if bounds else Grid(levels)
    if len(shape) != 1:
        raise InvalidInput(
            f"a {kind} needs one list of masses, got shape {shape} in {name}; no distance was computed"
        )
    return Line(shape[0]) if edges is None else read_graph(edges, shape[0])
