"""Delta at every epsilon, from below and from above: a band that holds everywhere at once, for one pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box, Pair
from sfumato.audit.boxes.runs import as_box, as_pair
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.fixed.bound import Draw, require_runs
from sfumato.audit.fixed.choice import SIGNS
from sfumato.audit.fixed.events import Candidate, shares, thresholds
from sfumato.audit.fixed.fitting import fit_scorers
from sfumato.audit.fixed.ratio import delta_lower
from sfumato.audit.fixed.scorers import Scorer
from sfumato.audit.verdict import DeltaBand, Witness
from sfumato.errors import InvalidParameter

TRAIN, SELECT = 0.1, 0.1
"""Shares of the runs that fit the scorers and choose the events; the rest tests them."""
CAUTION = 3.0
"""Standard deviations taken off an event's promise, since the best of many has been lucky."""
Numbers = npt.NDArray[np.int64]


def profile(
    box: Box | Callable[..., Any],
    pair: Pair | tuple[Any, Any],
    *,
    epsilons: Sequence[float],
    runs: int = 200_000,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> DeltaBand:
    """A band for delta(epsilon), each half of it erring with half of the allowed chance.

    From below, an event chosen on a fifth of the runs is tested exactly on the others, for each
    epsilon. From above, delta(epsilon) = P(E) - e**epsilon Q(E) for one event E, which is unknown
    but does not depend on the runs; its share in all of them is at most that of the best event, and
    differs from its mean by at most one deviation of Bernstein [boucheron13, thm. 2.10]. The number
    of outputs does not enter.

    Args:
        box: A box, or a function of the data: one output, or so many with a parameter `runs`.
        pair: Two neighbors.
        epsilons: From 0 to 700, in order.
        runs: Of both inputs together, at least 100.
        confidence: Between 0 and 1.
        rng: Shuffles the order of the inputs; None for first, second.

    Returns:
        The band, which holds at all epsilons at once.

    Raises:
        InvalidParameter: If a parameter is out of range; nothing was run.
    """
    require_runs(runs, confidence)
    grid = [float(epsilon) for epsilon in epsilons]
    if not grid or any(not 0 <= epsilon < 700 for epsilon in grid) or sorted(grid) != grid:
        raise InvalidParameter(
            f"epsilons must be numbers from 0 to 700 in order, got {epsilons}; nothing was run"
        )
    box, pair = as_box(box), as_pair(pair)
    each = runs // 2
    train, select = int(TRAIN * each), int(SELECT * each)
    held_out = each - train - select
    level = (1 - confidence) / 2 / len(grid)
    draw = Draw.first(box, pair, train, rng)
    scorers = fit_scorers(*draw.rows)
    selection = draw.more(select, rng)
    events = [
        _choose(scorers, *selection, epsilon=epsilon, runs=held_out, level=level)
        for epsilon in grid
    ]
    tested = draw.more(held_out, rng)
    witnesses = [
        _witness(draw, event, tested, epsilon, level)
        for event, epsilon in zip(events, grid, strict=True)
    ]
    # Delta falls as epsilon grows, so what holds at one end holds on.
    lower = np.maximum.accumulate([found.statement.delta for found in witnesses][::-1])[::-1]
    rows = [
        np.concatenate([part[side] for part in (draw.rows, selection, tested)]) for side in (0, 1)
    ]
    numbers = numbered(rows[0], rows[1])
    upper = np.minimum.accumulate(
        [delta_upper(*numbers, epsilon=epsilon, level=level) for epsilon in grid]
    )
    return DeltaBand(
        tuple(grid),
        tuple(lower.tolist()),
        tuple(upper.tolist()),
        confidence,
        2 * each,
        tuple(witnesses),
    )


def numbered(first: FloatArray, second: FloatArray) -> tuple[Numbers, Numbers]:
    """A number for each output of either input, equal where all bits of their rows are, and only there.

    Were two outputs taken for one, the band could end below the truth; so no hash will do.
    """
    rows = np.ascontiguousarray(np.concatenate([first, second]))
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, member = np.unique(whole, return_inverse=True)
    return member[: len(first)], member[len(first) :]


def delta_upper(first: Numbers, second: Numbers, *, epsilon: float, level: float) -> float:
    """A delta that holds in both orders, unless with chance level; from equally many outputs of each."""
    member = np.concatenate([first, second])
    runs, outputs = len(first), int(member.max()) + 1
    p = np.bincount(member[:runs], minlength=outputs) / runs
    q = np.bincount(member[runs:], minlength=outputs) / runs
    ratio = math.exp(epsilon)
    best = max((p - ratio * q).clip(min=0).sum(), (q - ratio * p).clip(min=0).sum())
    low, high = float(best), 1.0
    # The largest delta from which the best event is no more than one deviation away.
    while high - low > 1e-6:
        middle = (low + high) / 2
        near = middle - deviation(middle, ratio, runs, level=level / 2) <= best
        low, high = (middle, high) if near else (low, middle)
    return high


def deviation(delta: float, ratio: float, runs: int, *, level: float) -> float:
    """How far P(E) - ratio Q(E) = delta can be above its share in the runs, unless with chance level.

    The variance of one run of each, a (1 - a) + ratio**2 b (1 - b) with a - ratio b = delta, is
    largest at a = (1 + ratio + 2 delta) / 4; one run moves the sum by at most ratio [boucheron13,
    thm. 2.10].
    """
    share = min(1.0, (1 + ratio + 2 * delta) / 4)
    other = share - delta
    variance = share * (1 - share) + ratio * other - other**2
    reach = math.log(1 / level) / runs
    return ratio * reach / 3 + math.sqrt((ratio * reach / 3) ** 2 + 2 * variance * reach)


def _choose(
    scorers: tuple[Scorer, ...],
    rows1: FloatArray,
    rows2: FloatArray,
    *,
    epsilon: float,
    runs: int,
    level: float,
) -> Candidate:
    best, promise = None, -math.inf
    ratio, selected = math.exp(epsilon), min(len(rows1), len(rows2))
    critical = float(stats.norm.isf(level)) / math.sqrt(runs) + CAUTION / math.sqrt(selected)
    for scorer in scorers:
        scores = scorer.score(rows1), scorer.score(rows2)
        cuts = thresholds(*scores)
        for sign in SIGNS:
            more, less = (shares(one, cuts, sign) for one in (scores if sign > 0 else scores[::-1]))
            other = np.minimum(1.0, less + 0.5 / selected)
            spread = np.sqrt(more * (1 - more) + ratio**2 * other * (1 - other))
            value = more - ratio * less - critical * spread
            at = int(np.argmax(value))
            if value[at] > promise:
                promise = float(value[at])
                best = Candidate(
                    scorer, float(cuts[at]), sign, float(more[at]), float(less[at]), promise
                )
    if best is None:
        raise InvalidParameter(
            "all outputs of both inputs are the same one; there is no event to test"
        )
    return best


def _witness(
    draw: Draw, event: Candidate, rows: tuple[FloatArray, FloatArray], epsilon: float, level: float
) -> Witness:
    hits = int(event.contains(rows[0]).sum()), int(event.contains(rows[1]).sum())
    pair = draw.pair
    if event.sign < 0:
        hits, pair = hits[::-1], Pair(pair.second, pair.first, pair.name)
    runs = len(rows[0]), len(rows[1])
    delta = delta_lower(hits[0], runs[0], hits[1], runs[1], epsilon=epsilon, level=level)
    return Witness(pair, event.event, EpsilonDelta(epsilon, delta), hits, runs, draw.encoder)
