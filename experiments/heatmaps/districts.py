"""Zones as people draw them, in the unit square around the people of a place: what totals are tried on.

Districts are cells of nearest sites, with borders bent at random or following what is there: crests
of the density, as main streets do, or its valleys, as rivers do. Others are thin (roads and
straight lines), tiny (around venues, and anywhere), or nested in a district. Sizes are in cells of
level 8, of which zoom counts none finer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

FloatArray = npt.NDArray[np.float64]

CELL = 1 / 256
# Pixels a side of pictures that borders follow: no multiple of a cell is one of a pixel.
PIXELS = 300
KINDS = ("districts", "along streets", "along valleys", "thin", "tiny", "nested")


def zones(
    places: FloatArray, rng: np.random.Generator, *, districts: int = 10, others: int = 16
) -> dict[str, list[Any]]:
    """Shapely polygons by kind, of places [n, 2] where people are; `others` of kinds that cut up nothing."""
    sites = places[rng.choice(len(places), districts)] + rng.normal(0, 0.02, (districts, 2))
    sites = np.clip(sites, 0.01, 0.99)
    cut = list(bent_districts(sites, rng))
    density = picture(places)
    found = {
        "districts": cut,
        "along streets": list(followed(density, sites)),
        "along valleys": list(followed(-density, sites)),
        "thin": [*roads(density, places, rng, others // 2), *lines(rng, others - others // 2)],
        "tiny": list(tiny(places, rng, others)),
        "nested": list(nested(cut, others)),
    }
    return {kind: [one for one in some if one.area > 0] for kind, some in found.items()}


def picture(places: FloatArray, sigma: float = 1.0) -> FloatArray:
    """The logarithm of how many are near each pixel, [row, column], row 0 at the lowest y."""
    edges = np.linspace(0, 1, PIXELS + 1)
    counts = np.histogram2d(places[:, 1], places[:, 0], bins=(edges, edges))[0]
    return np.asarray(np.log(gaussian_filter(counts, sigma) + 1e-3))


def bent_districts(sites: FloatArray, rng: np.random.Generator) -> Iterator[Any]:
    """Nearest-site cells under a random smooth deformation of the square: borders stay shared."""
    waves = gaussian_filter(rng.normal(size=(2, 64, 64)), (0, 3, 3), mode="nearest")
    waves *= 0.02 / waves.std()
    inside = shapely.box(0.0, 0.0, 1.0, 1.0)
    cells = shapely.voronoi_polygons(shapely.MultiPoint(sites), extend_to=shapely.box(-1, -1, 2, 2))

    def bend(points: FloatArray) -> FloatArray:
        at = np.clip(points, 0, 1).T[::-1] * 63
        moves = [map_coordinates(one, at, order=1, mode="nearest") for one in waves]
        return np.asarray(points + np.stack(moves, axis=1))

    for cell in cells.geoms:
        dense = shapely.segmentize(
            shapely.intersection(cell, shapely.box(-0.2, -0.2, 1.2, 1.2)), CELL
        )
        yield from parts(
            shapely.intersection(shapely.make_valid(shapely.transform(dense, bend)), inside)
        )


def followed(height: FloatArray, sites: FloatArray) -> Iterator[Any]:
    """Districts of what is reached first from each site, where climbing is slow: borders follow crests."""
    side = len(height)
    starts = np.floor(sites[:, ::-1] * side).astype(int) @ [side, 1]
    nearest = dijkstra(
        ways(np.exp(height - height.max())), directed=False, indices=starts, min_only=True,
        return_predecessors=True,
    )[2].reshape(side, side)  # fmt: skip
    for start in np.unique(starts):
        runs = []
        for row in range(side):
            steps = np.flatnonzero(np.diff(np.concatenate([[0], nearest[row] == start, [0]])))
            runs += [(a, row, b, row + 1) for a, b in steps.reshape(-1, 2)]
        whole = shapely.union_all(shapely.box(*(np.array(runs).T / side)))
        yield shapely.simplify(whole, 0.5 / side)


def ways(cost: FloatArray) -> Any:
    """The graph of neighboring pixels, eight to each, by what a step between them costs."""
    side = len(cost)
    number = np.arange(side * side).reshape(side, side)
    pairs = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:]),
             (number[:-1, :-1], number[1:, 1:]), (number[:-1, 1:], number[1:, :-1])]  # fmt: skip
    a, b = (np.concatenate([pair[at].ravel() for pair in pairs]) for at in (0, 1))
    steps = np.repeat([1.0, 1.0, 2**0.5, 2**0.5], [pair[0].size for pair in pairs])
    costs = steps * (cost.ravel()[a] + cost.ravel()[b])
    return coo_matrix((costs, (a, b)), (side**2, side**2)).tocsr()


def roads(
    density: FloatArray, places: FloatArray, rng: np.random.Generator, count: int
) -> Iterator[Any]:
    """Strips of 0.1 to 2 cells along the busiest ways between pairs of busy places."""
    side = len(density)
    graph = ways(np.exp(-0.5 * (density - density.min())))
    for _ in range(count):
        ends = np.clip(places[rng.choice(len(places), 2)] * side, 1, side - 3).astype(int)
        first, last = ends[:, 1] * side + ends[:, 0]
        before = dijkstra(graph, directed=False, indices=first, return_predecessors=True)[1]
        way = [last]
        while way[-1] != first and before[way[-1]] >= 0 and len(way) < side // 2:
            way.append(before[way[-1]])
        way = way if len(way) > 2 else [last, last + 1, last + 2]
        row, column = np.divmod(np.array(way), side)
        line = shapely.LineString((np.stack([column, row], axis=1) + 0.5) / side)
        yield shapely.buffer(line, CELL * 0.05 * 20 ** rng.uniform())


def lines(rng: np.random.Generator, count: int) -> Iterator[Any]:
    """Straight strips of 0.1 to 2 cells, anywhere."""
    for _ in range(count):
        line = shapely.LineString(rng.uniform(0.1, 0.9, (2, 2)))
        yield shapely.buffer(line, CELL * 0.05 * 20 ** rng.uniform())


def tiny(places: FloatArray, rng: np.random.Generator, count: int) -> Iterator[Any]:
    """Discs of 0.1 to 4 cells around places where people are, every fourth one anywhere."""
    for at in range(count):
        where = rng.uniform(0.05, 0.95, 2) if at % 4 == 3 else places[rng.choice(len(places))]
        reach = CELL * 0.1 * 40 ** rng.uniform()
        middle = where + rng.uniform(-0.5, 0.5, 2) * reach
        yield shapely.buffer(shapely.Point(middle), reach, quad_segs=3)


def nested(outer: list[Any], count: int) -> Iterator[Any]:
    """Districts shrunk again and again by two cells, each inside the last."""
    for at, zone in enumerate(outer):
        for _ in range(count * (at + 1) // len(outer) - count * at // len(outer)):
            zone = zone.buffer(-2 * CELL)
            yield zone


def parts(shape: Any) -> Iterator[Any]:
    """The polygons of a shape, whatever it is."""
    for one in shapely.get_parts(shape):
        if one.geom_type == "Polygon" and one.area > 1e-9:
            yield one


def coordinates(shape: Any) -> list[Any]:
    """A polygon, or several, as `totals` takes them."""
    return [
        [np.asarray(ring.coords)[:, :2].tolist() for ring in (one.exterior, *one.interiors)]
        for one in parts(shape)
    ]
