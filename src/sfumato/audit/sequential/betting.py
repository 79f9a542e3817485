"""Bets against a privacy claim: fair or worse for whoever bets, as long as the claim is true.

Outputs fall into three cells: an event that the first input should not reach so often, one that the
second should not, and the rest. A wager multiplies a bankroll by `first[cell(X)] * second[cell(Y)]`
for independent outputs X and Y on the two inputs. With A and B the means of these two factors, A +
B <= 2 for every pair of laws that the claim allows, so that A B <= ((A + B) / 2)**2 <= 1: wealth is
a supermartingale, and reaches 1 / alpha with chance at most alpha, whenever one looks [ville39;
ramdas23, sec. 2]. Best against laws (P, Q) is P / P0 and Q / Q0, with (P0, Q0) the laws nearest to
(P, Q), in relative entropy, that the claim allows [grunwald24, thm. 1; turner24]; wealth then grows
by e**KL for each pair of runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.audit.claims import MAX_EPSILON, EpsilonDelta

HALVINGS = 45
NEWTON = 60
MIN_FACTOR = 1e-12
"""No factor is below it, so that logarithms stay finite; no wager is lost by it but by a hair."""
TINY = 1e-300
HAIR = 1 + 1e-9
"""Taken off every wager, so that rounding is at the expense of whoever bets."""
RESHARED = 0.05
"""What of all wealth is dealt out anew before each batch, so that no account stays lost [herbster98]."""


@dataclass(frozen=True, slots=True, eq=False)
class Wager:
    """Factors of wealth for the cells (first too often, second too often, rest) of outputs X and Y."""

    statement: EpsilonDelta
    first: FloatArray
    second: FloatArray

    def logs(self, cells1: npt.NDArray[np.int64], cells2: npt.NDArray[np.int64]) -> FloatArray:
        """The logarithm of what each pair of runs multiplies wealth by; outputs come as numbers of cells."""
        return np.asarray(np.log(self.first)[cells1] + np.log(self.second)[cells2])

    def growth(self, law1: FloatArray, law2: FloatArray) -> float:
        """The mean logarithm of the factor of one pair of runs, if these are the laws of the cells."""
        return float(law1 @ np.log(self.first) + law2 @ np.log(self.second))


def fair(statement: EpsilonDelta, first: FloatArray, second: FloatArray) -> Wager:
    """The wager with factors in these proportions, as large as the claim allows.

    For m, n, k, l >= 0 with a <= m + k, b <= n + l and both e^eps a + b <= e^eps m + n and a +
    e^eps b <= m + e^eps n in every cell, A + B <= m + n + delta (k + l) for all laws that keep the
    statement: what one law has more than e^eps times the other is at most delta in all. The factors
    are divided by half of that, so whatever they were the wager is fair. Of an epsilon above
    MAX_EPSILON no stricter one is tested in its place: nothing is bet.
    """
    if statement.epsilon > MAX_EPSILON:
        return Wager(statement, np.full(first.shape, 1 / HAIR), np.full(second.shape, 1 / HAIR))
    grown = math.exp(statement.epsilon)
    a, b = np.maximum(first, MIN_FACTOR), np.maximum(second, MIN_FACTOR)
    m, n = float(a[-1]), float(b[-1])
    scale = max(
        1.0,
        float(np.max((grown * a + b) / (grown * m + n))),
        float(np.max((a + grown * b) / (m + grown * n))),
    )
    k, l_ = max(0.0, float(a.max()) - m), max(0.0, float(b.max()) - n)
    half = scale * (m + n + statement.delta * (k + l_)) / 2 * HAIR
    return Wager(statement, a / half, b / half)


def best_wager(statement: EpsilonDelta, law1: FloatArray, law2: FloatArray) -> Wager:
    """The wager that grows fastest if these are the laws of the three cells."""
    found = (fair(statement, law1 / p, law2 / q) for p, q in _near(statement, law1, law2))
    return max(found, key=lambda wager: wager.growth(law1, law2))


def _near(
    statement: EpsilonDelta, law1: FloatArray, law2: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Laws that keep a statement: the nearest ones with one event or both just allowed."""
    for cell in (0, 1):
        laws = (law1, law2) if cell == 0 else (law2, law1)
        priced = prices(statement, laws[0][[cell]], laws[1][[cell]])
        both = []
        for law, price in zip(laws, priced, strict=True):
            rest = max(1 - float(price[0]), MIN_FACTOR) / max(1 - float(law[cell]), MIN_FACTOR)
            both.append(
                np.where(np.arange(3) == cell, np.maximum(price[0], MIN_FACTOR), law * rest)
            )
        yield (both[0], both[1]) if cell == 0 else (both[1], both[0])
    if (found := _both_events(statement, law1, law2)) is not None:
        yield found


