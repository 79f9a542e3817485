"""How far all readings move in l1 when a unit moves: what Laplace noise is calibrated to, never too small."""

from __future__ import annotations

import math

import numpy as np

from sfumato.sensing.model.changes import UNIT, pairs
from sfumato.sensing.model.operators.protocol import Operator


def l1_changes(operator: Operator, *, over_distance: bool) -> float:
    """The largest sum of what single readings change when a unit moves one step, or a bound above it.

    For any operator it is at most sqrt(m) times the change in l2, and at most what sensors change one by one,
    added up. Where more is known (`Operator.l1_changes`) the sum is bounded move by move: the sensors that a
    move changes most are others for every move. What is known of a class is not believed of one that is
    derived from it and says its `changes` itself.
    """
    found = operator.changes(over_distance=over_distance)
    count = len(found.per_sensor)
    more = (1 + found.error) * (1 + (count + 16) * 2 * UNIT)
    bounds = [found.l2 * math.sqrt(count) * more, math.fsum(found.per_sensor.tolist()) * more]
    if _definer(operator, "l1_changes") <= _definer(operator, "changes"):
        bounds.append(operator.l1_changes(over_distance=over_distance))
    return min(bounds)


def _definer(operator: Operator, name: str) -> int:
    """How far up the bases of its class the one is that says this."""
    return next(at for at, one in enumerate(type(operator).__mro__) if name in vars(one))


def column_l1_changes(operator: Operator, *, over_distance: bool) -> float:
    """The largest sum from the columns of all pairs of neighboring cells, where sources are at cells alone."""
    matrix = operator.dense()
    most = 0.0
    for begin, end, distances in pairs(operator.space, len(matrix)):
        if not end.size:
            continue
        sums = np.abs(matrix[:, begin] - matrix[:, end]).sum(axis=0)
        most = max(most, float((sums / distances if over_distance else sums).max()))
    return most * (1 + (len(matrix) + 16) * 2 * UNIT)
