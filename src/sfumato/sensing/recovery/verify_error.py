"""Check a certified error without trusting whoever made it: from operator, readings and its proofs alone.

It shares no code with the search (`solver` is not imported, and a test holds that). It is written to be read,
not to be fast.
"""

from __future__ import annotations

import math
from dataclasses import fields
from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.certified_error import (
    ErrorCertificate,
    LaplaceNoise,
    laplace_quantile,
    ranked_directions,
)
from sfumato.sensing.recovery.certified_tree import TreeCertificate
from sfumato.spaces import Line

SLACK = 1e-7
"""By how much rounding may move a direction or the bound, in parts of the line."""
ROUNDING = 1e-12
"""By how much it may move a term of a proof, of its size: not of `max_mass`, which may be anything."""
MOST_TERMS = 1 << 31  # of a sum: nobody averages so many rounds
MOST_ON_TREES = 12  # directions that are looked at in a plane or on a graph
FINER = 32  # nodes of a cell: more than a search has of a part, so that its bend is never the smaller one


def check_error(
    found: ErrorCertificate | TreeCertificate,
    operator: Operator,
    readings: FloatArray,
    estimate: Estimate,
    *,
    sigma: float,
    max_mass: float,
) -> str:
    """Why a certificate does not hold; "" if it does.

    One along a tree is checked by `verify_tree`. On a line, for each cut and each side, no sources that
    explain the readings have a larger share there: with h_i the most of c_i - M_i'z in piece i and
    e = quantile sigma, y'z + e |z|_1 + max_mass sum_i cells_i (h_i - b)_+ is at most 0.

    Args:
        found: The certificate.
        operator: Maps masses of cells to readings.
        readings: One noisy reading for each sensor.
        estimate: The answer that it is of.
        sigma: Standard deviation of the noise of a reading.
        max_mass: The most mass that a cell may hold.

    Returns:
        A sentence, or nothing.
    """
    wrong = _no_numbers(found, estimate, sigma=sigma, max_mass=max_mass)
    if wrong:
        return wrong
    if isinstance(found, TreeCertificate):
        from sfumato.sensing.recovery.verify_tree import check_tree

        return check_tree(found, operator, readings, estimate, sigma=sigma, max_mass=max_mass)
    if not isinstance(operator.space, Line):
        return "it is of a line, and the site is none"
    wrong = wrong_directions(found, operator, sigma=sigma, max_mass=max_mass)
    if wrong:
        return wrong
    may_move = sigma * quantiles(found)
    positions = operator.space.places(np.arange(operator.space.size))[:, 0]
    edges = _edges(positions)
    # The piece of each cell: how many cuts are to the left of it; a cut at a cell counts it to its left.
    piece = np.searchsorted(found.cuts, positions, side="left")
    cuts = found.cuts.size
    if set(piece.tolist()) != set(range(cuts + 1)):
        return "its cuts are not between the cells of the line"
    seen = found.directions.T @ readings
    for row, z in enumerate(found.duals):
        cut, left = row % cuts, row < cuts
        stated = float(found.high[cut]) if left else 1 - float(found.low[cut])
        if stated >= 1:
            continue  # it says nothing
        least = _least_in_cells(operator, found.directions @ z, edges if found.anywhere else None)
        inside = (piece <= cut) if left else (piece > cut)
        over = inside - stated - least - ROUNDING * (inside + abs(stated) + np.abs(least))
        excess = np.zeros(cuts + 1)
        np.maximum.at(excess, piece, np.maximum(over, 0.0))
        cells = np.bincount(piece, minlength=cuts + 1)
        if not proved(seen, z, may_move, max_mass * cells * excess):
            side = "left" if left else "right"
            return f"the share to the {side} of {found.cuts[cut]:g} is not proved to be at most {stated:g}"
    bound, half = _distance(found, estimate, positions, edges, piece)
    slack = SLACK * float(edges[-1] - edges[0])
    if not bound <= found.bound + slack:
        return f"the shares bound the distance by {bound:g}, not by {found.bound:g}"
    if not found.least <= half + slack:
        return f"the shares bound an answer half way by {half:g}, not by {found.least:g}"
    return ""


def quantiles(found: ErrorCertificate | TreeCertificate) -> FloatArray:
    """What noise exceeds in no direction, with the chance that is stated, in sigma."""
    count = found.directions.shape[1]
    if found.laplace is None:
        return np.full(count, float(ndtri((1 + found.level ** (1 / count)) / 2)))
    failure = (1 - found.level) / count
    each = [laplace_quantile(one, found.laplace, failure) for one in found.directions.T]
    return np.array(each)


def _no_numbers(
    found: ErrorCertificate | TreeCertificate,
    estimate: Estimate,
    *,
    sigma: float,
    max_mass: float,
) -> str:
    """Refuse what no comparison could: NaN is never too large."""
    if not all(np.isfinite(one).all() for one in _numbers(found)):
        return "it has a number that is not finite"
    if not 0 < found.level < 1:
        return f"its chance is a number between 0 and 1, not {found.level:g}"
    if found.laplace is not None and not _is_noise(found.laplace):
        return "its Laplace noise is none"
    if not (0 < sigma < math.inf and 0 < max_mass < math.inf):
        return "it is of readings whose noise, and largest mass, are known"
    held = estimate.masses
    if not (np.isfinite(held).all() and (held >= 0).all() and held.sum() > 0):
        return "it is of an answer that has mass"
    return ""


def _is_noise(laplace: LaplaceNoise) -> bool:
    """Whether sums of it may have sigma, or more: less would prove too much, and no part is more than sigma."""
    if not (1 <= laplace.terms <= MOST_TERMS and 0 < laplace.share <= 1 + SLACK):
        return False
    return laplace.share**2 * laplace.terms >= 1 - ROUNDING


