"""What every estimator gives: places with masses, on the cells of the space or between them."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.spaces import Graph, Grid, Line, Points


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Where an estimator puts sources: a row of coordinates and a mass for each; on a graph, its node."""

    operator: Operator
    places: FloatArray
    masses: FloatArray

    def __post_init__(self) -> None:
        if self.places.ndim != 2 or self.masses.shape != (len(self.places),):
            raise InvalidParameter(
                f"an estimate is a place and a mass for each source, got shapes {self.places.shape} and "
                f"{self.masses.shape}"
            )
        object.__setattr__(self, "places", read_only(self.places + 0.0))
        object.__setattr__(self, "masses", read_only(self.masses + 0.0))


def places_of(space: Line | Grid | Graph | Points, cells: IntArray) -> FloatArray:
    """A row of coordinates for each cell: what an estimate and a picture call its place.

    Args:
        space: The space of the cells.
        cells: Numbers of cells.

    Returns:
        A row of coordinates for each cell; on a graph, its node.
    """
    return space.places(cells)


def distances_between(
    space: Line | Grid | Graph | Points, places: FloatArray, others: FloatArray
) -> FloatArray:
    """How far each of some places is from each of others, by the metric of the space.

    Args:
        space: The space of the places.
        places: Rows of coordinates; on a graph, nodes.
        others: Rows of coordinates.

    Returns:
        Distances, places by others, in the unit of the space.

    >>> import numpy as np
    >>> distances_between(Line(10), np.array([[0.25]]), np.array([[0.5], [1.0]]))
    array([[0.25, 0.75]])
    """
    return space.distances_between(places, others)
