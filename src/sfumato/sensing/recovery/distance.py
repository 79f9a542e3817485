"""How far a recovery is off, where the truth is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._validate import real_array
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.spaces import Line
from sfumato.transport import emd, emd_apart


def emd_of(estimate: Recovery | Estimate, sources: npt.ArrayLike) -> float:
    """How far the recovered mass would have to move, on average, to be where the sources are.

    Both are scaled to total 1 first, as in the papers; the metric is the space's own.

    Args:
        estimate: A recovery, or the estimate of another estimator.
        sources: The true mass of each cell.

    Returns:
        The earth mover's distance, in the unit of the space.

    Raises:
        InvalidParameter: If nothing was recovered, or sources are not one mass for each cell.
    """
    space = estimate.operator.space
    if isinstance(estimate, Recovery):
        if estimate.status != "optimal":
            raise InvalidParameter(
                f"only recovered sources have a distance, the status is {estimate.status}"
            )
        return emd(estimate.estimate, sources, space, normalize=True).value
    if not estimate.masses.size or estimate.masses.sum() <= 0:
        raise InvalidParameter("only sources with some mass have a distance, the estimate has none")
    truth = real_array("sources", sources)
    if truth.shape != (space.size,):
        raise InvalidParameter(
            f"sources must be one mass for each of {space.size} cells, got shape {truth.shape}"
        )
    cells = np.flatnonzero(truth)
    if isinstance(space, Line):
        # Its own sums are exact, and need no general solver.
        at, index = np.unique(
            np.concatenate([estimate.places[:, 0], space.positions[cells]]), return_inverse=True
        )
        have, want = np.split(index, [estimate.masses.size])
        return emd(
            np.bincount(have, weights=estimate.masses, minlength=at.size),
            np.bincount(want, weights=truth[cells], minlength=at.size),
            Line.at(at),
            normalize=True,
        ).value
    apart = space.distances_between(estimate.places, space.places(cells))
    return emd_apart(estimate.masses, truth[cells], apart, normalize=True).value


def error_of_nothing(operator: Operator, sources: npt.ArrayLike) -> float:
    """How far mass spread evenly over all cells is from the sources: what can be said without a reading."""
    space = operator.space
    return emd(np.ones(space.size), sources, space, normalize=True).value


def error_at_most(estimate: Estimate) -> float:
    """How far an estimate can be from any sources at all, without a reading: from all of them at one cell.

    The distance is convex in the sources, so it is largest where all are together.
    """
    space = estimate.operator.space
    held = estimate.masses > 0
    apart = space.distances_between(estimate.places[held], space.places(np.arange(space.size)))
    shares = estimate.masses[held] / estimate.masses[held].sum()
    return float((shares @ apart).max())
