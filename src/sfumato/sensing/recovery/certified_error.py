"""What bounds how wrong an answer can be at worst: a band of the distribution function, with its proofs.

All sources that agree with the readings contain the true ones with a stated chance. The smallest and the
largest share of mass that they can have to the left of a place form a band of the distribution function, for
all places at once, and the band bounds the earth mover's distance of any answer. Nothing here searches:
`error_bound` finds the proofs, `verify_error` checks them. Proof: docs/proofs/certified-error.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from sfumato._types import FloatArray
from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of

SAMPLE = 512  # cells that stand for all others, to find the directions they move readings in
WEAK = 1 / 3  # of sigma: what one source cannot move by as much is not looked at
CLEAR = 1e-6  # of the most: directions that sources move as much are not told apart
PERIOD = 64.0  # deviations: what a Fourier series adds from beyond has a chance below 1e-12
MOST_TERMS = 1 << 14  # of the series
LEFT_OUT = 1e-3  # of a chance: what the terms that are left out may add to it


class LaplaceNoise(NamedTuple):
    """Noise of a reading is no wider than a sum of so many Laplace numbers, each of a share of sigma."""

    share: float = 1.0
    terms: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class ErrorCertificate:
    """The answer's earth mover's distance to the truth is at most `bound`, with chance `level`.

    It holds whatever the sources are, if the operator and the noise are right and no cell holds more than
    the largest mass. `low` and `high` bound the share of all mass to the left of each of `cuts`.

    Attributes:
        level: The chance, over the noise.
        bound: In the unit of the line, both scaled to mass 1.
        least: The bound of an answer half way between `low` and `high`: none is certified a smaller one.
        anywhere: Whether sources may stand anywhere in their cells; if not, at the cells' positions only.
        offset: Whether it holds for any offset that all readings have in common.
        cuts: Places along the line.
        low: The smallest share to the left of each.
        high: The largest.
        directions: Orthonormal combinations of readings that were looked at: sensors by directions.
        duals: What proves `high` of every cut, then `low`: a row of as many numbers for each.
        laplace: What the noise is if it is Laplace; None if it is Gaussian.
    """

    level: float
    bound: float
    least: float
    anywhere: bool
    offset: bool
    cuts: FloatArray
    low: FloatArray
    high: FloatArray
    directions: FloatArray
    duals: FloatArray
    laplace: LaplaceNoise | None = None

    def __post_init__(self) -> None:
        for name in ("cuts", "low", "high", "directions", "duals"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=float)))
        count, cuts = self.duals.shape[0], self.cuts.shape
        if not (self.low.shape == self.high.shape == cuts and count == 2 * self.cuts.size):
            raise InvalidParameter(
                "a certificate has two shares and two proofs for each cut; nothing was certified"
            )

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        return {
            "level": self.level,
            "bound": self.bound,
            "least": self.least,
            "anywhere": self.anywhere,
            "offset": self.offset,
            "cuts": self.cuts.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "directions": self.directions.tolist(),
            "duals": self.duals.tolist(),
            **laplace_json(self.laplace),
        }

    def summary(self) -> dict[str, Any]:
        """The same without the proofs."""
        return {n: v for n, v in self.to_json().items() if n not in ("directions", "duals")}

    @staticmethod
    def from_json(data: Any) -> ErrorCertificate:
        """What a JSON object states."""
        numbers = {name: float(data[name]) for name in ("level", "bound", "least")}
        return ErrorCertificate(**{**data, **numbers, "laplace": laplace_from(data)})


def laplace_json(laplace: LaplaceNoise | None) -> dict[str, Any]:
    """As a certificate says it: nothing where the noise is Gaussian."""
    return {} if laplace is None else {"laplace": laplace._asdict()}


def laplace_from(data: Any) -> LaplaceNoise | None:
    """What a JSON object says of it."""
    told = data.get("laplace")
    return None if told is None else LaplaceNoise(float(told["share"]), int(told["terms"]))


def strong_directions(
    operator: Operator,
    *,
    sigma: float,
    max_mass: float,
    offset: bool,
    most: int | None = None,
) -> FloatArray:
    """The first of `ranked_directions`."""
    return ranked_directions(operator, sigma=sigma, max_mass=max_mass, offset=offset, most=most)[0]


def ranked_directions(
    operator: Operator,
    *,
    sigma: float,
    max_mass: float,
    offset: bool,
    most: int | None = None,
) -> tuple[FloatArray, tuple[int, ...]]:
    """Orthonormal combinations of readings that one source moves by more than a third of sigma.

    They depend on what is public alone. What is left out of them is not used, which costs width and
    nothing else. With `most` it is at most so many of those that all sources together move most, up to where
    the next is weakest beside the last, so that rounding does not choose between equals.

    Returns:
        The directions, those that all sources move most first; and how many of them come before each
        that they move clearly less, and all: such a beginning spans the same wherever it is computed.
    """
    m, n = operator.shape
    cells = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
    columns = operator.columns(cells)
    level = gains_of(operator)
    level = level / np.linalg.norm(level)  # the way an offset moves readings
    if offset:
        columns = columns - np.outer(level, level @ columns)
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    reach = max_mass * np.abs(left.T @ columns).max(axis=1)
    seen = np.flatnonzero(reach > WEAK * sigma)
    if most is not None and seen.size > most:
        drops = sizes[seen[most // 2 : most + 1]]
        seen = seen[: most // 2 + 1 + int((drops[:-1] / drops[1:]).argmax())]
    strong = left[:, seen]
    if offset and strong.size:  # rounding leaves a little of the offset in them
        strong = np.linalg.qr(strong - np.outer(level, level @ strong))[0]
    found: FloatArray = strong[:, : m - 1] if offset else strong
    count = found.shape[1]
    clear = np.flatnonzero(-np.diff(sizes[seen[:count]]) > CLEAR * sizes[0]) + 1
    return found, (*clear.tolist(), count)


def noise_quantile(count: int, level: float) -> float:
    """How many sigma none of so many independent Gaussian numbers exceeds, with chance `level`."""
    return float(ndtri((1 + level ** (1 / count)) / 2))


def direction_quantiles(
    directions: FloatArray, level: float, laplace: LaplaceNoise | None = None
) -> FloatArray:
    """How many sigma noise exceeds in none of the directions, with chance `level`: a number for each.

    Gaussian noise is independent in them. Laplace noise is not: each has an equal part of the chance to fail.
    """
    count = directions.shape[1]
    if laplace is None:
        return np.full(count, noise_quantile(count, level))
    return np.array([laplace_quantile(one, laplace, (1 - level) / count) for one in directions.T])


def laplace_quantile(weights: FloatArray, laplace: LaplaceNoise, failure: float) -> float:
    """What a weighted sum of Laplace noise exceeds with a chance of at most `failure`, either way; in sigma.

    The chance is that of a Fourier series, with bounds of all that it leaves out, or Chernoff's where that is
    less. Proof: docs/proofs/certified-error.md

    >>> one = laplace_quantile(np.ones(1), LaplaceNoise(), 0.05)
    >>> 2.11 < one < 2.12, abs(math.exp(-math.sqrt(2) * one) - 0.05) < 1e-4
    (True, True)
    """
    size = math.sqrt(laplace.terms) * float(np.linalg.norm(weights))
    squares, terms = np.square(weights[weights != 0] / size), laplace.terms
    times, heights, left_out = _series(squares, terms, LEFT_OUT * failure)
    low, high = 0.0, _chernoff(squares, terms, failure)
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        within = 2 * middle / PERIOD + 4 / PERIOD * float(
            heights @ (np.sin(times * middle) / times)
        )
        above = 1 - within + left_out + 4 * math.exp(middle - PERIOD)
        low, high = (low, middle) if above <= failure else (middle, high)
    return high * size * laplace.share


def _series(squares: FloatArray, terms: int, enough: float) -> tuple[FloatArray, FloatArray, float]:
    """Where and how high the Fourier series of a sum of deviation 1 is, and the most that the rest adds."""
    times, heights = np.empty(0), np.empty(0)
    while True:
        begin = times.size
        some = 2 * math.pi / PERIOD * np.arange(begin + 1, max(64, 2 * begin) + 1)
        parts = np.zeros(some.size)
        for block in np.array_split(squares, -(-squares.size * some.size // (1 << 20))):
            parts += np.log1p(np.outer(block, some**2 / 2)).sum(axis=0)
        times = np.concatenate([times, some])
        heights = np.concatenate([heights, np.exp(-terms * parts)])
        last = squares * times[-1] ** 2 / 2
        active = terms * float((last / (1 + last)).sum())
        ratio = math.log(active) / (active - 1) if abs(active - 1) > 1e-9 else 1.0
        left_out = float(heights[-1]) / math.pi * ratio + 1e-12
        if left_out <= enough or times.size >= MOST_TERMS:
            return times, heights, left_out


def _chernoff(squares: FloatArray, terms: int, failure: float) -> float:
    """The least of log(2 E exp(s S) / failure) / s over some s."""
    s = math.sqrt(2 / squares.max()) * np.linspace(0.005, 0.995, 199)
    logs = -terms * np.log1p(-np.outer(squares, s**2 / 2)).sum(axis=0)
    return float(((math.log(2 / failure) + logs) / s).min())
