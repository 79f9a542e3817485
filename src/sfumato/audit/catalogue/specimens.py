"""Mechanisms of the literature, right and wrong, as functions that draw many outputs at once.

What is drawn here protects nobody: specimens exist to be audited. Real outputs lie on a grid of
2**-20, so that the low bits of floats, which give away every one of them, do not hide what else is
wrong.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

GRID = 2.0**20
STOPPED = -1000.0
BELOW = -2000.0


def on_grid(values: Array) -> Array:
    """The nearest multiples of 2**-20."""
    return np.asarray(np.rint(values * GRID) / GRID)


def additive(data: npt.ArrayLike, runs: int, *, scale: float, rng: np.random.Generator) -> Array:
    """Laplace noise on every entry."""
    values = np.atleast_1d(np.asarray(data, dtype=np.float64))
    return on_grid(values + rng.laplace(scale=scale, size=(runs, values.size)))


def parallel(
    data: float, runs: int, *, scale: float, times: int, rng: np.random.Generator
) -> Array:
    """The same number so many times, each with its own Laplace noise."""
    return on_grid(data + rng.laplace(scale=scale, size=(runs, times)))


def prefix_sums(data: Array, runs: int, *, scale: float, rng: np.random.Generator) -> Array:
    """Running sums of noisy entries."""
    return on_grid(np.cumsum(data + rng.laplace(scale=scale, size=(runs, len(data))), axis=1))


def noisy_max(
    data: Array,
    runs: int,
    *,
    epsilon: float,
    noise: Literal["laplace", "exponential"],
    value: bool,
    rng: np.random.Generator,
) -> Array:
    """Which noisy entry is largest, or, wrongly, how large it is [ding18, sec. 5]."""
    size = (runs, len(data))
    drawn = (rng.laplace if noise == "laplace" else rng.exponential)(scale=2 / epsilon, size=size)
    noisy = data + drawn
    return on_grid(noisy.max(axis=1)) if value else noisy.argmax(axis=1).astype(np.float64)


def sparse_vector(
    data: Array,
    runs: int,
    *,
    epsilon: float,
    variant: int,
    threshold: float = 1.0,
    rng: np.random.Generator,
) -> Array:
    """Which queries are above a noisy threshold, up to one of them: algorithms 1 to 6 of [lyu17, fig. 1].

    1 and 2 are private. 3 also gives the noisy answer, 4 has noise for fewer queries than it
    answers, 5 has no noise on the queries, 6 never stops.
    """
    first = epsilon / 4 if variant == 4 else epsilon / 2
    second = epsilon - first
    spread = {1: 2 / second, 2: 2 / first, 3: 1 / second, 4: 1 / second, 5: 0.0, 6: 1 / second}[
        variant
    ]
    size = (runs, len(data))
    noisy = data + (rng.laplace(scale=spread, size=size) if spread else np.zeros(size))
    above = noisy >= threshold + rng.laplace(scale=1 / first, size=runs)[:, None]
    found = np.where(above, on_grid(noisy) if variant == 3 else 1.0, BELOW if variant == 3 else 0.0)
    if variant <= 4:
        # The one answer above the threshold is the last; that variant 2 draws the threshold anew
        # after it therefore changes nothing.
        before: npt.NDArray[np.int64] = np.cumsum(above, axis=1) - above
        found[before > 0] = STOPPED
    return found


def report_bits(
    data: float,
    runs: int,
    *,
    flipped: float,
    again: tuple[float, float] | None,
    rng: np.random.Generator,
    size: int = 20,
) -> Array:
    """RAPPOR: a value as four bits of a Bloom filter, randomised once and, if asked, again at every report.

    A share `flipped` of the bits is replaced by coins; a bit then is reported as 1 with chance
    again[bit] [erlingsson14, sec. 2]. The bits of a value are fixed and disjoint, in place of
    hashes.
    """
    bits = np.zeros(size)
    bits[1 + int(data) : 1 + int(data) + 16 : 4] = 1
    chances = flipped / 2 + (1 - flipped) * bits
    if again is not None:
        chances = again[0] + (again[1] - again[0]) * chances
    return (rng.random((runs, size)) < chances).astype(np.float64)


def report_bits_epsilon(*, flipped: float, again: tuple[float, float] | None) -> float:
    """The epsilon of `report_bits`.

    Of the eight bits that differ four give ln(p1 / p0) and four ln((1 - p0) / (1 - p1)).
    """
    low, high = flipped / 2, 1 - flipped / 2
    if again is not None:
        low, high = (again[0] + (again[1] - again[0]) * chance for chance in (low, high))
    return 4 * (math.log(high / low) + math.log((1 - low) / (1 - high)))


def truncated_geometric_law(data: float, *, epsilon: float, outputs: int) -> Array:
    """Two-sided geometric noise on 0 to outputs - 1, the tails folded onto the ends [ghosh12, sec. 2].

    Args:
        data: From 0 to outputs - 1.
        epsilon: Above 0.
        outputs: At least 2.

    Returns:
        Chances that sum to 1.
    """
    q = math.exp(-epsilon)
    places = np.arange(outputs)
    law = (1 - q) / (1 + q) * q ** np.abs(places - data)
    law[0], law[-1] = q**data / (1 + q), q ** (outputs - 1 - data) / (1 + q)
    return np.asarray(law)


def response_law(data: float, *, epsilon: float, outputs: int) -> Array:
    """Randomised response: the truth e**epsilon times as likely as any other answer."""
    law = np.ones(outputs)
    law[int(data)] = math.exp(epsilon)
    return np.asarray(law / law.sum())


def from_law(law: Array, runs: int, rng: np.random.Generator) -> Array:
    """So many outputs 0, 1, ... with these chances.

    Args:
        law: Chances that sum to 1.
        runs: How many outputs.
        rng: Draws them.

    Returns:
        Numbers of outputs.
    """
    return np.searchsorted(np.cumsum(law)[:-1], rng.random(runs), side="right").astype(np.float64)


def float_laplace(data: float, runs: int, *, scale: float, rng: np.random.Generator) -> Array:
    """Laplace noise as NumPy draws it: which doubles can come out depends on the data [mironov12]."""
    return np.asarray(data + rng.laplace(scale=scale, size=runs))


def float_normal(data: float, runs: int, *, sigma: float, rng: np.random.Generator) -> Array:
    """Gaussian noise as NumPy draws it, with the same fault."""
    return np.asarray(data + sigma * rng.standard_normal(runs))


def rarely_honest(
    data: float, runs: int, *, epsilon: float, chance: float, rng: np.random.Generator
) -> Array:
    """Two-sided geometric noise, except that a 1 is now and then given as it is, marked."""
    q = math.exp(-epsilon)
    noise = rng.geometric(1 - q, runs) - rng.geometric(1 - q, runs)
    honest = (rng.random(runs) < chance) & (data == 1)
    return np.where(honest, 1e6, data + noise)
