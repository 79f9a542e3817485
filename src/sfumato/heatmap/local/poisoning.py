"""How far dishonest devices can move a local map: bounded for what reports say, before any prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.local.decoder import Evidence


@dataclass(frozen=True, slots=True)
class PoisoningBound:
    """What k devices that send what they like can do to the share of a cell.

    Attributes:
        devices: How many are dishonest.
        reports: How many reports there are, theirs among them.
        largest_move: The most by which the share of any one cell moves, as reports alone have it.
        honest_move: What they could do by lying about where they are and following the rule:
            their share of all reports.
    """

    devices: int
    reports: int
    largest_move: float
    honest_move: float


def poisoning_bound(evidence: Evidence, devices: int, masses: FloatArray) -> PoisoningBound:
    """The most that replaced reports move the share of any cell, to first order at a map.

    Shares are masses + C (sum of L / P - n): one report instead of another moves that of a cell by at
    most the range of (C L / P) over all reports, k of them by k times that.

    Args:
        evidence: The reports of one question.
        devices: How many are dishonest.
        masses: The shares of the cells at which it is worked out, adding up to 1.

    Returns:
        The bound.

    Raises:
        InvalidParameter: There are more dishonest devices than reports.

    """
    if not 0 <= devices <= evidence.users:
        raise InvalidParameter(
            f"dishonest devices are 0 to {evidence.users:g}, all who reported, got {devices}"
        )
    _, covariance = evidence.expanded(masses)
    each = 1 + (evidence.odds - 1) * evidence.family.astype(np.float64)
    pulls = (each / (each @ masses)[:, None]) @ covariance
    widest = float((pulls.max(axis=0) - pulls.min(axis=0)).max())
    return PoisoningBound(
        devices=devices,
        reports=round(evidence.users),
        largest_move=devices * widest,
        honest_move=devices / max(evidence.users, 1.0),
    )
