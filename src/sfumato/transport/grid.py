"""Earth mover's distance on a square grid with the l1 metric, exact for masses on the lattice."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.errors import SolverFailed
from sfumato.spaces import Graph, Grid
from sfumato.transport.graph import arcs_of, emd_graph
from sfumato.transport.masses import Difference, Excess, dot, to_units, weight
from sfumato.transport.results import GridFlow, Transport


def emd_grid(z: Difference, grid: Grid, *, flow: bool) -> Transport:
    """Flow along the sides of cells; masses are images, [row, column].

    Cells that are not square cost differently east and north: then the general solver for graphs is
    used.
    """
    if grid.cell_width != grid.cell_height:
        return _oblong(z, grid, flow=flow)
    excess = to_units(z.excess, z.slip, parts=[np.arange(grid.size)])
    steps, east, north = _solved(excess.units, 0)
    cell = grid.cell_width
    value = excess.mass(steps) * cell
    slack = excess.misplaced * grid.diameter
    moved = _scaled(excess, east, north) if flow else None
    return Transport(value, max(0.0, value - slack), value + slack, moved)


def norm_grid(w: FloatArray, grid: Grid, *, penalty: float, flow: bool) -> Transport:
    """The norm of a signed mass: surplus is left where that is cheapest, at `penalty` a unit.

    Leaving r costs at least penalty * |total|; with penalty at least half the diameter no more than
    the total is ever left, and where it is left is free: a ground node serves cells in want at no
    cost [ghazi23, sec. 2.1].
    """
    sign = -1.0 if float(w.sum()) > 0 else 1.0  # so that there is more want than excess
    slip = 2**-50 * float(np.abs(w).sum())
    excess = to_units(sign * w, slip, parts=None)
    surplus = -int(excess.units.sum())
    if surplus < 0:  # rounding of a balanced mass
        excess = to_units(sign * w, slip, parts=[np.arange(grid.size)])
        surplus = 0
    steps, east, north = _solved(excess.units, surplus)
    value = penalty * excess.mass(surplus) + excess.mass(steps) * grid.cell_width
    slack = excess.misplaced * max(grid.diameter, penalty)
    moved = _scaled(excess, sign * east, sign * north) if flow else None
    return Transport(value, max(0.0, value - slack), value + slack, moved)


def _solved(units: IntArray, surplus: int) -> tuple[int, IntArray, IntArray]:
    """The least number of unit steps, proved: potentials and flow are checked here, and agree."""
    from sfumato.transport.scales import solve_scales  # numba: only when a grid is solved

    potential, ground, east, north, _ = solve_scales(units, surplus)
    if surplus:
        potential = np.maximum(potential, ground)
    steps = weight(east) + weight(north)
    gain = dot(potential, units) + int(ground) * surplus
    rest = units.copy()
    rest[:, :-1] -= east
    rest[:, 1:] += east
    rest[:-1] -= north
    rest[1:] += north
    delivered = (
        not rest.any() if surplus == 0 else bool((rest <= 0).all()) and -int(rest.sum()) == surplus
    )
    lipschitz = all(np.abs(np.diff(potential, axis=axis)).max(initial=0) <= 1 for axis in (0, 1))
    if not (delivered and lipschitz and gain == steps):
        raise SolverFailed(f"flow costs {steps}, potentials prove {gain}; no distance was computed")
    return steps, east, north


def _scaled(
    excess: Excess, east: npt.NDArray[np.number], north: npt.NDArray[np.number]
) -> GridFlow:
    return GridFlow(
        np.ldexp(east.astype(np.float64), -excess.exponent),
        np.ldexp(north.astype(np.float64), -excess.exponent),
    )


# Many small maps of one area are compared one after another: with each of a posterior's draws.
SMALL = 64
FEWEST = 4  # cells to a side: so few are solved from nothing


@lru_cache(maxsize=4)
def _sides_of_cells(side: int, width: float, height: float) -> Graph:
    cells = np.arange(side * side).reshape(side, side)
    across = np.column_stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()])
    upward = np.column_stack([cells[:-1].ravel(), cells[1:].ravel()])
    lengths = np.repeat([width, height], [len(across), len(upward)])
    return Graph(np.concatenate([across, upward]), lengths, nodes=side * side)


@lru_cache(maxsize=8)
def _arcs(side: int) -> tuple[tuple[IntArray, IntArray, IntArray, IntArray], BoolArray]:
    """The sides of cells as arcs, and which of them lead east."""
    edges = _sides_of_cells.__wrapped__(side, 1.0, 1.0).edges
    return arcs_of(edges, side * side), edges[:, 1] - edges[:, 0] == 1


def _downhill(units: IntArray, width: int, height: int) -> IntArray:
    """Potentials [row, column] to start from: those of the same mass on cells twice as wide and high.

    Between the middles of wide cells they are interpolated, which keeps slopes; those are made a step
    lower than they may be, for the rounding down.
    """
    side = len(units)
    if side <= FEWEST or min(width, height) < 2:
        return np.zeros_like(units)
    from sfumato.transport.graph_kernel import solve

    half = side // 2
    wide = units.reshape(half, 2, half, 2).sum(axis=(1, 3))
    # Those of large grids are not kept: 28 MB for 512 cells to a side.
    arcs, eastward = (_arcs if half <= SMALL else _arcs.__wrapped__)(half)
    width, height = 2 * (width - 1), 2 * (height - 1)
    start = _downhill(wide, width, height)
    found, _ = solve(*arcs, np.where(eastward, width, height), wide.ravel(), start.ravel())
    # From 0 up to the length of a path, below 2**57: sixteen times that fits.
    found = (found - found.min()).reshape(half, half)
    return _between(_between(found).T).T >> 4


def _between(values: IntArray) -> IntArray:
    """Four times what lies a quarter from each row to the one before and to the next, if there is one."""
    padded = np.concatenate([values[:1], values, values[-1:]])
    rows = np.stack([3 * values + padded[:-2], 3 * values + padded[2:]], axis=1)
    return rows.reshape(-1, values.shape[1])


def _oblong(z: Difference, grid: Grid, *, flow: bool) -> Transport:
    side = grid.side
    make = _sides_of_cells if side <= SMALL else _sides_of_cells.__wrapped__
    graph = make(side, grid.cell_width, grid.cell_height)
    flat = Difference(z.excess.ravel(), z.whole.ravel(), z.slip)
    eastward = graph.edges[:, 1] - graph.edges[:, 0] == 1

    def downhill(units: IntArray, lengths: IntArray) -> IntArray:
        width, height = (int(lengths[one][0]) for one in (eastward, ~eastward))
        return _downhill(units.reshape(side, side), width, height).ravel()

    found = emd_graph(
        flat,
        graph,
        flow=flow,
        diameter=grid.diameter,
        start=downhill if side > FEWEST else None,
    )
    if not flow or not isinstance(found.flow, np.ndarray):
        return found
    if side == 1:
        eastward = np.zeros(0, dtype=bool)
    east, north = (
        found.flow[eastward].reshape(side, side - 1),
        found.flow[~eastward].reshape(side - 1, side),
    )
    return Transport(found.value, found.lower, found.upper, GridFlow(east, north))
