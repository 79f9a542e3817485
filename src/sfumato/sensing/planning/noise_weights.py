"""Noise for each sensor: where one sigma for all is set by the worst move, weights tell more at the same cost.

With w_k = 1 / sigma_k**2 a move from i to j costs what sum_k (M_ki - M_kj)**2 w_k is, and what is wanted of
the readings (the difference of two communities, or of neighboring places) is linear in w too: a linear
program. Where all readings share an unknown offset, what is told is the least of linear functions of w, one for
each offset: a linear program again, with those that bind. Its answer is never trusted: gains are rounded down,
and the sensitivity of the operator with these gains, computed as that of any operator, is what noise is
calibrated to (docs/proofs/noise-per-sensor.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.privacy import MovedMass
from sfumato.sensing.model.changes import pairs
from sfumato.sensing.model.operators.protocol import Operator, columns_tell_all
from sfumato.sensing.model.operators.weighted import (
    LARGEST_GAIN,
    SMALLEST_GAIN,
    Weighted,
    weighted,
)
from sfumato.sensing.model.sensitivity import sensitivity
from sfumato.sensing.model.site import Site
from sfumato.sensing.recovery.community import communities
from sfumato.spaces import Graph

Target = Literal["communities", "places"]
_Cut = Callable[[FloatArray], FloatArray]
"""Of weights: what is wanted of all sensors is at most this times any weights, and is that of these."""

WRONG = 0.1
"""By how much of itself the physics may be wrong, when it is told what that costs."""
KEEP = 0.9
"""The share of its weight with one sigma that every sensor keeps: at most 1.06 times the noise, so that nothing
else is told worse than through 1.06 times one sigma. With 1/4, answers on a line were worse, though
neighboring places were told better, and communities were told hardly better than with 9/10
(docs/reference/noise-per-sensor.md)."""
WORTH = 1.01
"""Times the information below which one sigma is kept."""
BITS = 12  # of a gain: rounding it down loses 1/2048 of it at most
MAX_ENTRIES = 1 << 26
"""Entries of the operator, sensors by cells, that are looked at: half a gigabyte."""
FIRST, MORE, ROUNDS, OPEN = 256, 256, 24, 1e-3
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class NoiseEach:
    """Noise for each sensor of a site, beside one sigma for all of them at the same cost.

    Attributes:
        site: The site with the gains; the same as it was where they would gain nothing.
        gains: What each reading is multiplied by: noise of sensor k is sigma / gain_k.
        target: What the readings should tell.
        gain: How many times the information of one sigma on it, at equal cost.
        max_gain: No weights have more than so many times: proved by the dual of the program.
        rounds: How often moves were added to the program.
        wrong: How many times further than promised neighbors move readings if the physics is wrong by 10 %.
        wrong_of_one: The same with one sigma for all.
        offset: Whether information is what is left where all readings share an unknown offset.
        noisiest: How many times the noise of one sigma the noisiest sensor adds that is not off; None where
            an older plan does not say.
    """

    site: Site
    gains: FloatArray
    target: Target
    gain: float
    max_gain: float
    rounds: int
    wrong: float
    wrong_of_one: float
    offset: bool = False
    noisiest: float | None = None

    @property
    def used(self) -> bool:
        """Whether sensors have gains: whether there is anything to be had."""
        return isinstance(self.site.operator, Weighted)

    def to_json(self) -> dict[str, Any]:
        """Numbers and the sensors that are off; the site says the gains."""
        return {
            "wanted": self.target,
            "gain": self.gain,
            "most": self.max_gain,
            "rounds": self.rounds,
            "wrong": self.wrong,
            "wrong_of_one": self.wrong_of_one,
            "off": list(self.site.off),
            "offset": self.offset,
            "noisiest": self.noisiest,
        }

    @staticmethod
    def from_json(data: Any, site: Site) -> NoiseEach:
        """What a plan of this site states."""
        return NoiseEach(
            site,
            site.gains,
            data["wanted"],
            float(data["gain"]),
            float(data["most"]),
            int(data["rounds"]),
            float(data["wrong"]),
            float(data["wrong_of_one"]),
            bool(data.get("offset", False)),
            None if data.get("noisiest") is None else float(data["noisiest"]),
        )


def noise_each(
    site: Site,
    *,
    target: Target | None = None,
    keep: float | None = None,
    offset: bool = False,
) -> NoiseEach:
    """The gains of sensors that tell most of what is wanted, for what one sigma costs; nothing is read.

    Args:
        site: A site whose sensors have no gains yet.
        target: What readings should tell: "communities", which of two communities of a graph mass is in, or
            "places", how neighboring places differ, on average and nowhere less than with one sigma; None means
            the first on a graph.
        keep: A share, 0 to 1: no sensor has less than this of the weight that one sigma gives it, so that
            nothing else is told worse than with sigma / sqrt(keep). 0 lets sensors be switched off: a hint that
            they are not needed for what is wanted. None means 9/10.
        offset: Whether all readings share an offset that nobody knows (`recover --fit offset`): then what
            they tell of it counts for nothing.

    Returns:
        The site with gains, and what they gain; where that is under 1 % the site as it is.

    Raises:
        InvalidParameter: The site has gains, is too large, or has no communities; nothing was planned.

    >>> from sfumato.sensing import describe_site, heat_line
    >>> line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> found = noise_each(describe_site("hall", operator=line, radius="1/100").site)
    >>> 1.1 < found.gain <= found.max_gain, found.used
    (True, True)
    """
    operator = site.operator
    chosen = target or ("communities" if isinstance(operator.space, Graph) else "places")
    if isinstance(operator, Weighted):
        raise InvalidParameter("each sensor of this site has its own noise; nothing was planned")
    share = KEEP if keep is None else keep
    if not 0 <= share <= 1:
        raise InvalidParameter(f"`keep` is a share, 0 to 1, got {keep}; nothing was planned")
    if operator.shape[0] * operator.shape[1] > MAX_ENTRIES:
        raise InvalidParameter(
            f"noise for each sensor looks at all {operator.shape[0]} by {operator.shape[1]} entries of the "
            "operator, which are too many; take one sigma for all; nothing was planned"
        )
    moves = _Moves(operator, over_distance=isinstance(site.neighbors, MovedMass))
    one = _counted(site)
    top = float(moves.costs(np.ones(len(operator.sensors))).max())
    cut = _cut(operator, moves, chosen, offset=offset)
    even = np.ones(len(operator.sensors))
    told = float(cut(even).sum())
    # What rounding leaves of an offset is nothing.
    if not (
        top > 0 and one > 0 and told > ROUNDING * float(_cut(operator, moves, chosen)(even).sum())
    ):
        raise InvalidParameter(
            "the sensors tell nothing of what is wanted, with any noise; nothing was planned"
        )
    # Of a sensor's own step the program knows nothing: no weights have less noise than without it.
    alone = sensitivity(operator, site.neighbors).l2
    weights, most, rounds = _solved(
        moves, top, lambda held: cut(held) / told, share, everywhere=chosen == "places"
    )
    gains = _rounded_down(np.sqrt(_filled(weights, moves, top)))
    made = replace(site, operator=weighted(operator, gains))
    # Not what the program says: the norm with these gains, and their steps, as noise will be calibrated to it.
    now = _counted(made)
    gain = float(cut(gains**2) @ gains**2) / told * (one / now) ** 2
    if gain < WORTH:
        made, gains, gain, now = site, even, 1.0, one
    wrong_of_one = _wrong(site, one)
    return NoiseEach(
        made,
        read_only(gains),
        chosen,
        gain,
        max(most * (one / alone) ** 2, gain),
        rounds,
        _wrong(made, now) if made is not site else wrong_of_one,
        wrong_of_one,
        offset,
        now / one / float(gains[gains > 0].min()),
    )


class _Moves:
    """What single readings change by when a unit moves, squared: all moves that the program may look at."""

    def __init__(self, operator: Operator, *, over_distance: bool) -> None:
        self._operator, self._over_distance = operator, over_distance
        self.sensors = len(operator.sensors)
        sampled = operator.sampled_changes(over_distance=over_distance)
        # Where sources stand between cells, at places as close as the kernel needs; the answer is scaled
        # by its sensitivity over all places.
        self._squares = None if sampled is None else np.square(sampled)
        if self._squares is None:
            self._matrix = operator.dense()
            found = list(pairs(operator.space, len(operator.sensors)))
            self._begin = np.concatenate([np.broadcast_to(b, e.shape) for b, e, _ in found])
            self._end = np.concatenate([end for _, end, _ in found])
            far = np.concatenate([distances for *_, distances in found])
            self._far = far if over_distance else np.ones(far.size)
        if self._squares is None and not columns_tell_all(operator):
            raise InvalidParameter(
                f"the operator {operator.kind!r} does not say how single sensors change between cells; take "
                "one sigma for all; nothing was planned"
            )

    def of(self, chosen: IntArray) -> FloatArray:
        """Squares of changes: moves by sensors."""
        if self._squares is not None:
            return np.asarray(self._squares[:, chosen].T)
        change = self._matrix[:, self._begin[chosen]] - self._matrix[:, self._end[chosen]]
        return np.square((change / self._far[chosen]).T)

    def blocks(self) -> Iterator[FloatArray]:
        """All of them, some at a time."""
        count = self._begin.size if self._squares is None else self._squares.shape[1]
        for part in np.array_split(np.arange(count), max(1, count >> 11)):
            yield self.of(part)

    def costs(self, weights: FloatArray) -> FloatArray:
        """The square of the weighted norm of every move."""
        return np.concatenate([block @ weights for block in self.blocks()])

    def mean(self) -> FloatArray:
        """What a sensor tells of moves on average."""
        total, count = 0.0, 0
        for block in self.blocks():
            total, count = total + block.sum(axis=0), count + len(block)
        return np.asarray(total / count)

    def mean_but_for_an_offset(self, weights: FloatArray) -> FloatArray:
        """The same of neighboring cells, each change less the number that explains it best by these weights."""
        matrix, total, count = self._operator.dense(), 0.0, 0
        for begin, end, far in pairs(self._operator.space, len(weights)):
            change = (matrix[:, np.broadcast_to(begin, end.shape)] - matrix[:, end]).T
            if self._over_distance:
                change = change / far[:, np.newaxis]
            change = change - (change @ weights / weights.sum())[:, np.newaxis]
            total, count = total + np.square(change).sum(axis=0), count + len(change)
        return np.asarray(total / count)


def _cut(operator: Operator, moves: _Moves, target: Target, *, offset: bool = False) -> _Cut:
    """How much a unit of weight of each sensor tells of what is wanted, beside these weights.

    With an unknown offset b in common, readings v tell min over b of sum_k (v_k - b)**2 w_k: at most that of
    any b, and just that of the weighted mean of v.
    """
    if target == "places":
        if offset:
            return moves.mean_but_for_an_offset
        value = moves.mean()
        return lambda _: value
    if not isinstance(operator.space, Graph):
        raise InvalidParameter("communities are of a graph; nothing was planned")
    labels = communities(operator.space, count=2)
    if labels.max() == 0:
        raise InvalidParameter("the graph has no two communities; nothing was planned")
    share = np.where(labels == 0, 1 / (labels == 0).sum(), -1 / (labels == 1).sum())
    apart = operator.readings(share)
    if offset:
        return lambda weights: np.square(apart - weights @ apart / weights.sum())
    return lambda _: np.square(apart)


def _solved(
    moves: _Moves, top: float, cut: _Cut, keep: float, *, everywhere: bool
) -> tuple[FloatArray, float, int]:
    """Weights, beside 1 for all of them, that tell most; what no weights exceed; how often moves were added.

    The program begins with the moves that cost most, and those that its answer lets cost too much are added.
    Its dual bounds the whole program too, which has more constraints, and whose aim is the least of all cuts.
    With `everywhere` no move is told worse than with one sigma.
    """
    from scipy.optimize import linprog

    weights = np.ones(moves.sensors)
    before = moves.costs(weights) / top
    chosen = np.argsort(-before, kind="stable")[:FIRST]
    lower = np.zeros(0, dtype=np.int64)
    cuts = cut(weights)[np.newaxis]
    limit = LARGEST_GAIN**2
    # Cuts are scaled so that one sigma tells 1: no weights tell more than the largest would.
    least, most, best, rounds = 1.0, limit, weights, 0
    while rounds < ROUNDS:
        rounds += 1
        rows = np.concatenate([moves.of(chosen), -moves.of(lower)]) / top
        bounds = np.concatenate([np.ones(chosen.size), -before[lower]])
        # The last number is what is told: at most what each cut lets it be.
        found = linprog(
            np.append(np.zeros(weights.size), -1.0),
            A_ub=np.block([[rows, np.zeros((len(rows), 1))], [-cuts, np.ones((len(cuts), 1))]]),
            b_ub=np.concatenate([bounds, np.zeros(len(cuts))]),
            bounds=[*[(keep, limit)] * weights.size, (0, None)],
            method="highs",
        )
        if found.x is None:  # by rounding: what is known already stands
            break
        held = found.x[:-1]
        costs = moves.costs(held) / top
        scaled = held / max(1.0, float(costs.max()))
        told = float(cut(scaled) @ scaled)
        worse = np.flatnonzero(costs < before * (1 - OPEN)) if everywhere else lower[:0]
        if told > least and not worse.size:
            least, best = told, scaled
        duals = np.maximum(-found.ineqlin.marginals, 0.0)
        prices, shares = duals[: len(rows)], duals[len(rows) :]
        # Any shares of the cuts that add up to 1, and any prices, bound what is told from above.
        value = shares @ cuts / shares.sum() if shares.any() else cuts[0]
        left = value - prices @ rows
        dual = prices @ bounds + np.where(left > 0, limit, keep) @ left
        most = min(most, float(dual))
        met = costs.max() <= 1 + 1e-9 and told >= found.x[-1] * (1 - OPEN)
        if not worse.size and (most <= least * (1 + OPEN) or met):
            break
        if told < found.x[-1] * (1 - OPEN):
            cuts = np.concatenate([cuts, cut(held)[np.newaxis]])
        steep = np.argsort(-costs, kind="stable")[:MORE]
        chosen = np.union1d(chosen, steep[costs[steep] > 1])
        lower = np.union1d(lower, worse[np.argsort(costs[worse] / before[worse])[:MORE]])
    return best, most, rounds


def _filled(weights: FloatArray, moves: _Moves, top: float) -> FloatArray:
    """The same and more for all sensors, up to where the worst move costs what it does with one sigma.

    Where what is wanted leaves room, noise would be scaled down instead, for some below 1/16 of one sigma.
    """
    costs, each = moves.costs(weights) / top, moves.costs(np.ones(weights.size)) / top
    room = np.divide(1 - costs, each, out=np.full(costs.size, np.inf), where=each > 0)
    return weights + max(0.0, float(room.min()))


def _rounded_down(gains: FloatArray) -> FloatArray:
    """Gains of few bits, towards more noise; the faintest sensors are switched off."""
    unit = np.ldexp(1.0, np.frexp(gains)[1] - BITS)
    down = np.floor(np.minimum(gains, LARGEST_GAIN) / unit) * unit
    return np.where(down < SMALLEST_GAIN, 0.0, down)


def _counted(site: Site, operator: Operator | None = None) -> float:
    """How far neighbors move all readings times their gains, each sensor's own step included."""
    moved = sensitivity(operator or site.operator, site.neighbors).l2
    return moved + float(site.step_in_sources) * float(np.linalg.norm(site.gains))


def _wrong(site: Site, now: float) -> float:
    """How many times as far neighbors move readings if the physics is wrong by 10 %: the promise then is less.

    The time of diffusion is a tenth more or less; where there is none, every entry is a tenth more.
    """
    operator, time = site.operator, site.operator.time
    if time is None:
        return 1 + WRONG
    others = [operator.with_time(time * factor) for factor in (1 - WRONG, 1 + WRONG)]
    return max(_counted(site, other) for other in others) / now
