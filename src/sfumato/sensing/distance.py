"""How far a recovery is off, where the truth is known."""

from __future__ import annotations

import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.sensing.recovery import Recovery
from sfumato.spaces import Points
from sfumato.transport import emd, emd_euclidean


def emd_of(recovery: Recovery, sources: npt.ArrayLike) -> float:
    """How far the recovered mass would have to move, on average, to be where the sources are.

    Both are scaled to total 1 first, as in the papers; the metric is the space's own.
    """
    if recovery.status != "optimal":
        raise InvalidParameter(f"only recovered sources have a distance, the status is {recovery.status}")
    space = recovery.operator.space
    if not isinstance(space, Points):
        return emd(recovery.estimate, sources, space, normalize=True).value
    if space.norm != "euclidean":
        raise InvalidParameter(f"between points only Euclidean distances are moved over, got {space.norm}")
    return emd_euclidean(recovery.estimate, sources, space.positions, normalize=True).value
