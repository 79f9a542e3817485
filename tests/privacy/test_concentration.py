"""Tails and risks against cases small enough to compute exactly, and the thesis's slips caught in the act.

Long because every bound has an exact opponent, computed here by enumeration.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from experiments.audit.concentration import (
    bernstein_tail,
    hoeffding_tail,
    le_cam_risk,
    overlap_from_affinity,
    overlap_from_total_variation,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.concentration import fano_error, least_samples
from sfumato.privacy.accounting.divergences import kl_divergence

Masses = Sequence[Fraction]
Variable = dict[Fraction, Fraction]  # value -> chance

# The bounds are a few operations long. Exponents stay below 700 and are right to 16 roundings, so
# an exponential is right to 700 * 16 * 2**-53 < 2**-39 of itself; all else is right to far more.
ROUNDING = Fraction(1, 2**39)

unhurried = settings(deadline=None)


def above(bound: float, exact: Fraction) -> bool:
    return exact <= Fraction(bound) * (1 + ROUNDING)


def below(bound: float, exact: Fraction) -> bool:
    return Fraction(bound) <= exact * (1 + ROUNDING)


def nearly(value: float) -> Any:
    return pytest.approx(value, rel=float(ROUNDING), abs=0)


def total_variation(p: Masses, q: Masses) -> Fraction:
    return sum((max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def power(p: Masses, samples: int) -> list[Fraction]:
    """The distribution of so many independent samples, outcome by outcome."""
    return [math.prod(masses, start=Fraction(1)) for masses in product(p, repeat=samples)]


def affinity(p: Masses, q: Masses) -> float:
    """At most the Hellinger affinity: three roundings of 2**-53, and 2**-40 taken off."""
    return math.fsum(math.sqrt(a * b) for a, b in zip(p, q, strict=True)) * (1 - 2.0**-40)


def distributions(outcomes: int) -> st.SearchStrategy[list[Fraction]]:
    points = st.lists(st.integers(0, 16), min_size=outcomes - 1, max_size=outcomes - 1).map(sorted)
    return points.map(lambda at: [Fraction(b - a, 16) for a, b in pairwise([0, *at, 16])])


pairs = st.integers(2, 3).flatmap(lambda n: st.tuples(distributions(n), distributions(n)))


# --- tails ---


def mean_of(variables: Iterable[Variable]) -> Variable:
    """The law of the mean of independent variables, centered."""
    law: Variable = {Fraction(0): Fraction(1)}
    rows = list(variables)
    for variable in rows:
        mean = sum((x * chance for x, chance in variable.items()), Fraction(0))
        wider: Variable = defaultdict(Fraction)
        for (total, p), (x, q) in product(law.items(), variable.items()):
            wider[total + (x - mean) / len(rows)] += p * q
        law = wider
    return law


def tail(law: Variable, deviation: Fraction) -> Fraction:
    return sum((chance for x, chance in law.items() if x >= deviation), Fraction(0))


# Eighths, sixteenths and 1, 2, 4 or 8 variables keep every number below an exact double.
_values = st.integers(-16, 16).map(lambda k: Fraction(k, 8))
_variables = st.integers(1, 3).flatmap(
    lambda n: st.tuples(
        st.lists(_values, min_size=n, max_size=n, unique=True), distributions(n)
    ).map(lambda both: dict(zip(*both, strict=True)))
)
samples_of_variables = st.sampled_from([1, 2, 4, 8]).flatmap(
    lambda n: st.lists(_variables, min_size=n, max_size=n)
)


def support(variable: Variable) -> list[Fraction]:
    return [x for x, chance in variable.items() if chance > 0]


@pytest.mark.property
@unhurried
@given(samples_of_variables)
def test_hoeffding_holds_at_every_deviation_of_small_samples(variables: list[Variable]) -> None:
    law = mean_of(variables)
    widths = [float(max(support(v)) - min(support(v))) for v in variables]
    for deviation in (x for x, chance in law.items() if x > 0 and chance > 0):
        assert above(hoeffding_tail(float(deviation), widths), tail(law, deviation))


@pytest.mark.property
@unhurried
@given(samples_of_variables)
def test_bernstein_holds_at_every_deviation_of_small_samples(variables: list[Variable]) -> None:
    law = mean_of(variables)
    centered = [mean_of([v]) for v in variables]
    squares = (x * x * chance for v in centered for x, chance in v.items())
    variance = sum(squares, Fraction(0)) / len(variables)
    bound = max(max(support(v)) for v in centered)
    assume(bound > 0)
    for deviation in (x for x, chance in law.items() if x > 0 and chance > 0):
        limit = bernstein_tail(
            float(deviation), len(variables), variance=float(variance), bound=float(bound)
        )
        assert above(limit, tail(law, deviation))


@pytest.mark.reference
def test_no_exponent_may_be_a_tenth_larger() -> None:
    """Ten thousand fair coins, at least 6000 heads: Hoeffding and Bernstein are that close to the truth."""
    tosses, ways, at_least = 10_000, 1, 0
    for tails in range(4001):
        at_least += ways
        ways = ways * (tosses - tails) // (tails + 1)
    exact = Fraction(at_least, 2**tosses)
    for bound in (
        hoeffding_tail(0.1, [1.0] * tosses),
        bernstein_tail(0.1, tosses, variance=0.25, bound=0.5),
    ):
        assert above(bound, exact)
        assert not above(bound**1.1, exact)


@pytest.mark.reference
@pytest.mark.parametrize("trials", [200, 1000])
def test_bernstein_as_printed_fails_for_rare_events(trials: int) -> None:
    """X = +1 with chance 1/n, else -1: |X| <= 1, but X - E X reaches 2 (1 - 1/n)."""
    chance = Fraction(1, trials)
    law = (math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(11))
    exact = 1 - sum(law, Fraction(0))  # P(B >= 11), B binomial with mean 1
    deviation, variance = 2 * (11 - 1) / trials, float(4 * chance * (1 - chance))
    printed = bernstein_tail(deviation, trials, variance=variance, bound=1)
    corrected = bernstein_tail(deviation, trials, variance=variance, bound=float(2 * (1 - chance)))
    assert not above(printed, exact)
    assert above(corrected, exact)


@pytest.mark.unit
def test_tails_by_hand() -> None:
    assert hoeffding_tail(0.5, [1, 1]) == nearly(math.exp(-1))
    assert hoeffding_tail(0.5, [3, 4]) == nearly(math.exp(-2 * 4 * 0.25 / 25))
    assert hoeffding_tail(0.5, [0, 0]) == 0
    assert hoeffding_tail(1e-200, [1e-200]) == nearly(math.exp(-2))
    assert hoeffding_tail(1e200, [1e-200]) == 0
    assert bernstein_tail(1, 2, variance=1, bound=3) == nearly(math.exp(-2 / 4))
    assert bernstein_tail(3, 1, variance=0, bound=3) == nearly(math.exp(-9 / 6))


# --- two points ---


def minimax_error(p: Masses, q: Masses) -> Fraction:
    """The least error a randomised test can promise on both sides (Neyman and Pearson), exactly.

    Rejecting the outcomes of largest q / p first, false alarms grow from 0 and misses fall from 1;
    the answer is where the two lines cross.
    """
    alarm, miss = Fraction(0), Fraction(1)
    for a, b in sorted(zip(p, q, strict=True), key=lambda ab: ab[0] / ab[1] if ab[1] else math.inf):
        if alarm + a >= miss - b:
            return alarm + a * (miss - alarm) / (a + b)
        alarm, miss = alarm + a, miss - b
    raise AssertionError("alarms end at 1 and misses at 0, so the lines cross")


@pytest.mark.property
@unhurried
@given(pairs, st.integers(1, 4))
def test_samples_share_at_least_the_overlap(pair: tuple[Masses, Masses], samples: int) -> None:
    p, q = pair
    shared = 1 - total_variation(power(p, samples), power(q, samples))
    assert below(overlap_from_total_variation(float(total_variation(p, q)), samples), shared)
    assert below(overlap_from_affinity(affinity(p, q), samples), shared)


@pytest.mark.property
@unhurried
@given(pairs, st.integers(1, 4))
def test_no_test_beats_le_cam(pair: tuple[Masses, Masses], samples: int) -> None:
    p, q = pair
    best = minimax_error(power(p, samples), power(q, samples))
    for overlap in (
        overlap_from_total_variation(float(total_variation(p, q)), samples),
        overlap_from_affinity(affinity(p, q), samples),
    ):
        assert below(le_cam_risk(1, overlap), best)


@pytest.mark.reference
@pytest.mark.parametrize(("p", "q"), [((1, 7), (3, 5)), ((0, 8), (4, 4)), ((2, 6), (6, 2))])
def test_no_estimator_beats_le_cam_either(p: tuple[int, int], q: tuple[int, int]) -> None:
    """All 81 estimators of two samples that answer 0, 1/2 or 1; the parameter is 0 under p and 1 under q."""
    first, second = ([Fraction(x, 8) for x in masses] for masses in (p, q))
    laws = list(zip(power(first, 2), power(second, 2), strict=True))
    risks = [
        (
            sum((a * guess for (a, _), guess in zip(laws, guesses, strict=True)), Fraction(0)),
            sum(
                (b * (1 - guess) for (_, b), guess in zip(laws, guesses, strict=True)), Fraction(0)
            ),
        )
        for guesses in product((Fraction(0), Fraction(1, 2), Fraction(1)), repeat=4)
    ]
    shared = sum((min(a, b) for a, b in laws), Fraction(0))
    assert (
        min(a + b for a, b in risks) == shared
    )  # so the mean risk is d/2 times the overlap, and no less
    for overlap in (
        overlap_from_total_variation(float(total_variation(first, second)), 2),
        overlap_from_affinity(affinity(first, second), 2),
    ):
        assert below(le_cam_risk(1, overlap), min(max(pair) for pair in risks))


@pytest.mark.unit
@pytest.mark.parametrize("samples", [1, 2, 3, 5])
def test_the_overlap_from_total_variation_is_attained(samples: int) -> None:
    p, q = (
        [Fraction(3, 4), Fraction(1, 4), Fraction(0)],
        [Fraction(3, 4), Fraction(0), Fraction(1, 4)],
    )
    shared = 1 - total_variation(power(p, samples), power(q, samples))
    assert overlap_from_total_variation(0.25, samples) == shared


@pytest.mark.unit
def test_the_affinity_sees_that_nearby_coins_need_many_tosses() -> None:
    fair, biased = [Fraction(11, 20), Fraction(9, 20)], [Fraction(9, 20), Fraction(11, 20)]
    assert overlap_from_affinity(affinity(fair, biased), 50) > 0.2
    assert overlap_from_total_variation(0.1, 50) < 0.01
    assert overlap_from_affinity(1, 7) == overlap_from_total_variation(0, 7) == 1
    assert overlap_from_affinity(0, 7) == overlap_from_total_variation(1, 7) == 0
    # A**(2 r) = 2**-1000 would vanish beside 1.
    assert overlap_from_affinity(0.5, 500) == nearly(2.0**-1001)


@pytest.mark.unit
def test_the_printed_le_cam_is_a_quarter_or_less() -> None:
    for distance, samples in product((0.0, 0.1, 0.5, 0.9), (1, 2, 10)):
        printed = 2 / 8 * (1 - distance) ** (2 * samples)
        assert printed <= le_cam_risk(2, overlap_from_total_variation(distance, samples)) / 4 * (
            1 + float(ROUNDING)
        )


# --- many points ---


def bayes_error(family: Sequence[Masses], samples: int) -> Fraction:
    """The error of the best guess of a uniformly chosen member, which no estimator's worst error is below."""
    laws = [power(member, samples) for member in family]
    return 1 - sum((max(masses) for masses in zip(*laws, strict=True)), Fraction(0)) / len(family)


