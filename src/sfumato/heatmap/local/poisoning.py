"""How far dishonest devices can move a local map: for what reports say to first order, before the prior."""

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
        largest_move: The most by which the share of any one cell moves, as reports alone have it, to
            first order, before the prior.
        honest_move: What they could do by lying about where they are and following the rule:
            their share of all reports.
    """

    devices: int
    reports: int
    largest_move: float
    honest_move: float


def poisoning_bound(evidence: Evidence, devices: int, masses: FloatArray) -> PoisoningBound:
    """The most that replaced reports move the share of any cell, to first order at a map, before the prior.

    Shares are masses + C (sum of L / P - n): one report instead of another moves that of a cell by at
    most the range of (C L / P) over all reports that can be sent, k of them by k times that. Liars
    choose their reports: the range is over all outputs of a disk channel, over all subsets of the size
    of subset selection, over all sets of cells for unary encoding, and over those for local hashing as
    well, which can send fewer.

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
    more = evidence.odds - 1
    if evidence.whole_family:
        likely = evidence.family.astype(np.float64)
        pulls = more * (likely @ covariance) / (1 + more * (likely @ masses))[:, None]
        ranges = pulls.max(axis=0) - pulls.min(axis=0)
    else:
        sizes = evidence.sizes or (0, masses.size)
        gains, weights = more * covariance, more * masses
        ranges = largest_ratios(gains, weights, sizes) + largest_ratios(-gains, weights, sizes)
    widest = float(ranges.max())
    return PoisoningBound(
        devices=devices,
        reports=round(evidence.users),
        largest_move=devices * widest,
        honest_move=devices / max(evidence.users, 1.0),
    )


def largest_ratios(gains: FloatArray, weights: FloatArray, sizes: tuple[int, int]) -> FloatArray:
    """The most of (sum of gains) / (1 + sum of weights) over all sets of so many cells, for each row of gains.

    By Dinkelbach's algorithm: the best set for a ratio r has the cells of largest gain - r weight, and
    the ratio of that set is the next r; it only rises, through finitely many sets, and where it
    no longer does it is the largest.
    """
    ratios = np.full(len(gains), -np.inf)
    better = _ratios_of_best(gains, weights, sizes, np.zeros(len(gains)))
    while (better > ratios).any():
        ratios = np.maximum(ratios, better)
        better = _ratios_of_best(gains, weights, sizes, ratios)
    return ratios


def _ratios_of_best(
    gains: FloatArray, weights: FloatArray, sizes: tuple[int, int], ratios: FloatArray
) -> FloatArray:
    least, most = sizes
    worth = gains - ratios[:, None] * weights
    order = np.argsort(-worth, axis=1)[:, :most]
    taken = np.take_along_axis(worth, order, axis=1) > 0
    taken[:, :least] = True
    top = (np.take_along_axis(gains, order, axis=1) * taken).sum(axis=1)
    return np.asarray(top / (1 + (weights[order] * taken).sum(axis=1)))
