"""Operators from what a user has: numbers of cells, positions, a graph, a matrix."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, assert_never, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array, whole
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.kinds import (
    GraphDiffusion,
    HeatLine,
    HeatPlane,
    Matrix,
    Operator,
)
from sfumato.sensing.model.sensors import Sensors
from sfumato.spaces import Graph, Grid, Line, Points


def heat_line(
    *,
    sources: int | Line | npt.ArrayLike,
    sensors: int | Sensors | npt.ArrayLike,
    diffusion_time: float,
    length: float = 1.0,
) -> HeatLine:
    """Heat from cells on a line, read by sensors on it.

    A number of sources or sensors means the papers' places 1/n, 2/n, ..., 1 times the length;
    positions may be given instead.

    >>> heat_line(sources=100, sensors=50, diffusion_time=0.05).shape
    (50, 100)
    """
    space = sources if isinstance(sources, Line) else _line(sources, length)
    placed = sensors if isinstance(sensors, Sensors) else Sensors(_line_places(sensors, length))
    _dimensions(placed, 1)
    return HeatLine(space, placed, _time(diffusion_time, "diffusion_time"))


def heat_plane(
    *,
    sources: Grid | Points | npt.ArrayLike,
    sensors: Sensors | npt.ArrayLike,
    diffusion_time: float,
) -> HeatPlane:
    """Heat from cells of a grid (or any points) in a plane, read by sensors at any places.

    >>> heat_plane(sources=Grid(3), sensors=[(0.2, 0.4), (0.7, 0.1)], diffusion_time=0.01).shape
    (2, 64)
    """
    space = sources if isinstance(sources, Grid | Points) else Points(sources)
    if isinstance(space, Points) and space.positions.shape[1] != 2:
        raise InvalidParameter(
            f"sources in a plane have 2 coordinates, got {space.positions.shape[1]}; nothing was built"
        )
    placed = sensors if isinstance(sensors, Sensors) else Sensors(sensors)
    _dimensions(placed, 2)
    return HeatPlane(space, placed, _time(diffusion_time, "diffusion_time"))


def graph_diffusion(
    graph: Graph,
    rate: float,
    *,
    sensors: Sensors | npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> GraphDiffusion:
    """exp(-rate L) on a connected graph, read at every node unless sensors name some.

    `weights` are how strongly each of `graph.edges` conducts, 1 unless given; lengths are distances
    only.

    >>> graph_diffusion(Graph([(0, 1), (1, 2)]), 0.3).shape
    (3, 3)
    """
    if graph.components().any():
        raise InvalidParameter(
            "a graph for diffusion must be connected, got one in several parts; nothing was built"
        )
    if sensors is None:
        placed = Sensors(np.arange(graph.size))
    else:
        placed = sensors if isinstance(sensors, Sensors) else Sensors(sensors)
    _dimensions(placed, 1)
    for node in placed.positions[:, 0].tolist():
        if node != int(node) or not 0 <= node < graph.size:
            raise InvalidParameter(
                f"a sensor on a graph sits on a node from 0 to {graph.size - 1}, got {node:g}; "
                "nothing was built"
            )
    strengths = None
    if weights is not None:
        strengths = real_array("weights", weights)
        if (
            strengths.shape != (len(graph.edges),)
            or not ((strengths >= 1e-20) & (strengths <= 1e20)).all()
        ):
            raise InvalidParameter(
                f"weights must be one number between 1e-20 and 1e20 for each of {len(graph.edges)} edges; "
                "nothing was built"
            )
        read_only(strengths)
    return GraphDiffusion(graph, placed, _time(rate, "rate"), strengths)


def linear(
    matrix: Any,
    space: Line | Grid | Graph | Points,
    *,
    sensors: Sensors | npt.ArrayLike | None = None,
) -> Matrix:
    """Any matrix, or scipy LinearOperator, with the space its sources live on.

    >>> linear([[1, 0], [0.5, 0.5]], Line(2)).readings([1, 2])
    array([1. , 1.5])
    """
    if hasattr(matrix, "matvec"):
        held = matrix
    else:
        held = real_array(
            "matrix", cast(Any, matrix).toarray() if sparse.issparse(matrix) else matrix
        )
        if not np.isfinite(held).all():
            raise InvalidParameter(
                "matrix entries must be finite, got one that is not; nothing was built"
            )
        read_only(held)
    if len(held.shape) != 2 or held.shape[1] != space.size or held.shape[0] < 1:
        raise InvalidParameter(
            f"matrix must have one column for each of {space.size} cells, got shape {tuple(held.shape)}; "
            "nothing was built"
        )
    if sensors is None:
        placed = Sensors(np.arange(held.shape[0]))
    else:
        placed = sensors if isinstance(sensors, Sensors) else Sensors(sensors)
    if len(placed) != held.shape[0]:
        raise InvalidParameter(
            f"matrix must have one row for each of {len(placed)} sensors, got {held.shape[0]}; "
            "nothing was built"
        )
    return Matrix(space, placed, held)


def part_of(operator: Operator, rows: IntArray) -> Operator:
    """The operator to some of its sensors, by their numbers."""
    if np.array_equal(rows, np.arange(operator.shape[0])):
        return operator
    some = Sensors(
        operator.sensors.positions[rows], [operator.sensors.names[row] for row in rows.tolist()]
    )
    match operator:
        case HeatLine() | HeatPlane() | GraphDiffusion():
            return replace(operator, sensors=some)
        case Matrix(space, _, _):
            return linear(operator.columns(np.arange(space.size))[rows], space, sensors=some)
        case _:
            assert_never(operator)


def even_places(count: int, low: FloatArray, high: FloatArray) -> FloatArray:
    """So many places for sensors, evenly over a rectangle: in rows that differ by one place at most.

    A square number of them is in the middle of equal boxes.

    >>> even_places(4, np.zeros(2), np.ones(2)).tolist()
    [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]]
    >>> even_places(3, np.zeros(2), np.ones(2)).tolist()
    [[0.5, 0.25], [0.25, 0.75], [0.75, 0.75]]
    """
    rows = max(1, round(math.sqrt(count)))
    in_row = np.diff(np.arange(rows + 1) * count // rows)
    x = np.concatenate([(np.arange(places) + 0.5) / places for places in in_row])
    y = np.repeat((np.arange(rows) + 0.5) / rows, in_row)
    return np.asarray(low + np.column_stack([x, y]) * (high - low))


def even_nodes(size: int, count: int) -> IntArray:
    """So many nodes of a graph of this size, evenly spaced by number, the first and the last among them.

    >>> even_nodes(12, 3).tolist()
    [0, 6, 11]
    """
    if count > size:
        raise InvalidParameter(
            f"a graph has at most one sensor at each of {size} nodes, got {count}; nothing was built"
        )
    return np.unique(np.linspace(0, size - 1, count).round().astype(np.int64))


def _line(sources: int | npt.ArrayLike, length: float) -> Line:
    return Line(cast(int, sources), length) if np.ndim(sources) == 0 else Line.at(sources)


def _line_places(sensors: int | npt.ArrayLike, length: float) -> FloatArray:
    if np.ndim(sensors) == 0:
        return Line(whole("sensors", cast(int, sensors), low=1), length).positions
    return real_array("sensor positions", sensors)


def _dimensions(sensors: Sensors, wanted: int) -> None:
    found = sensors.positions.shape[1]
    if found != wanted:
        raise InvalidParameter(
            f"sensors here have {wanted} coordinate{'s' * (wanted > 1)}, got {found}; nothing was built"
        )


def _time(value: float, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    # Beyond these, squares and heights leave the doubles, and bounds on their rounding would not
    # hold.
    if not 1e-20 <= number <= 1e20:
        raise InvalidParameter(
            f"{name} must lie between 1e-20 and 1e20, got {value}; nothing was built"
        )
    return number


def at_time(operator: Operator, time: float) -> Operator:
    """The same operator with another diffusion time, or rate."""
    match operator:
        case HeatLine() | HeatPlane():
            return (
                operator
                if time == operator.diffusion_time
                else replace(operator, diffusion_time=time)
            )
        case GraphDiffusion():
            return operator if time == operator.rate else replace(operator, rate=time)
        case _:
            raise InvalidParameter("a site by a matrix has no diffusion time; nothing was computed")


def time_of(operator: Operator) -> float | None:
    """The diffusion time or rate of an operator that has one."""
    match operator:
        case HeatLine() | HeatPlane():
            return operator.diffusion_time
        case GraphDiffusion():
            return operator.rate
        case _:
            return None
