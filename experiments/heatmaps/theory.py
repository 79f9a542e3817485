"""What only checks Theorem 3.1 of [ghazi23]: the best sparse map, and the pyramid's additive term."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.heatmap import Tiles
from sfumato.heatmap.analysis import find_hotspots
from sfumato.spaces import Grid

# The distances between all cells of level 6 are 16 million.
FINEST_FIT = 6


@dataclass(frozen=True, slots=True)
class SparseFit:
    """How near, in EMD, the best map with mass on k cells comes to a map: between two proven bounds."""

    lower: float
    upper: float


def best_k_sparse(values: npt.ArrayLike, grid: Grid, k: int) -> SparseFit:
    """The least EMD between a map, normalized to mass 1, and any map on k cells [ghazi23, sec. 1.1].

    In sides of the map. Mass goes to the nearest of the k cells: the k-median problem, of which
    `find_hotspots` has a solution and a bound by its Lagrangian dual [fisher81].

    >>> fit = best_k_sparse([1, 0, 0, 1], Grid(1), 1)
    >>> fit.upper, round(fit.lower, 6)
    (0.5, 0.5)
    """
    if grid.levels > FINEST_FIT or k < 1:
        raise InvalidParameter(
            f"a sparse fit takes a grid of at most {FINEST_FIT} levels and k of at least 1, "
            f"got {grid.levels} and {k}; nothing was fitted"
        )
    masses = np.asarray(values, dtype=np.float64)
    if masses.shape != (grid.size,) or not (np.all(masses >= 0) and 0 < masses.sum() < math.inf):
        raise InvalidParameter(
            f"a sparse fit takes one mass of at least 0 for each of {grid.size} cells, some above 0; "
            "nothing was fitted"
        )
    cells = np.flatnonzero(masses)
    if cells.size <= k:
        return SparseFit(0.0, 0.0)
    levels = np.full(cells.size, grid.levels)
    found = find_hotspots(Tiles(grid, levels, cells, masses[cells] / masses.sum()), k)
    return SparseFit(found.lower, found.distance)


def additive_term(
    k: int, epsilon: float, *, users: int, ratio: float = 0.5, constant: float = 1.0
) -> float:
    """The error of a private map beyond `ratio` times the best k-sparse one: constant sqrt(k) / (ratio e n).

    Theorem 3.1 of [ghazi23] has it for some constant with probability 0.99, in EMD on the unit
    square.

    >>> additive_term(4, 1.0, users=100)
    0.04
    """
    if not (k >= 1 and epsilon > 0 and users >= 1 and 0 < ratio < 1):
        raise InvalidParameter(
            f"the additive term needs k and users of at least 1, epsilon above 0 and a ratio in (0, 1), "
            f"got {k}, {users}, {epsilon}, {ratio}; nothing was computed"
        )
    return constant * math.sqrt(k) / (ratio * epsilon * users)
