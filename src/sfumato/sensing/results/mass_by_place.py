"""The places that a recovery tells of, each with its mass and, where one is sure, its band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato._types import FloatArray
from sfumato._validate import read_only
from sfumato.spaces import Graph, Grid, Line, Points

if TYPE_CHECKING:
    from sfumato.sensing.recovery.answer import CredibleRegion, Estimate
    from sfumato.sensing.results.recovery import RecoveryResult

MAX_CLUSTERS = 5  # of mass that lies in no band; the rest is one row without a place
CRUMB = 0.005  # of all mass: less is left out


@dataclass(frozen=True, slots=True, eq=False)
class ToldPlace:
    """A place, the mass there, and the band that holds a source with a probability.

    Attributes:
        place: Its coordinates, or the number of a node; None for mass that is spread elsewhere.
        mass: The answer's mass in the band, or around the place.
        radius: Of the band; None where no band is there.
        probability: That a source is within the radius; None where no band is there.
    """

    place: FloatArray | None
    mass: float
    radius: float | None = None
    probability: float | None = None


def told_places(result: RecoveryResult) -> tuple[ToldPlace, ...]:
    """Where a recovery has sources: its bands first, the surest before others, then what is in none.

    Mass in several bands counts to the nearest of them. Estimators without bands tell each of their
    sources.

    Args:
        result: A recovery.

    Returns:
        The places; none where nothing can be told.
    """
    answer = result.answer
    if answer is None:
        return ()
    found = answer.estimate
    if answer.regions is None:
        return tuple(
            ToldPlace(read_only(place.copy()), float(mass))
            for place, mass in zip(found.places, found.masses, strict=True)
        )
    return _with_bands(result.site.operator.space, found, answer.regions)


def _with_bands(
    space: Line | Grid | Graph | Points, found: Estimate, regions: tuple[CredibleRegion, ...]
) -> tuple[ToldPlace, ...]:
    left = found.masses.copy()
    total = float(left.sum())
    told: list[ToldPlace] = []
    if regions and left.size:
        centers = np.array([one.place for one in regions])
        apart = space.distances_between(centers, found.places)
        reach = np.array([one.radius for one in regions])[:, np.newaxis]
        near = np.where(apart <= reach * (1 + 1e-9) + 1e-12, apart, np.inf)
        nearest = near.argmin(axis=0)
        inside = np.isfinite(near.min(axis=0))
        told += [
            ToldPlace(
                one.place,
                float(left[inside & (nearest == number)].sum()),
                one.radius,
                one.probability,
            )
            for number, one in enumerate(regions)
        ]
        left[inside] = 0.0
    return (*told, *_clusters(space, found, left, total))


def _clusters(
    space: Line | Grid | Graph | Points, found: Estimate, left: FloatArray, total: float
) -> list[ToldPlace]:
    """The largest masses that are left, each with what is one cell around it, and the rest."""
    step = spacing(space) * (1 + 1e-6)
    rows: list[ToldPlace] = []
    while len(rows) < MAX_CLUSTERS and left.max(initial=0) > 0:
        top = int(left.argmax())
        mine = space.distances_between(found.places[[top]], found.places)[0] <= step
        mass = float(left[mine].sum())
        if mass < CRUMB * total:
            break
        at = left[mine] @ found.places[mine] / mass if step else found.places[top]
        rows.append(ToldPlace(read_only(np.asarray(at, dtype=np.float64).copy()), mass))
        left[mine] = 0.0
    rest = float(left.sum())
    return [*rows, ToldPlace(None, rest)] if rest >= CRUMB * total > 0 else rows


def spacing(space: Line | Grid | Graph | Points) -> float:
    """How far neighboring cells are apart; 0 where they are places of their own, nodes or desks."""
    if isinstance(space, Line):
        return float(np.median(np.diff(space.positions))) if space.size > 1 else 0.0
    if isinstance(space, Grid):
        west, south, east, north = space.bounds
        return max(east - west, north - south) / float(space.side)
    return 0.0
