"""What can be recovered at best: the papers' bounds on the error in earth mover's distance, corrected.

Upper bounds hold up to a constant that nobody has computed; lower bounds hold as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import MovedMass
from sfumato.privacy.concentration import fano_error
from sfumato.sensing.build import heat_line
from sfumato.sensing.operators import Operator
from sfumato.sensing.sensitivity import sensitivity
from sfumato.spaces import Line, Points
from sfumato.spaces.space import whole
from sfumato.transport import emd

HARDEST = 0.7517915
"""Where u Phi(-u) is largest; any u gives a valid bound, so its digits matter to nothing but the best one."""


def papers_radius_coverage(sensors: int) -> float:
    """How often the papers' radius sigma sqrt(m) admits the true sources: P(|noise|_2 <= sigma sqrt(m)).

    The papers have "with high probability" [gilbert17, after lem. 7], but it falls to 1/2 as sensors are
    added: the square of |noise| / sigma is chi-square with mean m. The bound they cite, P(|noise|**2 >
    sigma**2 (m + 2 sqrt(m t) + 2 t)) <= exp(-t) [hsu12], is right; it says nothing at t = 0.

    >>> [round(papers_radius_coverage(m), 3) for m in (10, 50, 1000)]
    [0.56, 0.527, 0.506]
    """
    m = whole("sensors", sensors, low=1)
    return float(stats.chi2.cdf(m, m))


@dataclass(frozen=True, slots=True)
class RecoveryBound:
    """An upper bound up to its constant: EMD <= min(1, K bracket) for some K that the proof does not give.

    `bracket` is what the proof gives when its steps are corrected, `printed` what the papers print. Each
    hypothesis comes with whether it holds; where one does not, neither number says anything.
    """

    bracket: float
    printed: float
    hypotheses: tuple[tuple[str, bool], ...]

    @property
    def applies(self) -> bool:
        """Whether all hypotheses hold."""
        return all(holds for _, holds in self.hypotheses)


def recovery_bound(
    *,
    sources: int,
    sensors: int,
    diffusion_time: float,
    sigma: float,
    separation: float | None = None,
    margin: float | None = None,
) -> RecoveryBound:
    """How the error of l1 recovery on [0, 1] grows, up to a constant, for k unit sources under noise.

    1/(1 - min{1,C}) [sqrt(T C / k) + k min{1,C} + C/k] with C = min{k, sigma + k exp(-A**2 / 4T)}, for both
    vectors scaled to mass 1. Sources are at least `separation` apart, which must be given for more than one;
    the margin A is what that leaves, (separation - sqrt(2T)) / 2, unless given. It needs noise within the
    radius: `papers_radius_coverage`.

    [gilbert17, thm. 9] [gilbert18, thm. 14] [mcmillan18, thm. 8.6] print sqrt(T^1.5 C / (sqrt(T) + 1)) / k +
    k min{1,C} + T^2 C / ((T + 1) k) and a factor sqrt(T) in C. Their proof bounds -g' by a multiple of
    T^-1/2 where T^-1 is right (C_2), keeps a factor g' that cancels (C_3), puts m = 1 in m / (m sqrt(T) + 1),
    and sums k square roots as if their masses summed to 1; docs/errata.md has them one by one.

    The proof is lossy, and so are powers of T that follow from it. For one source x away from the ends,
    |M(f - f0)| <= 2 sigma sqrt(m) tried on the column of x gives sum of f_j (1 - exp(-(x_j - x)**2 / 8T))
    <= 2 sigma (8 pi T)^(1/4) up to how well sensors sum the integral: a C that falls as T^(1/4).

    >>> bound = recovery_bound(sources=1, sensors=50, diffusion_time=0.05, sigma=0.1)
    >>> round(bound.bracket, 4), round(bound.printed, 4), bound.applies
    (0.3008, 0.0375, True)
    """
    k, m = whole("sources", sources, low=1), whole("sensors", sensors, low=1)
    _positive("diffusion_time", diffusion_time)
    _positive("sigma", sigma)
    cross, hypotheses = _setting(k, m, diffusion_time, separation, margin)
    root = math.sqrt(diffusion_time)
    return RecoveryBound(
        _corrected(k, diffusion_time, sigma + cross),
        _as_printed(k, diffusion_time, root * (sigma + cross)),
        hypotheses,
    )


def private_recovery_bound(
    *,
    sources: int,
    cells: int,
    sensors: int,
    diffusion_time: float,
    epsilon: float,
    delta: float,
    separation: float | None = None,
    margin: float | None = None,
) -> RecoveryBound:
    """The same when the noise is the papers' own, sigma = 2 ln(1.25/delta) Delta / epsilon.

    For noise of another calibration give its sigma to `recovery_bound`. Delta, for a unit that moves by one
    cell, is computed and not bounded; it grows as T^-3/4 when T is small. `printed` has the C of
    [gilbert17, cor. 10], min{k, sqrt(m) ln(1/delta) / (n T epsilon) + sqrt(T) k exp(-A**2 / 4T)}.

    >>> shared = dict(sources=1, sensors=50, diffusion_time=0.05, epsilon=4, delta=0.1)
    >>> [round(private_recovery_bound(cells=n, **shared).bracket, 3) for n in (100, 1000)]
    [0.526, 0.065]
    """
    k, m = whole("sources", sources, low=1), whole("sensors", sensors, low=1)
    n = whole("cells", cells, low=2)
    _positive("diffusion_time", diffusion_time)
    _positive("epsilon", epsilon)
    if not 0 < delta < 1:
        raise InvalidParameter(f"delta must be above 0 and below 1, got {delta}; nothing was computed")
    cross, hypotheses = _setting(k, m, diffusion_time, separation, margin)
    step = _slope(heat_line(sources=n, sensors=m, diffusion_time=diffusion_time)) / n
    sigma = 2 * math.log(1.25 / delta) * step / epsilon
    noise = math.sqrt(m) * math.log(1 / delta) / (n * diffusion_time * epsilon)
    return RecoveryBound(
        _corrected(k, diffusion_time, sigma + cross),
        _as_printed(k, diffusion_time, noise + math.sqrt(diffusion_time) * cross),
        hypotheses,
    )


def _setting(
    k: int, m: int, time: float, separation: float | None, margin: float | None
) -> tuple[float, tuple[tuple[str, bool], ...]]:
    """What other sources add, k exp(-A**2 / 4T), and the theorem's hypotheses."""
    if separation is not None:
        _positive("separation", separation)
    elif k > 1:
        raise InvalidParameter(f"separation must be given for {k} sources; nothing was computed")
    if margin is not None and not 0 <= margin < math.inf:
        raise InvalidParameter(f"margin must be finite and not negative, got {margin}; nothing was computed")
    width, gap = math.sqrt(2 * time), separation or 0.0
    apart = k == 1 or gap > width + 2 * (margin or 0.0)
    hypotheses = (
        ("m sqrt(T/2) > 1: sensors near every source", m * math.sqrt(time / 2) > 1),
        ("sqrt(2T) < 1: read before the heat leaves the interval", width < 1),
        ("separation > sqrt(2T) + 2A, A > 0: sources far apart", apart and (margin is None or margin > 0)),
        ("(k - 1) separation <= 1: such sources fit into [0, 1]", (k - 1) * gap <= 1),
    )
    if k == 1:
        return 0.0, hypotheses
    # The bracket is continuous in A, so the largest A that is not quite allowed may stand for those that are.
    free = max(0.0, (gap - width) / 2) if margin is None else margin
    return k * math.exp(-(free**2) / (4 * time)), hypotheses


