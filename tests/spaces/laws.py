"""Laws that hold on every space, written once."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

import numpy as np

from sfumato.spaces import Space


def assert_metric(space: Space, cells: Iterable[int]) -> None:
    """Hold the metric axioms on all triples of cells; exact, so give it lengths that add without rounding."""
    cells = list(cells)
    distance = {(i, j): space.distance(i, j) for i in cells for j in cells}
    for i in cells:
        for j in cells:
            assert distance[i, j] == distance[j, i]
            assert (distance[i, j] == 0) == (i == j)
            assert 0 <= distance[i, j] <= space.diameter
            assert all(distance[i, j] <= distance[i, k] + distance[k, j] for k in cells)


def shortest_walks(space: Space, start: int, *, step: Callable[[int, int], float]) -> list[float]:
    """Lengths of the shortest walks over neighbor steps, by a Dijkstra that never asks for a distance."""
    best = [np.inf] * space.size
    best[start] = 0.0
    heap = [(0.0, start)]
    while heap:
        length, cell = heapq.heappop(heap)
        if length > best[cell]:
            continue
        for other in map(int, space.neighbors(cell)):
            longer = length + step(cell, other)
            if longer < best[other]:
                best[other] = longer
                heapq.heappush(heap, (longer, other))
    return best


def assert_neighbors(space: Space) -> None:
    """Hold that neighbors are sorted, mutual, and never the cell itself."""
    near = [space.neighbors(i).tolist() for i in range(space.size)]
    for i, cells in enumerate(near):
        assert space.neighbors(i).dtype == np.int64
        assert cells == sorted(set(cells))
        assert i not in cells
        assert all(i in near[j] for j in cells)
