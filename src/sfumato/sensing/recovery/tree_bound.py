"""Bound how wrong an answer in a plane or on a graph can be at worst, and find the proofs of it.

Where the answer is one place its distance to the sources is a sum over them, one linear program. With more
places a tree joins them. For up to `MAX_SIGNED` edges every combination of ways that mass can go along them is
a program; along the others the absolute value is replaced by the chord between the smallest and the largest
share behind the edge, two programs each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.certified_error import (
    LaplaceNoise,
    direction_quantiles,
    strong_directions,
)
from sfumato.sensing.recovery.certified_tree import TreeCertificate
from sfumato.sensing.recovery.solver.share_bounds import ScaledProblem, largest_shares
from sfumato.spaces import Graph, Grid, Line, Points

MAX_CELLS = 1 << 14
MAX_SENSORS = 1 << 12
MAX_CENTERS = 12
MAX_SIGNED = 3  # edges: 8 programs
MAX_DIRECTIONS = 12  # as the check has it
OF_CHECK = 1 / 64  # of a bend: what a check, with 8 parts of a cell's side, takes off besides
CLOSE = 0.02  # of the farthest two of the answer's places: mass so near a center counts as there


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Centers joined by edges, and every cell and each of the answer's places at its nearest center.

    Attributes:
        centers: Their places.
        parents: Of every center but the first.
        lengths: Of the edges to them.
        behind: For each edge, which centers are behind it, seen from the first.
        home: The center of each cell.
        reach: How far a source of each cell can be from its center.
        shares: Of the answer at each center.
        moved: What it cost to move the answer there.
    """

    centers: FloatArray
    parents: IntArray
    lengths: FloatArray
    behind: npt.NDArray[np.bool_]
    home: IntArray
    reach: FloatArray
    shares: FloatArray
    moved: float


