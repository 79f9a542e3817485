"""The band holds delta(epsilon) everywhere at once, and is as narrow as the issue asks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from experiments.audit.concentration import bernstein_tail
from numpy.random import Generator
from scipy import stats

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import FunctionBox, Pair
from sfumato.audit.boxes.samples import keys_of
from sfumato.audit.fixed.delta_profile import delta_upper, deviation, numbered, profile
from sfumato.audit.fixed.ratio import delta_lower
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import hockey_stick

EPSILONS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)


def geometric(center: int, outputs: int = 16) -> FloatArray:
    """Discrete Laplace noise of epsilon 1 on 0 .. outputs - 1, tails folded to the ends."""
    ratio = math.exp(-1)
    masses = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(outputs) - center)
    masses[[0, -1]] = ratio**center / (1 + ratio), ratio ** (outputs - 1 - center) / (1 + ratio)
    return np.asarray(masses)


def box_of(rng: Generator, *laws: FloatArray) -> FunctionBox:
    def draw(data: int, runs: int) -> FloatArray:
        return rng.choice(laws[data].size, runs, p=laws[data]).astype(float)

    return FunctionBox(draw, "finite")


def truth(p: FloatArray, q: FloatArray, epsilons: Sequence[float]) -> FloatArray:
    return np.maximum(hockey_stick(p, q, epsilon=epsilons), hockey_stick(q, p, epsilon=epsilons))


@pytest.mark.statistical
def test_sixteen_outputs_are_known_to_a_hundredth_after_two_hundred_thousand_runs(
    rng: Generator,
) -> None:
    laws = geometric(7), geometric(8)
    band = profile(box_of(rng, *laws), Pair(0, 1), epsilons=EPSILONS, runs=200_000, confidence=0.95)
    true = truth(*laws, EPSILONS)
    at_half = EPSILONS.index(0.5)
    assert (band.upper[at_half] - band.lower[at_half]) / 2 <= 0.013
    # Coverage is 95 % of runs, so the band itself is checked with room for 1e-6 instead: a standard
    # deviation of P(E) - e**epsilon Q(E) is below sqrt((1 + e**(2 epsilon)) / 4 / n), n = 1e5 or
    # 8e4.
    spread = np.sqrt((1 + np.exp(2 * np.array(EPSILONS))) / 4 / 80_000)
    assert np.all(np.array(band.lower) <= true + 2 * spread)
    assert np.all(np.array(band.upper) >= true - 2 * spread)
    assert list(band.lower) == sorted(band.lower, reverse=True)
    assert list(band.upper) == sorted(band.upper, reverse=True)
    for number, witness in enumerate(band.witnesses):
        assert witness.statement.epsilon == EPSILONS[number]
        assert witness.statement.delta <= band.lower[number]


@pytest.mark.statistical
def test_the_band_covers_and_a_tenth_of_it_does_not(rng: Generator) -> None:
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.6, 0.1])
    epsilons, trials = (0.0, 0.4), 80
    true = truth(p, q, epsilons)
    missed = narrow = 0
    for _ in range(trials):
        band = profile(box_of(rng, p, q), Pair(0, 1), epsilons=epsilons, runs=800, confidence=0.7)
        lower, upper = np.array(band.lower), np.array(band.upper)
        missed += bool((lower > true).any() or (upper < true).any())
        middle, part = (lower + upper) / 2, (upper - lower) / 20
        narrow += bool((np.abs(true - middle) > part).any())
    # More than this many misses of a band that errs with chance 0.3 have chance 1e-6.
    assert missed <= stats.binom.isf(1e-6, trials, 0.3) < narrow


@pytest.mark.unit
def test_a_deviation_is_the_one_of_bernstein_at_the_worst_event() -> None:
    for delta, ratio in ((0.3, 1.0), (0.1, 1.6), (0.0, 20.0), (0.9, 1.1)):
        found = deviation(delta, ratio, 500, level=1e-3)
        events = np.linspace(delta, 1, 2001)
        other = (events - delta) / ratio
        variance = float((events * (1 - events) + ratio**2 * other * (1 - other)).max())
        # 500 runs of each input are 500 sums of two, with the variance of both and moved by at most
        # ratio.
        tail = bernstein_tail(found, 500, variance=variance, bound=ratio)
        assert tail == pytest.approx(1e-3, rel=1e-4)


@pytest.mark.unit
def test_continuous_outputs_say_nothing_from_above(rng: Generator) -> None:
    box = FunctionBox(lambda data, runs: rng.random(runs), "uniform")
    band = profile(box, Pair(0, 1), epsilons=[0.0, 1.0], runs=1000)
    assert band.upper == pytest.approx((1.0, 1.0))
    assert band.lower[1] == 0


def colliding() -> FloatArray:
    """Two rows that differ and have the same key: the second column undoes what the first has changed."""
    first = np.array([[1.0, 2.0, 0.0], [1.5, 2.0, 0.0]])
    begin = [int(keys_of(row[None, :1])[0]) for row in first]
    wanted = begin[0] ^ begin[1] ^ _folded(int(first[0, 1:2].view(np.uint64)[0]))
    # c ^ (c >> 29) is undone from the top.
    bits = wanted
    for _ in range(3):
        bits = wanted ^ (bits >> 29)
    first[1, 1:2] = np.array([bits], dtype=np.uint64).view(np.float64)
    return first


def _folded(bits: int) -> int:
    return bits ^ (bits >> 29)


@pytest.mark.unit
def test_outputs_whose_keys_collide_are_two_outputs() -> None:
    rows = colliding()
    assert keys_of(rows)[0] == keys_of(rows)[1]
    first, second = np.repeat(rows[:1], 500, axis=0), np.repeat(rows[1:], 500, axis=0)
    numbers = numbered(first, second)
    assert set(numbers[0]) != set(numbers[1])
    assert delta_upper(*numbers, epsilon=0.0, level=0.01) == pytest.approx(1.0)
    zeros = numbered(np.array([[0.0, 0.0]]), np.array([[-0.0, 0.0]]))
    assert zeros[0] != zeros[1]
    whole = np.random.default_rng(1).integers(0, 3, (200, 3)).astype(float)
    one, other = numbered(whole[:100], whole[100:])
    same = (whole[:100, None] == whole[None, 100:]).all(axis=2)
    assert np.array_equal(one[:, None] == other[None, :], same)


@pytest.mark.unit
def test_a_larger_sample_of_the_same_shares_leaves_less_open() -> None:
    first, second = np.repeat([0, 1], [300, 100]), np.repeat([0, 1], [100, 300])
    uppers, lowers = [], []
    for times in (1, 10):
        keys = [np.repeat(one, times) for one in (first, second)]
        uppers.append(delta_upper(keys[0], keys[1], epsilon=0.2, level=0.01))
        lowers.append(
            delta_lower(300 * times, 400 * times, 100 * times, 400 * times, epsilon=0.2, level=0.01)
        )
    share = 0.75 - math.exp(0.2) * 0.25
    assert lowers[0] < lowers[1] < share < uppers[1] < uppers[0]
    # Deviations fall with the square root of the runs.
    assert (uppers[0] - share) / (uppers[1] - share) == pytest.approx(math.sqrt(10), rel=0.1)
    assert (share - lowers[0]) / (share - lowers[1]) == pytest.approx(math.sqrt(10), rel=0.1)


@pytest.mark.unit
@pytest.mark.parametrize("epsilons", [[], [-1.0], [1.0, 0.5], [math.nan], [1000.0]])
def test_a_grid_that_is_none_is_refused(epsilons: list[float]) -> None:
    box = FunctionBox(lambda data, runs: [0.0] * runs, "constant")
    with pytest.raises(InvalidParameter, match="epsilons must be numbers from 0 to 700 in order"):
        profile(box, Pair(0, 1), epsilons=epsilons)