def diameter(family: Sequence[Masses]) -> float:
    rows = np.array([[float(x) for x in member] for member in family])
    return float(kl_divergence(rows[:, None], rows).max())


def symmetric_channel(points: int, signal: Fraction) -> list[list[Fraction]]:
    """Member j shows j with chance signal, otherwise any symbol."""
    noise = (1 - signal) / points
    return [[noise + (signal if i == j else 0) for i in range(points)] for j in range(points)]


@pytest.mark.reference
@pytest.mark.parametrize(
    ("points", "signal", "samples"),
    [
        (16, Fraction(1, 8), 1),
        (16, Fraction(1, 8), 2),
        (16, Fraction(1, 4), 1),
        (128, Fraction(1, 2), 1),
    ],
)
def test_no_estimator_beats_fano_on_a_channel(points: int, signal: Fraction, samples: int) -> None:
    family = symmetric_channel(points, signal)
    bound = fano_error(points, diameter(family), samples=samples)
    assert bound > 0.1
    assert below(bound, bayes_error(family, samples))


@pytest.mark.property
@unhurried
@given(
    st.lists(distributions(3), min_size=8, max_size=8),
    st.integers(1, 2),
    st.sampled_from([2, 4, 8]),
)
def test_no_estimator_beats_fano_on_nearby_distributions(
    members: list[list[Fraction]], samples: int, nearness: int
) -> None:
    family = [[(Fraction(nearness - 1, 3) + x) / nearness for x in member] for member in members]
    assert below(fano_error(8, diameter(family), samples=samples), bayes_error(family, samples))