def _numbers(found: ErrorCertificate | TreeCertificate) -> list[FloatArray]:
    told = (getattr(found, one.name) for one in fields(found))
    return [np.asarray(one, dtype=np.float64) for one in told if one is not None]


def proved(seen: FloatArray, dual: FloatArray, may_move: FloatArray, over: FloatArray) -> bool:
    """Whether y'z + e |z|_1 + what cells may be over is at most 0, up to its own rounding."""
    reads, moves, cells = seen * dual, may_move * np.abs(dual), over.sum()
    size = np.abs(reads).sum() + moves.sum() + cells
    return bool(reads.sum() + moves.sum() + cells <= ROUNDING * size < math.inf)


def wrong_directions(
    found: ErrorCertificate | TreeCertificate,
    operator: Operator,
    *,
    sigma: float,
    max_mass: float,
    most: int | None = None,
) -> str:
    """Noise is Gaussian in orthonormal directions that were chosen without the readings."""
    directions = found.directions
    if directions.ndim != 2 or directions.shape[0] != operator.shape[0]:
        return "its directions do not fit the sensors"
    if np.abs(directions.T @ directions - np.eye(directions.shape[1])).max() > SLACK:
        return "its directions are not orthonormal"
    level = gains_of(operator)  # what an offset of 1 adds to each reading
    if found.offset and np.abs(level @ directions).max() > SLACK * float(level @ level):
        return "its directions see the offset"
    again, ends = ranked_directions(
        operator, sigma=sigma, max_mass=max_mass, offset=found.offset, most=most
    )
    # Turned ones span the same, and who turns them by the readings chooses what noise may do.
    same = again.shape == directions.shape and all(
        np.allclose(
            again[:, :end] @ again[:, :end].T,
            directions[:, :end] @ directions[:, :end].T,
            atol=1e-6,
        )
        for end in ends
    )
    return "" if same else "its directions are not those that the site and the noise give"


def _edges(positions: FloatArray) -> FloatArray:
    middle = (positions[1:] + positions[:-1]) / 2
    first, last = 2 * positions[0] - middle[0], 2 * positions[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])


def _least_in_cells(operator: Operator, dual: FloatArray, edges: FloatArray | None) -> FloatArray:
    """The least that a unit in each cell reads, weighed by a dual vector; anywhere between edges if given.

    Between two nodes h apart it is below the lower one by at most h^2 / 8 times the largest second derivative
    in the cell, which is small far from all sensors: a search counts on that too.
    """
    width = operator.kernel_width
    if edges is None or width is None:
        return dual @ operator.columns(np.arange(operator.space.size))
    sensors = operator.sensors.positions[:, 0]
    peak = 1 / (width * math.sqrt(2 * math.pi))
    least = np.empty(edges.size - 1)
    for cell, (begin, end) in enumerate(pairwise(edges)):
        nodes = np.linspace(begin, end, FINER + 1)
        reads = dual @ (peak * np.exp(-(((sensors[:, np.newaxis] - nodes) / width) ** 2) / 2))
        middle, half = (begin + end) / 2, (end - begin) / 2
        near, far = np.maximum(np.abs(sensors - middle) - half, 0), np.abs(sensors - middle) + half
        height = peak * np.exp(-((near / width) ** 2) / 2)
        second = np.minimum(height * steepest_bend(near, far, width), peak / width**2)
        least[cell] = reads.min() - ((end - begin) / FINER) ** 2 / 8 * (np.abs(dual) @ second)
    return least


def steepest_bend(near: FloatArray, far: FloatArray, width: float) -> FloatArray:
    """The most of a kernel's height that its second derivative is, |d^2 / width^2 - 1| / width^2."""
    ends = np.abs((near / width) ** 2 - 1), np.abs((far / width) ** 2 - 1)
    return np.asarray(np.maximum(*ends) / width**2)


def _distance(
    found: ErrorCertificate,
    estimate: Estimate,
    positions: FloatArray,
    edges: FloatArray,
    piece: IntArray,
) -> tuple[float, float]:
    """How far a distribution function within the band can be from the estimate's, and from half way."""
    low = np.concatenate([[0.0], found.low, [1.0]])
    high = np.concatenate([[0.0], found.high, [1.0]])
    order = np.argsort(estimate.places[:, 0], kind="stable")
    at, total = estimate.places[order, 0], float(estimate.masses.sum())
    shares = np.cumsum(estimate.masses[order]) / total
    first = edges[:-1] if found.anywhere else positions
    last = edges[1:] if found.anywhere else positions
    marks = np.unique(np.concatenate([at, first, last]))
    area, half = 0.0, 0.0
    for begin, end in pairwise(marks):
        middle = (begin + end) / 2
        reached = np.searchsorted(at, middle, side="right")
        share = float(shares[reached - 1]) if reached else 0.0
        # Mass up to here is at least that left of the piece's begin and at most that left of its end.
        begun, ended = int(np.sum(first < middle)), int(np.sum(last < middle))
        lowest = 0.0 if ended == 0 else low[piece[ended - 1] + (not _goes_on(piece, ended))]
        highest = 0.0 if begun == 0 else high[piece[begun - 1] + 1]
        area += (end - begin) * max(highest - share, share - lowest)
        half += (end - begin) * (highest - lowest) / 2
    return area, half


def _goes_on(piece: IntArray, ended: int) -> bool:
    """Whether the cell after those that have ended is of the same piece as the last of them."""
    return ended < piece.size and bool(piece[ended] == piece[ended - 1])