def _corrected(k: int, time: float, strength: float) -> float:
    c = min(k, strength)
    return _over(math.sqrt(time * c / k) + k * min(1.0, c) + c / k, c)


def _as_printed(k: int, time: float, strength: float) -> float:
    c = min(k, strength)
    near = math.sqrt(time**1.5 * c / (math.sqrt(time) + 1)) / k
    return _over(near + k * min(1.0, c) + time**2 * c / ((time + 1) * k), c)


def _over(total: float, c: float) -> float:
    return total / (1 - c) if c < 1 else math.inf


@dataclass(frozen=True, slots=True)
class LowerBound:
    """No estimator has a worst expected error, in earth mover's distance, below `value`.

    It comes from four source vectors pairwise `distance` apart, of which every estimator misses one, by half
    of that, with a chance of at least `error`; `slope` is the largest change of readings (in l2) that a unit
    of mass causes by moving a unit of distance.
    """

    value: float
    distance: float
    error: float
    slope: float


def recovery_lower_bound(operator: Operator, sigma: float) -> LowerBound:
    """How well anybody can recover sources on a line from readings with noise N(0, sigma**2), at best.

    inf over estimators, sup over sources in [0,1]^n, of E EMD is at least a/12 with a = min{2 j h,
    sqrt(8 ln(2) / 3) sigma / L}: n evenly spaced cells of width h, j = floor((n - 1) / 4), L the slope.
    Proof: docs/proofs/recovery-lower-bound.md. This is [gilbert17, thm. 11] [gilbert18, thm. 15]
    [mcmillan18, thm. 8.7] with a constant that is computed for its operator; they print 3a/4, from distances
    a where a/2 is right and a logarithm to base 2 beside a divergence in nats.

    >>> bound = recovery_lower_bound(heat_line(sources=100, sensors=50, diffusion_time=0.05), 0.1)
    >>> round(bound.value, 6), round(bound.error, 3)
    (0.000834, 0.333)
    """
    _positive("sigma", sigma)
    if not isinstance(operator.space, Line) or operator.space.size < 5 or not _even(operator.space):
        raise InvalidParameter(
            "this bound is for five or more evenly spaced cells on a line, got another space; "
            "nothing was computed"
        )
    cells = operator.space.positions
    reach = float(cells[2 * ((cells.size - 1) // 4)] - cells[0])
    slope = _slope(operator)
    wanted = math.sqrt(8 * math.log(2) / 3) * sigma
    a = min(reach, wanted / slope) if slope > 0 else reach
    error = fano_error(4, (slope * a / 2) ** 2 / (2 * sigma**2))
    return LowerBound(a / 4 * error, a / 2, error, slope)


def two_point_lower_bound(
    operator: Operator, first: npt.ArrayLike, second: npt.ArrayLike, *, sigma: float
) -> float:
    """A lower bound from any two source vectors of equal mass that are hard to tell apart, on any space.

    The largest t d Phi(-t D / 2 sigma) for t in [0, 1]: vectors that differ by the share t of first - second
    are t d apart, their readings t D, and no test errs with a smaller chance than Phi(-t D / 2 sigma) on
    both [yu97, lem. 1]. Two near peaks and one between them give far more than `recovery_lower_bound`. Of
    sources in [0, 1]^n, as there, so larger entries are refused.

    >>> line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> one, two = np.zeros(100), np.zeros(100)
    >>> one[49], two[[39, 59]] = 1, 0.5
    >>> round(two_point_lower_bound(line, one, two, sigma=0.1), 4)
    0.0136
    """
    _positive("sigma", sigma)
    if isinstance(operator.space, Points):
        raise InvalidParameter(
            "this bound is for sources on a line, a grid or a graph, got points; nothing was computed"
        )
    apart = emd(first, second, operator.space).lower
    largest = float(max(np.max(first), np.max(second)))
    if largest > 1:
        raise InvalidInput(
            f"this bound is for sources of at most 1 in each cell, got {largest}; nothing was computed"
        )
    change = operator.readings(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64))
    u = float(np.linalg.norm(change)) / (2 * sigma)
    t = min(1.0, HARDEST / u) if u > 0 else 1.0
    return t * apart * float(stats.norm.sf(t * u))


@dataclass(frozen=True, slots=True)
class Asymptotic:
    """One row of the papers' tables: how a bound moves with one variable when the others are held.

    `follows` is what the corrected proof gives: an upper bound, which a better proof may lower.
    """

    table: str
    variable: str
    printed: str
    follows: str
    note: str


def tables() -> tuple[Asymptotic, ...]:
    """Tables 1 (private recovery) and 2 (noisy recovery) as printed, and what follows from the proof.

    [gilbert17, tables 1, 2] [gilbert18, table 1] [mcmillan18, table 8.1] [gilbertheat17, tables I, II].
    The theorem assumes T < 1/2, so what grows with T means nothing; only small T does. An error on [0, 1] is
    at most 1, so O(1) alone says nothing either.

    >>> [(row.table, row.variable) for row in tables() if row.printed != row.follows]
    [('private', 'm'), ('private', 'T'), ('noisy', 'T'), ('noisy', 'sigma')]
    """
    return (
        Asymptotic("private", "n", "O(1 + 1/sqrt(n))", "O(1 + 1/sqrt(n))", ""),
        Asymptotic(
            "private",
            "m",
            "O(1)",
            "min{1, O(1 + sqrt(m))}",
            "Table II of the abstract has O(sqrt(m)), which is what the bound gives; experiments find O(1).",
        ),
        Asymptotic(
            "private",
            "T",
            "min{1, O(1 + 1/T + T^2.5 exp(-A^2/4T))}",
            "min{1, O(1 + T^-3/4)}",
            "From this proof; the sensitivity grows as T^-3/4 for small T, not as T^-3/2. For one source "
            "away from the ends T^-1/2 can be had.",
        ),
        Asymptotic("noisy", "n", "O(1)", "O(1)", ""),
        Asymptotic("noisy", "m", "O(1)", "O(1)", "Experiments find 1 + 1/sqrt(m)."),
        Asymptotic(
            "noisy",
            "T",
            "min{1, O(T^1.5 + sqrt(T))}",
            "min{1, O(1 + sqrt(T))}",
            "From this proof, whose C has no factor sqrt(T); for one source away from the ends a C with "
            "T^1/4 can be had. Table I of the abstract has O(sqrt(T) + T^2).",
        ),
        Asymptotic(
            "noisy",
            "sigma",
            "min{1, O(sigma)}",
            "min{1, O(1 + sqrt(sigma) + sigma)}",
            "sqrt(sigma) is in the printed bound too, so it does not match the lower bound in sigma.",
        ),
    )


def _slope(operator: Operator) -> float:
    """The largest l2 change of readings for each unit of distance, rounded up."""
    return sensitivity(operator, MovedMass(1, operator.space.metric)).l2


def _even(line: Line) -> bool:
    steps = np.diff(line.positions)
    return bool(np.allclose(steps, steps[0], rtol=1e-9, atol=0))


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InvalidParameter(f"{name} must be positive and finite, got {value}; nothing was computed")
