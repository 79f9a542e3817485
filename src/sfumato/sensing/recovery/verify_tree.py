"""Check a certified error along a tree without trusting whoever made it: from operator, readings and proofs.

It shares no code with the search (`solver` is not imported, and a test holds that). It is written to be read,
not to be fast.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from sfumato._types import FloatArray
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.certified_tree import TreeCertificate
from sfumato.sensing.recovery.verify_error import (
    MOST_ON_TREES,
    ROUNDING,
    SLACK,
    proved,
    quantiles,
    steepest_bend,
    wrong_directions,
)
from sfumato.spaces import Grid

AT_A_TIME = 1024  # cells
FINER = 8  # parts of a cell's side: a search has one, so that its bend is never the smaller one


def check_tree(
    found: TreeCertificate,
    operator: Operator,
    readings: FloatArray,
    estimate: Estimate,
    *,
    sigma: float,
    max_mass: float,
) -> str:
    """Why a certificate along a tree does not hold; "" if it does.

    For every cost c of cells that it states a largest mean b of, with its z and e = quantile sigma,
    y'z + e |z|_1 + max_mass sum_i (c_i - b - M_i'z)_+ is at most 0, M_i'z the least in cell i.

    Args:
        found: The certificate.
        operator: Maps masses of cells to readings.
        readings: One noisy reading for each sensor.
        estimate: The answer that it is of.
        sigma: Standard deviation of the noise of a reading.
        max_mass: The most mass that a cell may hold.

    Returns:
        A sentence, or nothing.
    """
    wrong = wrong_directions(found, operator, sigma=sigma, max_mass=max_mass, most=MOST_ON_TREES)
    if wrong:
        return wrong
    space, edges = operator.space, found.parents.size
    if any(not 0 <= parent <= v for v, parent in enumerate(found.parents)):
        return "its tree has an edge to a node that comes later"
    if found.signed.size and not (
        0 <= found.signed.min() <= found.signed.max() < edges
        and np.unique(found.signed).size == found.signed.size
    ):
        return "its signed edges are not of its tree"
    if found.anywhere and not (isinstance(space, Grid) and operator.kernel_width is not None):
        return "nobody knows what sources between its cells read"
    # The tree: which centers are behind each edge, how long it is, and where cells hang.
    behind = np.zeros((edges, edges + 1), dtype=bool)
    for node in range(1, edges + 1):
        above = node
        while above > 0:
            behind[above - 1, node] = True
            above = int(found.parents[above - 1])
    apart = space.distances_between(found.centers, found.centers)
    lengths = np.array([apart[v + 1, parent] for v, parent in enumerate(found.parents)])
    cells = space.places(np.arange(space.size))
    away = space.distances_between(found.centers, cells)
    home = away.argmin(axis=0)
    reach = away.min(axis=0)
    if found.anywhere and isinstance(space, Grid):
        # In l1 a source is farther than the middle of its cell by at most half of both sides.
        sides = np.array([space.cell_width, space.cell_height]) / 2
        reach = (np.abs(cells - found.centers[home]) + sides).sum(axis=1)
    masses = estimate.masses / estimate.masses.sum()
    to = space.distances_between(found.centers, estimate.places)
    shares = np.bincount(to.argmin(axis=0), weights=masses, minlength=edges + 1)
    moved = float(masses @ to.min(axis=0))
    # Costs and what is stated of them.
    inside = behind[:, home].astype(float)
    stated = [(inside[e], float(found.high[e]), f"behind edge {e}") for e in range(edges)]
    stated += [(1 - inside[e], 1 - float(found.low[e]), f"before edge {e}") for e in range(edges)]
    bound = 0.0
    for number, ways in enumerate(product((1.0, -1.0), repeat=found.signed.size)):
        sign = dict(zip(found.signed.tolist(), ways, strict=True))
        cost, added = reach.copy(), moved
        for e in range(edges):
            share = float(shares[behind[e]].sum())
            low, high = float(found.low[e]), float(found.high[e])
            if e in sign:
                slope, first = sign[e], -sign[e] * share
            elif high > low + 1e-9:
                slope = (abs(high - share) - abs(low - share)) / (high - low)
                first = abs(low - share) - slope * low
            else:
                slope, first = 0.0, max(abs(high - share), abs(low - share))
            cost = cost + lengths[e] * slope * inside[e]
            added += lengths[e] * first
        stated.append((cost, float(found.largest[number]), f"of way {number}"))
        bound = max(bound, added + float(found.largest[number]))
    least = _least_in_cells(operator, found.duals @ found.directions.T, anywhere=found.anywhere)
    seen = found.directions.T @ readings
    may_move = sigma * quantiles(found)
    for (cost, most, what), z, reads in zip(stated, found.duals, least, strict=True):
        if most >= cost.max() - SLACK * float(np.abs(cost).max()):
            continue  # it says nothing
        over = cost - most - reads - ROUNDING * (np.abs(cost) + abs(most) + np.abs(reads))
        if not proved(seen, z, may_move, max_mass * np.maximum(over, 0.0)):
            return f"the mass {what} is not proved to cost at most {most:g}"
    if not bound <= found.bound + SLACK * float(reach.max() + lengths.sum()):
        return f"the shares bound the distance by {bound:g}, not by {found.bound:g}"
    return ""


def _least_in_cells(operator: Operator, duals: FloatArray, *, anywhere: bool) -> FloatArray:
    """The least that a unit in each cell reads, weighed by each dual vector: duals by cells.

    Between the corners of a part of a cell it is below the lowest by at most h^2 / 8 for each axis times the
    largest second derivative in the cell.
    """
    space, width = operator.space, operator.kernel_width
    if not anywhere or width is None or not isinstance(space, Grid):
        parts = np.array_split(np.arange(space.size), -(-space.size // AT_A_TIME))
        return np.concatenate([duals @ operator.columns(part) for part in parts], axis=1)
    cells, sensors = space.places(np.arange(space.size)), operator.sensors.positions
    size = np.array([space.cell_width, space.cell_height])
    steps = np.linspace(-0.5, 0.5, FINER + 1)
    peak = 1 / (2 * math.pi * width**2)
    least = np.full((len(duals), space.size), np.inf)
    for right, up in product(steps, steps):
        at = cells + size * np.array([right, up])
        apart = ((sensors[:, np.newaxis] - at) ** 2).sum(axis=2)
        least = np.minimum(least, duals @ (peak * np.exp(-apart / (2 * width**2))))
    away = np.abs(sensors[:, np.newaxis] - cells)
    near, far = np.maximum(away - size / 2, 0), away + size / 2
    height = peak * np.exp(-((near / width) ** 2).sum(axis=2) / 2)
    bends = np.minimum(height[..., np.newaxis] * steepest_bend(near, far, width), peak / width**2)
    second = bends @ (size / FINER) ** 2 / 8
    found: FloatArray = least - np.abs(duals) @ second
    return found