def _both_events(
    statement: EpsilonDelta, law1: FloatArray, law2: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """The nearest laws for which a statement just allows both events, by Newton's steps.

    With u what the second law gives the first event and v what the first law gives the second
    event, all else follows; minus the expected logarithm of these chances is self-concordant, so
    that steps divided by 1 + the Newton decrement stay inside and reach the minimum [boyd04, sec.
    9.6].
    """
    if statement.epsilon > MAX_EPSILON or statement.delta >= 1:
        return None
    g, delta = math.exp(statement.epsilon), statement.delta
    room = 1 - delta
    (pt, pb, pr), (qt, qb, qr) = (
        np.maximum(law1, MIN_FACTOR).tolist(),
        np.maximum(law2, MIN_FACTOR).tolist(),
    )
    u = v = room / (2 * (1 + g))
    for _ in range(NEWTON):
        p, q, rest1, rest2 = g * u + delta, g * v + delta, room - g * u - v, room - u - g * v
        slope1 = g * pr / rest1 + qr / rest2 - g * pt / p - qt / u
        slope2 = pr / rest1 + g * qr / rest2 - pb / v - g * qb / q
        curve1 = (g / rest1) ** 2 * pr + qr / rest2**2 + (g / p) ** 2 * pt + qt / u**2
        curve2 = pr / rest1**2 + (g / rest2) ** 2 * qr + pb / v**2 + (g / q) ** 2 * qb
        cross = g * (pr / rest1**2 + qr / rest2**2)
        determinant = curve1 * curve2 - cross**2
        if not determinant > 0:
            return None
        step1 = (curve2 * slope1 - cross * slope2) / determinant
        step2 = (curve1 * slope2 - cross * slope1) / determinant
        decrement = math.sqrt(max(0.0, step1 * slope1 + step2 * slope2))
        # Weights are below 1, so the decrement of the logarithms themselves is larger: be that much
        # slower.
        size = _inside(u, v, step1, step2, g, room) / (1 + decrement) if decrement > 1e-3 else 1.0
        u, v = u - size * step1, v - size * step2
        if decrement < 1e-10:
            break
    if not (u > 0 and v > 0 and room - g * u - v > 0 and room - u - g * v > 0):
        return None
    return (
        np.array([g * u + delta, v, room - g * u - v]),
        np.array([u, g * v + delta, room - u - g * v]),
    )


def _inside(u: float, v: float, step1: float, step2: float, g: float, room: float) -> float:
    """How much of a step can be taken without leaving what laws can be."""
    slacks = (u, v, room - g * u - v, room - u - g * v)
    losses = (step1, step2, -g * step1 - step2, -step1 - g * step2)
    return min(
        [
            1.0,
            *(0.95 * slack / loss for slack, loss in zip(slacks, losses, strict=True) if loss > 0),
        ]
    )


def prices(
    statement: EpsilonDelta, more: FloatArray, less: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Chances of an event that a statement just allows, nearest to (more, less); these where it allows them.

    On the line p = e^eps q + delta, where the relative entropy is convex: by bisection, or where
    delta is 0 as the smaller root of 2 e^eps q^2 - (e^eps + 1 + more + e^eps less) q + more + less.
    """
    grown, delta = math.exp(min(statement.epsilon, MAX_EPSILON)), statement.delta
    broken = more > grown * less + delta
    if delta == 0:
        middle, rest = grown + 1 + more + grown * less, more + less
        q = 2 * rest / (middle + np.sqrt(np.maximum(0.0, middle**2 - 8 * grown * rest)))
        return np.where(broken, np.minimum(1.0, grown * q), more), np.where(broken, q, less)
    # Most events are allowed, and of them nothing is asked.
    p, q = more.copy(), less.copy()
    if broken.any():
        q[broken] = _halved(grown, delta, more[broken], less[broken])
        p[broken] = grown * q[broken] + delta
    return p, q


def _halved(grown: float, delta: float, more: FloatArray, less: FloatArray) -> FloatArray:
    """Where on that line the slope of the relative entropy changes its sign."""
    low, high = np.zeros_like(more), np.full_like(more, max(0.0, min(1.0, (1 - delta) / grown)))
    for _ in range(HALVINGS):
        q = (low + high) / 2
        p = grown * q + delta
        slope = grown * (p - more) / np.maximum(p * (1 - p), TINY) + (q - less) / np.maximum(
            q * (1 - q), TINY
        )
        up = slope < 0
        low, high = np.where(up, q, low), np.where(up, high, q)
    return np.asarray((low + high) / 2)


def growth_rates(statement: EpsilonDelta, more: FloatArray, less: FloatArray) -> FloatArray:
    """How fast the best wager on each event alone grows, per pair of runs: a relative entropy."""
    p, q = prices(statement, more, less)
    return np.asarray(_divergence(more, p) + _divergence(less, q))


def _divergence(share: FloatArray, priced: FloatArray) -> FloatArray:
    one = np.clip(share, MIN_FACTOR, 1 - MIN_FACTOR)
    other = np.clip(priced, MIN_FACTOR, 1 - MIN_FACTOR)
    return np.maximum(0.0, one * np.log(one / other) + (1 - one) * np.log((1 - one) / (1 - other)))


class Bankroll:
    """Wealth that starts at 1 in accounts of given shares; all are logarithms."""

    def __init__(self, shares: Sequence[float]) -> None:
        self._shares = np.log(np.asarray(shares))
        self._accounts = self._shares.copy()
        self.best = 0.0

    @property
    def now(self) -> float:
        """The logarithm of all wealth."""
        return float(np.logaddexp.reduce(self._accounts))

    def deal(self) -> None:
        """Move a small share of every account to all of them, as at the beginning."""
        self._accounts = np.logaddexp(
            self._accounts + math.log1p(-RESHARED), self.now + math.log(RESHARED) + self._shares
        )

    def settle(self, logs: FloatArray, target: float) -> FloatArray:
        """Wealth, as a logarithm, after each pair of runs, up to where it reaches the target.

        `logs` has a row for each account: the logarithms of what each pair of runs multiplies it
        by.
        """
        paths = self._accounts[:, np.newaxis] + np.cumsum(logs, axis=1)
        total = np.asarray(np.logaddexp.reduce(paths, axis=0))
        reached = np.flatnonzero(total >= target)
        end = int(reached[0]) + 1 if reached.size else total.size
        if end:
            self._accounts = paths[:, end - 1]
            self.best = max(self.best, float(total[:end].max()))
        return total[:end]