@pytest.mark.reference
def test_fano_with_base_2_and_nats_fails() -> None:
    family = symmetric_channel(128, Fraction(1, 2))
    printed = 1 - (diameter(family) + 1) / math.log2(128)
    assert not below(printed, bayes_error(family, 1))


@pytest.mark.property
@unhurried
@given(st.lists(distributions(4), min_size=4, max_size=4), st.sampled_from([1, 2, 4, 8]))
def test_fano_with_base_2_holds_for_four_points(
    members: list[list[Fraction]], nearness: int
) -> None:
    """1 - (K + 1) / 2 <= 3/4 - sqrt(K / 2), as (sqrt(K / 2) - 1/2)**2 >= 0; and nobody errs less than that.

    Right guesses have a chance of 1/4 + the mean total variation to the mixture at most, which by
    Pinsker is 1/4 + sqrt(K / 2).
    """
    family = [[(Fraction(nearness - 1, 4) + x) / nearness for x in member] for member in members]
    wide = diameter(family)
    if math.isinf(wide):
        return  # it says nothing then
    printed = 1 - (wide + 1) / math.log2(4)
    assert printed <= 3 / 4 - math.sqrt(wide / 2) + 1e-12
    assert below(printed, bayes_error(family, 1))
    for signal in (Fraction(1, 8), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4)):
        channel = symmetric_channel(4, signal)
        assert below(1 - (diameter(channel) + 1) / 2, bayes_error(channel, 1))


