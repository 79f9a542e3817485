"""Bound how wrong an answer can be at worst, whatever the sources, and find the proofs of it."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.certified_error import (
    ErrorCertificate,
    LaplaceNoise,
    direction_quantiles,
    strong_directions,
)
from sfumato.sensing.recovery.certified_tree import TreeCertificate
from sfumato.sensing.recovery.solver.share_bounds import ScaledProblem, largest_shares
from sfumato.sensing.recovery.tree_bound import certifiable_on_tree, certify_on_tree
from sfumato.spaces import Line

LEVEL = 0.9
MAX_PARTS = 128  # of the line, between which mass is counted
PARTS_TIMES_DIRECTIONS = 1200  # and so many at most, so that it takes a second or two
MAX_CELLS = 1 << 14
MAX_SENSORS = 2000
BEND = 0.02  # of the radius: nodes of a part are so close that a source between them is as near
MAX_NODES = 9
OF_CHECK = 1 / 16
"""Of a bend: what a check, with 32 nodes in a cell where a part has 8, takes off besides."""


def certify_error(
    operator: Operator,
    readings: FloatArray,
    estimate: Estimate,
    *,
    sigma: float,
    max_mass: float = 1.0,
    level: float = LEVEL,
    offset: bool = False,
    laplace: LaplaceNoise | None = None,
) -> ErrorCertificate | TreeCertificate | None:
    """Bound how far an estimate is from the true sources, whatever they are.

    On a line by a band of the distribution function; in a plane or on a graph by shares along a tree.

    Args:
        operator: Maps masses of cells to readings.
        readings: One noisy reading for each sensor.
        estimate: The answer to certify; any.
        sigma: Standard deviation of the noise of a reading.
        max_mass: The most mass that a cell may hold.
        level: The chance with which the bound holds, over the noise.
        offset: Whether all readings may have an unknown number in common.
        laplace: What the noise is if it is Laplace: sums of how many draws; None means Gaussian.

    Returns:
        The bound with its proofs. None where there is none: too large a site, an estimate without
        mass, nodes without a path between them, or readings that no sources explain.

    >>> from sfumato.sensing import heat_line
    >>> line = heat_line(sources=40, sensors=20, diffusion_time=0.005)
    >>> y = line.columns([12])[:, 0]
    >>> answer = Estimate(line, line.space.places(np.array([12])), np.ones(1))
    >>> found = certify_error(line, y, answer, sigma=0.01)
    >>> found.bound < 0.08, bool((found.low <= found.high).all())
    (True, True)
    """
    space = operator.space
    if not certifiable(operator) or not sigma > 0:
        return None
    if not estimate.masses.size or not estimate.masses.sum() > 0:
        return None
    if not 0 < level < 1:
        raise InvalidParameter(f"level must be between 0 and 1, got {level}; nothing was certified")
    if not isinstance(space, Line):
        return certify_on_tree(
            operator,
            readings,
            estimate,
            sigma=sigma,
            max_mass=max_mass,
            level=level,
            offset=offset,
            laplace=laplace,
        )
    directions = strong_directions(operator, sigma=sigma, max_mass=max_mass, offset=offset)
    if not directions.shape[1]:
        return None
    may_move = sigma * direction_quantiles(directions, level, laplace)
    parts = line_parts(space.size, directions.shape[1])
    problem, anywhere = _scaled(
        operator, readings, directions / may_move, parts, may_move, max_mass
    )
    before = np.tri(len(parts) - 1, len(parts), dtype=bool)
    bounds, duals = largest_shares(problem, np.concatenate([before, ~before]))
    high, low = bounds[: len(before)], 1 - bounds[len(before) :]
    if (bounds < 0).any() or (low > high).any():
        return None  # a proof that nothing explains the readings
    low = np.maximum(low, 0.0)
    pieces = line_pieces(space, parts, anywhere=anywhere)
    return ErrorCertificate(
        level,
        largest_distance(estimate, pieces, low, high),
        least_certifiable(pieces, low, high),
        anywhere,
        offset,
        np.array([end for _, end in pieces[:-1]]),
        low,
        high,
        directions,
        duals * max_mass / may_move,
        laplace,
    )


def certifiable(operator: Operator) -> bool:
    """Whether a site is one that errors are certified on: not too large."""
    if not isinstance(operator.space, Line):
        return certifiable_on_tree(operator)
    m, n = operator.shape
    return 2 <= n <= MAX_CELLS and 1 <= m <= MAX_SENSORS


def line_pieces(space: Line, parts: list[IntArray], *, anywhere: bool) -> list[tuple[float, float]]:
    """Where each part of the line begins and ends: at its cells, or half way to the next."""
    at = space.positions
    if not anywhere:
        return [(float(at[part[0]]), float(at[part[-1]])) for part in parts]
    edges = cell_edges(space)
    return [(float(edges[part[0]]), float(edges[part[-1] + 1])) for part in parts]


def cell_edges(space: Line) -> FloatArray:
    """Half way between cells; the outer cells reach as far out as in."""
    at = space.positions
    middle = (at[1:] + at[:-1]) / 2
    return np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])


def largest_distance(
    estimate: Estimate, pieces: list[tuple[float, float]], low: FloatArray, high: FloatArray
) -> float:
    """The integral of max(high - G, G - low), G the share of the estimate to the left.

    In a piece a distribution function lies between `low` at its begin and `high` at its end, between two
    pieces it does not change, and outside of all it is 0 or 1.
    """
    order = np.argsort(estimate.places[:, 0], kind="stable")
    at = estimate.places[order, 0]
    share = np.concatenate([[0.0], estimate.masses[order].cumsum() / estimate.masses.sum()])
    begin = np.concatenate([[0.0], low])
    end = np.concatenate([high, [1.0]])
    marks = np.unique(np.concatenate([at, np.ravel(pieces)]))
    middle = (marks[1:] + marks[:-1]) / 2
    here = share[np.searchsorted(at, middle, side="right")]
    first = np.searchsorted([b for b, _ in pieces], middle, side="right")  # pieces begun
    past = np.searchsorted([e for _, e in pieces], middle, side="right")  # pieces ended
    lowest = np.concatenate([begin, [1.0]])[past]
    highest = np.concatenate([[0.0], end])[first]
    return math.fsum((marks[1:] - marks[:-1]) * np.maximum(highest - here, here - lowest))


def least_certifiable(
    pieces: list[tuple[float, float]], low: FloatArray, high: FloatArray
) -> float:
    """The integral of (high - low) / 2."""
    begin, end = np.concatenate([[0.0], low]), np.concatenate([high, [1.0]])
    within = [
        (b - a) * (top - down) / 2 for (a, b), down, top in zip(pieces, begin, end, strict=True)
    ]
    between = [
        (pieces[at + 1][0] - pieces[at][1]) * (high[at] - low[at]) / 2 for at in range(len(low))
    ]
    return math.fsum([*within, *between])


def line_parts(cells: int, directions: int) -> list[IntArray]:
    """Cells that are next to each other, in as many parts as are worth the time."""
    count = min(cells, MAX_PARTS, max(2, PARTS_TIMES_DIRECTIONS // directions))
    return [part.astype(np.int64) for part in np.array_split(np.arange(cells), count)]


def _scaled(
    operator: Operator,
    readings: FloatArray,
    scaled_directions: FloatArray,
    parts: list[IntArray],
    may_move: FloatArray,
    max_mass: float,
) -> tuple[ScaledProblem, bool]:
    """The problem in units of how far noise may move each direction, and whether sources may stand anywhere."""
    width = operator.kernel_width
    limit = np.array([float(part.size) for part in parts])
    scaled = scaled_directions.T @ readings
    if width is None:
        longest = max(part.size for part in parts)
        cells = np.array([np.resize(part, longest) for part in parts])
        columns = scaled_directions.T @ operator.columns(cells.ravel())
        nodes = columns.T.reshape(len(parts), longest, -1) * max_mass
        return ScaledProblem(nodes, scaled, np.zeros(len(parts)), limit), False
    sensors = operator.sensors.positions[:, 0]
    ends = np.array(line_pieces(cast(Line, operator.space), parts, anywhere=True))
    bend = (ends[:, 1] - ends[:, 0]) ** 2 / 8 * _curvature(sensors, ends, width)
    bend *= max_mass / float(may_move.min()) * (1 + OF_CHECK)
    steps = min(MAX_NODES - 1, max(1, math.ceil(math.sqrt(float(bend.max()) / BEND))))
    places = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * np.linspace(0, 1, steps + 1)
    reads = _heat(sensors[:, np.newaxis] - places.ravel(), width)
    nodes = (scaled_directions.T @ reads).T.reshape(len(parts), steps + 1, -1) * max_mass
    return ScaledProblem(nodes, scaled, bend / steps**2, limit), True


def _heat(distance: FloatArray, width: float) -> FloatArray:
    found: FloatArray = np.exp(-((distance / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))
    return found


def _curvature(sensors: FloatArray, ends: FloatArray, width: float) -> FloatArray:
    """The most that the second derivative of all readings together is in each piece.

    g''(d) = g(d) (d^2 / width^2 - 1) / width^2 for each sensor.
    """
    away = np.abs(sensors[:, np.newaxis, np.newaxis] - ends)
    within = (ends[:, 0] <= sensors[:, np.newaxis]) & (sensors[:, np.newaxis] <= ends[:, 1])
    near, far = np.where(within, 0.0, away.min(axis=2)), away.max(axis=2)
    factor = np.maximum(np.abs((near / width) ** 2 - 1), np.abs((far / width) ** 2 - 1))
    found: FloatArray = np.sqrt(((_heat(near, width) * factor / width**2) ** 2).sum(axis=0))
    return found
