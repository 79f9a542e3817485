"""How much a perturbed leader can change its mind in one round, measured and bounded.

Stability is not data privacy: who watches all plays learns the losses. Proofs:
docs/proofs/online.md
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.online import Gaussian, Perturbation, expected_play

SEEN = 1e-250  # far below it probabilities lose digits, and their ratios mean nothing


@dataclass(frozen=True, slots=True)
class OneStep:
    """The largest |ln P_t(i) / P_t+1(i)| that a search found, and what it can be at most.

    `losses` are those before the round in which candidate 0 lost 1 and the others nothing.
    """

    measured: float
    bound: float
    losses: tuple[float, ...]


def one_step_privacy(noise: Perturbation, count: int) -> OneStep:
    """How much likelier or less likely one loss of at most 1 can make a candidate, by search and by proof.

    The worst losses of a round hit one candidate alone, or all others [mcmillan18, proof of thm.
    13.1], which are the same two plays in either order. The bound is the hazard of the noise
    [mcmillan18, cor. 13.6].
    """
    if count < 2:
        raise InvalidParameter(
            f"there must be at least 2 candidates, got {count}; nothing was measured"
        )
    before = _standings(noise, count)
    after = before.copy()
    after[:, 0] += 1.0
    found = log_ratios(expected_play(before, noise), expected_play(after, noise))[:, 0]
    worst = int(np.argmax(found))
    return OneStep(float(found[worst]), noise.hazard, tuple(map(float, before[worst])))


def path_privacy(plays: npt.ArrayLike) -> float:
    """The largest |ln P_t(i) / P_t+1(i)| from one round to the next of these plays."""
    table = np.asarray(plays, dtype=np.float64)
    return float(log_ratios(table[:-1], table[1:]).max(initial=0.0))


def lipschitz_bound(losses: npt.ArrayLike, others: npt.ArrayLike, *, noise: Perturbation) -> float:
    """The most by which the logarithm of any probability of leading differs between two lists of losses.

    The hazard times the oscillation, largest minus smallest difference. [mcmillan18, prop. 13.4]
    has the sum of sizes instead, which is never less: N losses of 1 leave every play as it was, and
    would cost N epsilon.

    >>> from sfumato.online import Gumbel
    >>> lipschitz_bound([0.0, 0.0, 0.0], [1.0, 1.0, 0.5], noise=Gumbel(5.0))
    0.1
    """
    apart = np.asarray(others, dtype=np.float64) - np.asarray(losses, dtype=np.float64)
    return noise.hazard * float(np.ptp(apart))


def consistency(losses: npt.ArrayLike, noise: Perturbation, *, step: float = 1e-3) -> FloatArray:
    """For each candidate, how fast the logarithm of its probability falls with its own loss.

    Second over first derivative of E max(Z - L), which differential consistency bounds by epsilon
    [mcmillan18, def. 13.2]. A central difference: by the mean value theorem it is true of a place
    at most `step` scales away, and so it never exceeds a bound that holds everywhere.
    """
    at = np.asarray(losses, dtype=np.float64)
    move = step * (noise.sigma if isinstance(noise, Gaussian) else noise.scale) * np.eye(at.size)
    less, more = (np.diag(expected_play(at + moved, noise)) for moved in (-move, move))
    fall: FloatArray = np.log(less / more) / (2 * move[0, 0])
    return fall


def log_ratios(plays: npt.ArrayLike, others: npt.ArrayLike) -> FloatArray:
    """|ln P(i) / Q(i)| entry by entry; 0 where both are too small for it to be computed."""
    p, q = (np.asarray(table, dtype=np.float64) for table in (plays, others))
    if p.shape != q.shape:
        raise InvalidInput(
            f"plays must have one shape, got {p.shape} and {q.shape}; nothing was compared"
        )
    ratio: FloatArray = np.abs(np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(q, 1e-300)))
    return np.where((p > SEEN) | (q > SEEN), ratio, 0.0)


def printed_play(losses: npt.ArrayLike, noise: Perturbation) -> FloatArray:
    """The plays of argmin(L + Z), the sign of [mcmillan18, sec. 12.2]: for comparison only, to four digits.

    The left tail of the noise then decides, of which the hazard says nothing: one-step privacy
    fails.
    """
    rows = np.atleast_2d(np.asarray(losses, dtype=np.float64))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    starts = np.arange(-40.0, 40.0, 0.25)
    t = (starts[:, None] + (1 + nodes) / 8).ravel()
    below, above = special.expit(t), special.expit(-t)
    x = np.where(t < 0, noise.ppf(below), noise.isf(above))
    mass = np.tile(weights / 8, starts.size) * below * above
    played = np.empty_like(rows)
    for i in range(rows.shape[1]):
        gaps = rows[:, [i]] - np.delete(rows, i, axis=1)
        played[:, i] = mass @ noise.sf(x[:, None, None] + gaps).prod(axis=2)
    shares: FloatArray = played / played.sum(axis=1, keepdims=True)
    return shares.reshape(np.shape(losses))


def _standings(noise: Perturbation, count: int) -> FloatArray:
    """Losses to search: candidate 0 ahead of or behind the others by all distances, these level or spread."""
    scale = noise.sigma if isinstance(noise, Gaussian) else noise.scale
    ahead = (
        np.concatenate([-np.geomspace(1e-3, 60, 60)[::-1], [0.0], np.geomspace(1e-3, 60, 60)])
        * scale
    )
    far = 1e3 * (scale + 1)
    rivals = [
        np.zeros(count - 1),
        np.append(0.0, np.full(count - 2, far)),
        *(np.linspace(0, spread * scale, count - 1) for spread in (1.0, 10.0)),
    ]
    rows = [np.concatenate([[at], some]) for some in rivals for at in ahead]
    return np.array(rows)