@pytest.mark.reference
def test_fano_without_the_number_of_samples_fails() -> None:
    """1000 tosses of one of 16 coins between 0.3 and 0.7; the count of heads says all there is to know."""
    biases = [Fraction(3, 10) + Fraction(2, 5) * Fraction(j, 15) for j in range(16)]
    tosses = 1000
    heads = [
        int(bias * 150) for bias in biases
    ]  # in units of 1/150, so that the sum is one of integers
    right = sum(
        math.comb(tosses, k) * max(h**k * (150 - h) ** (tosses - k) for h in heads)
        for k in range(tosses + 1)
    )
    error = 1 - Fraction(right, 16 * 150**tosses)
    one_sample = diameter([[bias, 1 - bias] for bias in biases])
    printed = 1 - (one_sample + 1) / math.log(16)
    assert printed > 0.5
    assert not below(printed, error)
    assert below(fano_error(16, one_sample, samples=tosses), error)


@pytest.mark.unit
def test_fano_by_hand() -> None:
    assert fano_error(16, math.log(2)) == nearly(0.5)
    assert fano_error(16, math.log(2) / 2, samples=2) == nearly(0.5)
    assert fano_error(2, 0) == 0
    assert fano_error(1000, math.inf) == 0
    # Without ln 2 the bound would be 1 for equal distributions, of which one in eight is guessed.
    assert fano_error(8, 0) == nearly(2 / 3)
    assert bayes_error([[Fraction(1, 2)] * 2] * 8, 1) == Fraction(7, 8)


# --- testing ---


def first_samples(reaches: Callable[[int], bool]) -> int:
    return next(r for r in range(1, 200) if reaches(r))


@pytest.mark.property
@unhurried
@given(st.tuples(st.integers(0, 16), st.integers(0, 16)), st.sampled_from([1 / 3, 1 / 4, 1 / 10]))
def test_no_test_needs_fewer_samples(heads: tuple[int, int], error: float) -> None:
    a, b = (Fraction(k, 16) for k in heads)
    assume(abs(a - b) > Fraction(1, 8))  # keeps the exact search short

    def law(bias: Fraction, tosses: int) -> list[Fraction]:
        return [
            math.comb(tosses, k) * bias**k * (1 - bias) ** (tosses - k) for k in range(tosses + 1)
        ]

    enough = first_samples(lambda r: minimax_error(law(a, r), law(b, r)) <= Fraction(error))
    distance, shared = float(abs(a - b)), affinity([a, 1 - a], [b, 1 - b])
    assert least_samples(distance, shared, error=error) <= enough
    assert least_samples(distance, 1 - distance, error=error) <= least_samples(
        distance, shared, error=error
    )


