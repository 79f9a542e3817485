"""What a posterior is sure of: places with a source near them, and how near; communities."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.places import half_cells
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import CredibleRegion
from sfumato.sensing.recovery.estimators.source_posterior import SourcePosterior

KNOWN = Fraction(1, 2)  # chance beforehand that all masses are the largest
PLACES = 200  # those with most of the expected mass are tried as centers


def bands(
    beliefs: SourcePosterior, *, level: float = 0.9, known: Fraction | float = KNOWN
) -> tuple[CredibleRegion, ...]:
    """The places that have a source near them with this probability, the surest first.

    The first band is the smallest ball that holds a source in a share `level` of the draws; where
    several are as small, as on coarse grids, the one whose center is nearest to sources on average.
    Each draw's source nearest to its center is then taken away, and the next ball is found in what is
    left, until it would be wider than a quarter of the space. Sources stand anywhere in a cell, so a
    band holds whole cells of a line or a grid, not their middles alone. Where cells stand for
    others, radii have their reach added. Each band is a statement of its own: that all of them hold together is
    less likely.

    The smallest ball is found by the draws that then say what it holds; so one standard error of that
    share is added to the level, and taken off what is stated. Where unequal masses are taken for known
    ones, places are far too sure: a smaller `known` is more careful, and wider where they are known.

    Limits: probabilities are those of the posterior; where its beliefs are wrong they are too.

    Args:
        beliefs: Draws, from `posterior`.
        level: The probability of each region, between 0 and 1.
        known: How likely all masses are `max_mass`, beforehand, between 0 and 1.

    Returns:
        The regions, the surest first; none where nothing is sure.

    Raises:
        InvalidParameter: If the level or the chance is out of range.
    """
    for name, value in (("level", level), ("known", known)):
        if not 0 < value < 1:
            raise InvalidParameter(
                f"{name} must lie between 0 and 1, got {value}; no bands were found"
            )
    beliefs = _believed(beliefs, float(known))
    error = math.sqrt(level * (1 - level) * float(np.sum(beliefs.weights**2)))
    asked = min(level + error, 1.0)
    space = beliefs.operator.space
    shares = beliefs.shares
    tried = np.argsort(-shares, kind="stable")[:PLACES]
    tried = np.sort(tried[shares[tried] > 0])
    places = space.places(tried)
    widest = _extent(beliefs.operator) / 4
    left, found, half = beliefs, [], half_cells(beliefs.operator)
    while (left.cells >= 0).any():
        apart = left.nearest(places, beyond=half)
        order = np.argsort(apart, axis=0, kind="stable")
        below = np.cumsum(left.weights[order], axis=0)
        enough = (below >= asked - 1e-12).argmax(axis=0)
        radii = apart[order[enough, np.arange(len(places))], np.arange(len(places))]
        best = _smallest(radii, apart, left.weights)
        # Where a few cells are the whole space, one of them is wide.
        if not radii[best] <= max(widest, float(half.max())):
            break
        held = float(left.weights @ (apart[:, best] <= radii[best])) - error
        # Cells may stand for others as far away as that.
        found.append(
            CredibleRegion(read_only(places[best].copy()), float(radii[best]) + beliefs.reach, held)
        )
        left = _without_nearest(left, places[best])
    return tuple(found)


def _believed(beliefs: SourcePosterior, known: float) -> SourcePosterior:
    """The same draws, weighted as if known masses had been so likely beforehand."""
    if math.isnan(beliefs.known):
        return beliefs
    largest = ((beliefs.masses == beliefs.max_mass) | (beliefs.cells < 0)).all(axis=1)
    weights = beliefs.weights * np.where(largest, known, 1 - known)
    return replace(beliefs, weights=weights / weights.sum())


def _smallest(radii: FloatArray, apart: FloatArray, weights: FloatArray) -> int:
    """The smallest ball; of those as small, the one whose center has sources nearest to it."""
    if not np.isfinite(radii.min()):
        return 0
    equal = np.flatnonzero(radii <= radii.min() * (1 + 1e-12))
    away = weights @ np.minimum(apart[:, equal], radii[equal])
    return int(equal[np.argmin(away)])


def _extent(operator: Operator) -> float:
    """How far apart two cells can be: from the farthest cell of the first to its own farthest."""
    space = operator.space
    every = space.places(np.arange(space.size))
    end = int(np.argmax(space.distances_between(every[:1], every)[0]))
    return float(space.distances_between(every[[end]], every).max())


def _without_nearest(beliefs: SourcePosterior, place: FloatArray) -> SourcePosterior:
    """Draws without the source that is nearest to a place."""
    space = beliefs.operator.space
    cells = np.unique(beliefs.cells[beliefs.cells >= 0])
    apart = np.append(space.distances_between(place[np.newaxis], space.places(cells))[0], np.inf)
    at = np.where(beliefs.cells >= 0, np.searchsorted(cells, beliefs.cells), len(cells))
    rows = np.arange(len(at))
    gone = np.argmin(apart[at], axis=1)
    left, masses = beliefs.cells.copy(), beliefs.masses.copy()
    left[rows, gone], masses[rows, gone] = -1, 0.0
    return replace(beliefs, cells=left, masses=masses)


def community_beliefs(beliefs: SourcePosterior, labels: npt.ArrayLike) -> FloatArray:
    """How likely each community holds the most mass, the label of each cell given.

    Labels count from 0.
    """
    groups = np.asarray(labels)
    size = beliefs.operator.space.size
    if groups.shape != (size,) or groups.dtype.kind not in "iu" or (groups < 0).any():
        raise InvalidParameter(
            f"labels must be one whole number from 0 on for each of {size} cells, got shape {groups.shape}; "
            "nothing was computed"
        )
    count = int(groups.max()) + 1
    label = np.where(beliefs.cells >= 0, groups[beliefs.cells], count)
    held = np.stack([(beliefs.masses * (label == i)).sum(axis=1) for i in range(count)], axis=1)
    most = held.argmax(axis=1)
    return np.asarray(np.bincount(most, weights=beliefs.weights, minlength=count), dtype=np.float64)