def certify_on_tree(
    operator: Operator,
    readings: FloatArray,
    estimate: Estimate,
    *,
    sigma: float,
    max_mass: float,
    level: float,
    offset: bool,
    laplace: LaplaceNoise | None = None,
) -> TreeCertificate | None:
    """Bound how far an estimate in a plane or on a graph is from the true sources, as `certify_error` does.

    Returns:
        The bound with its proofs. None where there is none: too large a site, nodes without a path between
        them, or readings that no sources explain.
    """
    directions = strong_directions(
        operator, sigma=sigma, max_mass=max_mass, offset=offset, most=MAX_DIRECTIONS
    )
    if not directions.shape[1]:
        return None
    anywhere = operator.kernel_width is not None and isinstance(operator.space, Grid)
    may_move = sigma * direction_quantiles(directions, level, laplace)
    problem = _scaled(operator, readings, directions, may_move, max_mass, anywhere=anywhere)
    # One center is never far worse than many, and better where the readings tell little.
    found = []
    for most in (1, MAX_CENTERS):
        tree = tree_of(operator, estimate, anywhere=anywhere, most=most)
        one = None if tree is None else _certified(problem, tree)
        if tree is None or one is None:
            return None
        found.append((one.bound, tree, one))
        if tree.parents.size == 0 and most > 1:
            break
    _, tree, best = min(found, key=lambda each: each[0])
    return TreeCertificate(
        level,
        best.bound,
        anywhere,
        offset,
        tree.centers,
        tree.parents,
        best.low,
        best.high,
        best.signed,
        best.largest,
        directions,
        best.duals * max_mass / may_move,
        laplace,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Proved:
    """What is proved along one tree."""

    bound: float
    low: FloatArray
    high: FloatArray
    signed: IntArray
    largest: FloatArray
    duals: FloatArray


def _certified(problem: ScaledProblem, tree: Tree) -> _Proved | None:
    """Shares and costs along a tree; None where nothing explains the readings."""
    edges = tree.parents.size
    low, high = np.zeros(edges), np.ones(edges)
    duals = np.zeros((2 * edges, problem.readings.size))
    if edges > MAX_SIGNED:
        inside = tree.behind[:, tree.home].astype(np.float64)
        bounds, duals = largest_shares(problem, np.concatenate([inside, 1 - inside]))
        high, low = bounds[:edges], 1 - bounds[edges:]
        if (bounds < 0).any() or (low > high).any():
            return None  # a proof that nothing explains the readings
        low = np.maximum(low, 0.0)
    signed = _worth_signs(tree, low, high)
    costs, constants = programs(tree, low, high, signed)
    # The search takes numbers between 0 and 1.
    least, span = costs.min(axis=1), np.maximum(np.ptp(costs, axis=1), 1e-300)
    bounds, more = largest_shares(problem, (costs - least[:, np.newaxis]) / span[:, np.newaxis])
    if (bounds < 0).any():
        return None
    largest = least + span * bounds
    return _Proved(
        max(0.0, float((constants + largest).max())),
        low,
        high,
        signed,
        largest,
        np.concatenate([duals, more * span[:, np.newaxis]]),
    )


def certifiable_on_tree(operator: Operator) -> bool:
    """Whether a site is one that errors are certified on along a tree: no line, and not too large."""
    m, n = operator.shape
    known = isinstance(operator.space, Grid | Graph | Points)
    return known and not isinstance(operator.space, Line) and n <= MAX_CELLS and m <= MAX_SENSORS


def tree_of(
    operator: Operator, estimate: Estimate, *, anywhere: bool, most: int = MAX_CENTERS
) -> Tree | None:
    """The tree of an answer: its places, or so many of them that the others are near one."""
    space = operator.space
    held = np.flatnonzero(estimate.masses > 0)
    masses = estimate.masses[held] / estimate.masses[held].sum()
    places = estimate.places[held]
    chosen = _centers(space, places, masses, most)
    centers = places[chosen]
    apart = space.distances_between(centers, centers)
    cells = space.places(np.arange(space.size))
    away = space.distances_between(centers, cells)
    if not (np.isfinite(away).all() and np.isfinite(apart).all()):
        return None
    order, parents = _spanning(apart)
    centers, away = centers[order], away[order]
    k = len(order)
    lengths = np.array([apart[order[v], order[parents[v - 1]]] for v in range(1, k)])
    behind = np.zeros((k - 1, k), dtype=bool)
    for v in range(k - 1, 0, -1):
        behind[v - 1, v] = True
        if parents[v - 1] > 0:
            behind[parents[v - 1] - 1] |= behind[v - 1]
    home = away.argmin(axis=0)
    reach = away[home, np.arange(space.size)]
    if anywhere and isinstance(space, Grid):
        corners = np.stack([cells + half for half in _corners(space)])
        reach = np.abs(corners - centers[home]).sum(axis=2).max(axis=0)
    to = space.distances_between(centers, places)
    at = to.argmin(axis=0)
    moved = math.fsum(masses * to[at, np.arange(held.size)])
    return Tree(
        centers,
        np.array(parents, dtype=np.int64),
        lengths,
        behind,
        home,
        reach,
        np.bincount(at, weights=masses, minlength=k).astype(np.float64),
        moved,
    )


def programs(
    tree: Tree, low: FloatArray, high: FloatArray, signed: IntArray
) -> tuple[FloatArray, FloatArray]:
    """What a unit in each cell costs, for each way along the signed edges, and what is added whatever it is.

    Along an edge of length w with a share x of the truth and G of the answer behind it mass costs
    w |x - G|: w (x - G) or w (G - x), or at most the chord of it over low <= x <= high.
    """
    inside = tree.behind[:, tree.home].astype(np.float64)
    answer = tree.behind @ tree.shares
    start, end = np.abs(low - answer), np.abs(high - answer)
    wide = high > low + 1e-9
    slope = np.where(wide, (end - start) / np.where(wide, high - low, 1.0), 0.0)
    first = np.where(wide, start - slope * low, np.maximum(start, end))
    rest = np.setdiff1d(np.arange(low.size), signed)
    base = tree.reach + (tree.lengths * slope)[rest] @ inside[rest]
    added = tree.moved + math.fsum((tree.lengths * first)[rest])
    costs, constants = [], []
    for ways in product((1.0, -1.0), repeat=signed.size):
        along = np.array(ways) * tree.lengths[signed]
        costs.append(base + along @ inside[signed])
        constants.append(added - float(along @ answer[signed]))
    return np.array(costs), np.array(constants)


def _worth_signs(tree: Tree, low: FloatArray, high: FloatArray) -> IntArray:
    """The edges along which a chord is farthest above the absolute value."""
    answer = tree.behind @ tree.shares
    start, end = np.maximum(answer - low, 0.0), np.maximum(high - answer, 0.0)
    lost = tree.lengths * start * end / np.maximum(high - low, 1e-9)
    worth = np.argsort(-lost, kind="stable")[:MAX_SIGNED]
    return np.sort(worth[lost[worth] > 0])


def _centers(
    space: Line | Grid | Graph | Points, places: FloatArray, masses: FloatArray, most: int
) -> list[int]:
    """The heaviest place, then each time the one whose mass is farthest from all chosen, by mass.

    One alone is the best of the ten heaviest.
    """
    heavy = np.argsort(-masses, kind="stable")[:10]
    if most == 1:
        return [int(heavy[(space.distances_between(places[heavy], places) @ masses).argmin()])]
    chosen = [int(heavy[0])]
    near = space.distances_between(places[chosen], places)[0]
    close = CLOSE * float(near[np.isfinite(near)].max(initial=0.0))
    while len(chosen) < min(most, len(masses)):
        far = np.where(near > close, masses * near, 0.0)
        best = int(far.argmax())
        if not far[best] > 0:
            break
        chosen.append(best)
        near = np.minimum(near, space.distances_between(places[[best]], places)[0])
    return chosen


def _spanning(apart: FloatArray) -> tuple[list[int], list[int]]:
    """The shortest spanning tree by Prim: nodes in the order they join, and each one's parent in it."""
    order, parents = [0], []
    while len(order) < len(apart):
        left = [v for v in range(len(apart)) if v not in order]
        to = apart[np.ix_(left, order)]
        node, parent = np.unravel_index(int(to.argmin()), to.shape)
        order.append(left[int(node)])
        parents.append(int(parent))
    return order, parents


def _corners(grid: Grid) -> FloatArray:
    """From the middle of a cell to its four corners."""
    half = np.array([grid.cell_width, grid.cell_height]) / 2
    found: FloatArray = half * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    return found


def _scaled(
    operator: Operator,
    readings: FloatArray,
    directions: FloatArray,
    may_move: FloatArray,
    max_mass: float,
    *,
    anywhere: bool,
) -> ScaledProblem:
    """The problem in units of how far noise may move; in a plane of heat a cell's nodes are its corners."""
    space, n = operator.space, operator.space.size
    units = (directions / may_move).T
    scaled = units @ readings
    width = operator.kernel_width
    if not anywhere or width is None or not isinstance(space, Grid):
        # What each cell reads in so few directions: an adjoint for each, and not a column for each cell.
        read = np.stack([operator.adjoint(row) for row in units], axis=1)
        nodes = read[:, np.newaxis, :] * max_mass
        return ScaledProblem(nodes, scaled, np.zeros(n), np.ones(n))
    cells, sensors = space.places(np.arange(n)), operator.sensors.positions
    reads = []
    for corner in _corners(space):
        apart = ((sensors[:, np.newaxis] - (cells + corner)) ** 2).sum(axis=2)
        reads.append(units @ (np.exp(-apart / (2 * width**2)) / (2 * math.pi * width**2)))
    nodes = np.stack(reads).transpose(2, 0, 1) * max_mass
    unit = max_mass / float(may_move.min())
    return ScaledProblem(nodes, scaled, unit * _bend(space, cells, sensors, width), np.ones(n))


def _bend(grid: Grid, cells: FloatArray, sensors: FloatArray, width: float) -> FloatArray:
    """How far readings of a source in a cell are at most from a mixture of those of its corners.

    Along each axis h^2 / 8 times the second derivative, g (d^2 / width^2 - 1) / width^2 for each sensor.
    """
    size = np.array([grid.cell_width, grid.cell_height])
    away = np.abs(sensors[:, np.newaxis] - cells)
    near, far = np.maximum(away - size / 2, 0.0), away + size / 2
    most = np.exp(-(near**2).sum(axis=2) / (2 * width**2)) / (2 * math.pi * width**4)
    factor = np.maximum(np.abs((near / width) ** 2 - 1), np.abs((far / width) ** 2 - 1))
    second = np.sqrt(((most[..., np.newaxis] * factor) ** 2).sum(axis=0))
    found: FloatArray = second @ (size**2 / 8) * (1 + OF_CHECK)
    return found