@pytest.mark.unit
@pytest.mark.parametrize(
    ("t", "samples"), [(1, 1), (1 / 2, 1), (1 / 4, 2), (1 / 8, 4), (1 / 64, 26)]
)
def test_the_fewest_samples_suffice_for_the_extreme_pair(t: float, samples: int) -> None:
    """(1 - t, t, 0) and (1 - t, 0, t): TV(P**r, Q**r) = 1 - (1 - t)**r reaches 1/3."""
    assert least_samples(t, 1 - t) == samples
    assert samples == first_samples(lambda r: 1 - (1 - Fraction(t)) ** r >= Fraction(1, 3))


@pytest.mark.unit
def test_rounding_never_asks_one_sample_too_many() -> None:
    assert least_samples(1 / 3, 2 / 3) == 1
    assert least_samples(1 / 3, math.sqrt(8 / 9)) == 1
    assert least_samples(1 - math.sqrt(2 / 3), 0) == 2


@pytest.mark.reference
def test_twice_the_samples_in_corollary_3_4_is_a_misprint() -> None:
    """Coins of bias 0.66 and 0.34: 4 tosses tell them apart, although TV(P**2, Q**2) is below 1/3."""
    p, q = [Fraction(33, 50), Fraction(17, 50)], [Fraction(17, 50), Fraction(33, 50)]
    assert minimax_error(power(p, 4), power(q, 4)) < Fraction(1, 3)
    assert total_variation(power(p, 2), power(q, 2)) < Fraction(1, 3)
    assert total_variation(power(p, 4), power(q, 4)) >= Fraction(1, 3)


# --- messages ---


@pytest.mark.unit
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hoeffding_tail(0, [1]), "deviation must be above 0, got 0"),
        (lambda: hoeffding_tail(math.nan, [1]), "deviation must be above 0, got nan"),
        (lambda: hoeffding_tail(1, []), r"widths must be a non-empty list, got \[\]"),
        (lambda: hoeffding_tail(1, [1, -1]), "widths must be finite and at least 0"),
        (lambda: bernstein_tail(-1, 1, variance=1, bound=1), "deviation must be above 0, got -1"),
        (lambda: bernstein_tail(1, 0, variance=1, bound=1), "samples must be at least 1, got 0"),
        (
            lambda: bernstein_tail(1, 1, variance=-1, bound=1),
            "variance must be finite and at least 0",
        ),
        (
            lambda: bernstein_tail(1, 1, variance=1, bound=0),
            "bound must be finite and above 0, got 0",
        ),
        (
            lambda: overlap_from_total_variation(1.5, 1),
            "total_variation must be between 0 and 1, got 1.5",
        ),
        (lambda: overlap_from_total_variation(0.5, 0), "samples must be at least 1, got 0"),
        (lambda: overlap_from_affinity(-0.5, 1), "affinity must be between 0 and 1, got -0.5"),
        (lambda: overlap_from_affinity(0.5, 0), "samples must be at least 1, got 0"),
        (lambda: le_cam_risk(-1, 1), "separation must be finite and at least 0, got -1"),
        (lambda: le_cam_risk(1, 2), "overlap must be between 0 and 1, got 2"),
        (lambda: fano_error(1, 0), "points must be at least 2, got 1"),
        (lambda: fano_error(2, -1), "kl must be at least 0, got -1"),
        (lambda: fano_error(2, 1, samples=0), "samples must be at least 1, got 0"),
        (lambda: least_samples(0, 0.5), "total_variation must be above 0 and at most 1, got 0"),
        (lambda: least_samples(0.5, 1), "affinity must be at least 0 and below 1, got 1"),
        (lambda: least_samples(0.5, 0.5, error=0.5), "error must be between 0 and 1/2, got 0.5"),
    ],
)
def test_what_is_out_of_range_is_refused(call: Callable[[], float], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        call()
