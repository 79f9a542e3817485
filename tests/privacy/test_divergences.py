"""The divergences against brute force over every event, in exact arithmetic.

Long because each divergence has its definition beside it, written out a second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.divergences import (
    approximate_max_divergence,
    hockey_stick,
    kl_divergence,
    max_divergence,
    renyi_divergence,
    total_variation,
)

# Masses are multiples of 2**-BITS, so every sum and every difference of masses is an exact double.
# What remains is rounding in functions. The logarithm of a mass is at most 40 ln 2 < 28, and right
# to 4 units in the last place, 4 * 28 * 2**-52; a ratio has two: below 2**-44.
BITS = 40
LOG = 2.0**-44
# Two exponentials and three products, each right to 4 units in the last place, scale masses that
# stay below 1, and 8 terms are summed: (5 * 8 + 8) 2**-53 < 2**-47.
MASS = 2.0**-47
# 8 terms p ln(p / q): the error LOG in each logarithm, and 8 roundings of a sum that stays below
# 28.
KL = 2.0**-43
# D = extreme + log_total / (order - 1): the ratio in extreme, and two in the exponents, are wrong
# by LOG each. The terms of log_total have one sign, so it is wrong by 24 roundings of itself, and
# |log_total / (order - 1)| is |D - extreme| <= D + 28. Together 3 LOG + 24 (28 + D) 2**-53 < (1 +
# D) 2**-41.
RENYI = 2.0**-41

Masses = list[Fraction]


def distributions(outcomes: int, *, bits: int = BITS) -> st.SearchStrategy[Masses]:
    """Distributions with masses in multiples of 2**-bits, or coarser: those have ties and zeros."""

    def cut(bits: int) -> st.SearchStrategy[Masses]:
        points = st.lists(
            st.integers(0, 2**bits), min_size=outcomes - 1, max_size=outcomes - 1
        ).map(sorted)
        return points.map(
            lambda at: [Fraction(b - a, 2**bits) for a, b in pairwise([0, *at, 2**bits])]
        )

    return st.sampled_from([2, 4, bits]).flatmap(cut)


def pairs(*, bits: int = BITS) -> st.SearchStrategy[tuple[Masses, Masses]]:
    return st.integers(1, 8).flatmap(
        lambda n: st.tuples(distributions(n, bits=bits), distributions(n, bits=bits))
    )


def doubles(masses: Masses) -> list[float]:
    assert all(Fraction(float(m)) == m for m in masses)
    return [float(m) for m in masses]


def events(p: Masses, q: Masses) -> set[tuple[Fraction, Fraction]]:
    """(P(E), Q(E)) of every event E, the empty one too."""
    found = {(Fraction(0), Fraction(0))}
    for a, b in zip(p, q, strict=True):
        found |= {(x + a, y + b) for x, y in found}
    return found


def log(x: Fraction) -> float:
    with mpmath.workdps(40):
        return float(mpmath.log(mpmath.mpf(x.numerator) / x.denominator)) if x > 0 else -math.inf


def supremum(p: Masses, q: Masses, delta: Fraction) -> float:
    """The definition, word for word: sup over events of ln (P(E) - delta) / Q(E)."""
    heavy = [(x - delta, y) for x, y in events(p, q) if x > delta]
    if any(y == 0 for _, y in heavy):
        return math.inf
    return log(max((x / y for x, y in heavy), default=Fraction(0)))


def stick(p: Masses, q: Masses, epsilon: float) -> float:
    with mpmath.workdps(60):
        scale = mpmath.exp(mpmath.mpf(epsilon))
        return float(max(_mpf(x) - scale * _mpf(y) for x, y in events(p, q)))


def renyi(p: Masses, q: Masses, order: float) -> float:
    """The defining sum, with digits enough for orders within 2**-40 of 1."""
    with mpmath.workdps(80):
        a, total = mpmath.mpf(order), mpmath.mpf(0)
        for x, y in zip(p, q, strict=True):
            if x > 0 and y > 0:
                total += _mpf(x) ** a * _mpf(y) ** (1 - a)
            elif x > 0 and order > 1:
                return math.inf
        return float(mpmath.log(total) / (a - 1)) if total > 0 else math.inf


def kl(p: Masses, q: Masses) -> float:
    with mpmath.workdps(60):
        if any(x > 0 and y == 0 for x, y in zip(p, q, strict=True)):
            return math.inf
        return float(
            sum(_mpf(x) * mpmath.log(_mpf(x) / _mpf(y)) for x, y in zip(p, q, strict=True) if x > 0)
        )


def _mpf(x: Fraction) -> Any:
    return mpmath.mpf(x.numerator) / x.denominator


def close(found: object, expected: float, tolerance: float) -> bool:
    value = float(np.asarray(found))
    return value == expected or abs(value - expected) <= tolerance < math.inf


def close_renyi(found: object, expected: float) -> bool:
    return close(found, expected, RENYI * (1 + expected))


def at_most(low: float, high: float, tolerance: float) -> bool:
    """Low <= high, both computed; the tolerance of a Renyi divergence grows with it."""
    return (
        low <= high
        or low - high <= tolerance * (2 + 2 * high if tolerance == RENYI else 2) < math.inf
    )


unhurried = settings(deadline=None)
orders = st.sampled_from(
    [2**-10, 0.25, 0.5, 1 - 2.0**-30, 1 + 2.0**-30, 1 + 2.0**-40, 1.5, 2.0, 8.0, 300.0, 1e6]
)


# --- against brute force ---


@pytest.mark.reference
@unhurried
@given(pairs())
def test_total_variation_is_the_supremum(pair: tuple[Masses, Masses]) -> None:
    p, q = pair
    assert total_variation(doubles(p), doubles(q)) == max(abs(x - y) for x, y in events(p, q))


@pytest.mark.reference
@unhurried
@given(pairs())
def test_max_divergence_is_the_supremum(pair: tuple[Masses, Masses]) -> None:
    p, q = pair
    assert close(max_divergence(doubles(p), doubles(q)), supremum(p, q, Fraction(0)), LOG)


@pytest.mark.reference
@unhurried
@given(pairs(), st.data())
def test_approximate_max_divergence_is_the_supremum(
    pair: tuple[Masses, Masses], data: st.DataObject
) -> None:
    p, q = pair
    masses = sorted({x for x, _ in events(p, q)})
    dyadic = st.integers(0, 2**BITS).map(lambda k: Fraction(k, 2**BITS))
    # An event of mass exactly delta is the delicate case.
    delta = data.draw(st.one_of(dyadic, st.sampled_from(masses)))
    found = approximate_max_divergence(doubles(p), doubles(q), delta=float(delta))
    assert close(found, supremum(p, q, delta), LOG)


@pytest.mark.reference
@unhurried
@given(pairs(), st.floats(-30, 30))
def test_hockey_stick_is_the_supremum(pair: tuple[Masses, Masses], epsilon: float) -> None:
    p, q = pair
    assert close(hockey_stick(doubles(p), doubles(q), epsilon=epsilon), stick(p, q, epsilon), MASS)


@pytest.mark.reference
@unhurried
@given(pairs(), orders)
def test_renyi_divergence_is_its_definition(pair: tuple[Masses, Masses], order: float) -> None:
    p, q = pair
    assert close_renyi(renyi_divergence(doubles(p), doubles(q), order=order), renyi(p, q, order))


@pytest.mark.reference
@unhurried
@given(pairs())
def test_kl_divergence_is_its_definition(pair: tuple[Masses, Masses]) -> None:
    p, q = pair
    assert close(kl_divergence(doubles(p), doubles(q)), kl(p, q), KL)


@pytest.mark.unit
def test_the_supremum_may_need_an_event_of_several_outcomes() -> None:
    p, q = [1 / 4] * 4, [1 / 16, 2 / 16, 3 / 16, 10 / 16]
    # No outcome has mass 3/8; the first three together have (6/8 - 3/8) / (6/16) = 1, two or four
    # have less.
    assert close(approximate_max_divergence(p, q, delta=3 / 8), 0, LOG)


# --- properties ---


@pytest.mark.property
@unhurried
@given(pairs(), st.integers(0, 2**BITS - 1).map(lambda k: k * 2.0**-BITS))
def test_the_pair_is_private_at_its_own_epsilon_and_delta(
    pair: tuple[Masses, Masses], delta: float
) -> None:
    p, q = map(doubles, pair)
    epsilon = float(approximate_max_divergence(p, q, delta=delta))
    if epsilon == math.inf:
        assert hockey_stick(p, q, epsilon=math.inf) > delta
        return
    # Some event attains the supremum, so delta is met with equality; epsilon is off by LOG, which
    # moves e**epsilon Q(E) <= 1 by as much.
    assert close(hockey_stick(p, q, epsilon=epsilon), delta, LOG + MASS)


@pytest.mark.property
@unhurried
@given(pairs(), st.integers(0, 2**BITS - 1).map(lambda k: k * 2.0**-BITS), st.floats(-5, 30))
def test_epsilon_bounds_one_exactly_when_delta_bounds_the_other(
    pair: tuple[Masses, Masses], delta: float, epsilon: float
) -> None:
    p, q = map(doubles, pair)
    least_epsilon = float(approximate_max_divergence(p, q, delta=delta))
    least_delta = float(hockey_stick(p, q, epsilon=epsilon))
    assume(
        abs(least_epsilon - epsilon) > LOG and abs(least_delta - delta) > MASS
    )  # both sides are decided
    assert (least_epsilon <= epsilon) == (least_delta <= delta)


@pytest.mark.property
@unhurried
@given(pairs())
def test_delta_zero_is_the_max_divergence(pair: tuple[Masses, Masses]) -> None:
    p, q = map(doubles, pair)
    assert close(approximate_max_divergence(p, q, delta=0), float(max_divergence(p, q)), 2 * LOG)


@pytest.mark.property
@unhurried
@given(pairs(), st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted))
def test_a_larger_delta_asks_no_larger_epsilon(
    pair: tuple[Masses, Masses], deltas: list[float]
) -> None:
    p, q = map(doubles, pair)
    small, large = approximate_max_divergence(p, q, delta=deltas)
    assert large <= small + 2 * LOG
    assert large >= (math.log1p(-deltas[1]) - LOG if deltas[1] < 1 else -math.inf)


def _divergences(
    delta: float, epsilon: float, order: float
) -> dict[str, tuple[Callable[..., Any], float]]:
    return {
        "total variation": (total_variation, 0.0),
        "max": (max_divergence, LOG),
        "approximate max": (lambda p, q: approximate_max_divergence(p, q, delta=delta), LOG),
        "hockey stick": (lambda p, q: hockey_stick(p, q, epsilon=epsilon), MASS),
        "kl": (kl_divergence, KL),
        "renyi": (lambda p, q: renyi_divergence(p, q, order=order), RENYI),
    }


@pytest.mark.property
@unhurried
@given(st.data(), st.integers(0, 2**20).map(lambda k: k * 2.0**-20), st.floats(-3, 3), orders)
def test_post_processing_never_increases_a_divergence(
    data: st.DataObject, delta: float, epsilon: float, order: float
) -> None:
    n, m = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    # Products of multiples of 2**-20 are multiples of 2**-40: the channel's output is exact as
    # well.
    p, q = (data.draw(distributions(n, bits=20)) for _ in range(2))
    channel = [data.draw(distributions(m, bits=20)) for _ in range(n)]

    def through(masses: Masses) -> list[float]:
        return doubles(
            [
                sum((a * row[j] for a, row in zip(masses, channel, strict=True)), Fraction(0))
                for j in range(m)
            ]
        )

    for name, (divergence, tolerance) in _divergences(delta, epsilon, order).items():
        before, after = divergence(doubles(p), doubles(q)), divergence(through(p), through(q))
        assert at_most(float(after), float(before), tolerance), name


@pytest.mark.property
@unhurried
@given(pairs())
def test_renyi_divergence_increases_with_its_order(pair: tuple[Masses, Masses]) -> None:
    p, q = map(doubles, pair)
    ladder = [2**-10, 0.5, 1 - 2.0**-30, 1, 1 + 2.0**-30, 2, 60, 1e6, 1e300, math.inf]
    values = [float(renyi_divergence(p, q, order=order)) for order in ladder]
    assert all(at_most(low, high, RENYI) for low, high in pairwise(values))
    # At order a > 1 the outcome of extreme ratio alone comes within -ln p / (a - 1) of the limit,
    # and p is at least 2**-40. Both values are below 28.
    assert values[-1] == values[-3] or values[-1] - values[-3] <= 28 / (1e6 - 1) + 58 * RENYI


@pytest.mark.property
@unhurried
@given(pairs(), st.sampled_from([2**-10, 0.25, 0.5, 0.9]))
def test_renyi_divergence_is_skew_symmetric(pair: tuple[Masses, Masses], order: float) -> None:
    p, q = map(doubles, pair)
    there, back = renyi_divergence(p, q, order=order), renyi_divergence(q, p, order=1 - order)
    # For these orders 1 - order is exact, and both factors are below 1.
    assert close((1 - order) * there, float(order * back), RENYI * float(2 + there + back))


@pytest.mark.property
@unhurried
@given(pairs())
def test_total_variation_is_symmetric_and_bounded_by_the_others(
    pair: tuple[Masses, Masses],
) -> None:
    p, q = map(doubles, pair)
    distance = float(total_variation(p, q))
    assert distance == total_variation(q, p) == hockey_stick(p, q, epsilon=0)
    information = float(kl_divergence(p, q)) + KL
    assert distance <= math.sqrt(information / 2)  # Pinsker
    assert (
        distance <= math.sqrt(-math.expm1(-information)) + 2.0**-52
    )  # Bretagnolle and Huber; one rounding
    if (epsilon := float(max_divergence(p, q))) < math.inf:
        assert distance <= -math.expm1(-epsilon - LOG)


@pytest.mark.property
@unhurried
@given(st.integers(1, 6).flatmap(lambda n: st.lists(distributions(n), min_size=2, max_size=5)))
def test_a_stack_is_the_same_as_its_pairs(stack: list[Masses]) -> None:
    rows = np.array([doubles(p) for p in stack])
    for name, (divergence, tolerance) in _divergences(0.125, 0.5, 1.5).items():
        table = divergence(rows[:, None], rows[None, :])
        assert table.shape == (len(rows), len(rows)), name
        for i, p in enumerate(rows):
            for j, q in enumerate(rows):
                single = float(divergence(p, q))
                assert at_most(single, table[i, j], tolerance), name
                assert at_most(table[i, j], single, tolerance), name
            itself = math.log1p(-0.125) if name == "approximate max" else 0
            assert close(table[i, i], itself, 2 * tolerance), name


@pytest.mark.property
@unhurried
@given(st.lists(st.floats(0, 1), min_size=1, max_size=200).filter(lambda w: sum(w) > 0))
def test_normalised_weights_are_always_accepted(weights: list[float]) -> None:
    masses = np.array(weights) / sum(weights)
    assert total_variation(masses, masses) == 0


# --- by hand ---


@pytest.mark.unit
def test_randomised_response_spends_its_epsilon() -> None:
    truth = math.exp(0.5) / (1 + math.exp(0.5))
    p, q = [truth, 1 - truth], [1 - truth, truth]
    # 1 - truth carries 2**-54 of rounding into a mass above 1/4, a relative 2**-52, on both sides
    # of the ratio.
    assert close(max_divergence(p, q), 0.5, LOG)
    assert close(approximate_max_divergence(p, q, delta=0), 0.5, LOG)
    assert close(hockey_stick(p, q, epsilon=0.5), 0, MASS)


@pytest.mark.unit
def test_ties_in_the_likelihood_ratio_are_one_event() -> None:
    p, q = [0.25, 0.25, 0.5], [0.125, 0.125, 0.75]
    assert close(approximate_max_divergence(p, q, delta=0.125), math.log(1.5), LOG)


@pytest.mark.unit
def test_mass_outside_the_support_of_q_is_forgiven_up_to_delta() -> None:
    p, q = [0.25, 0.75, 0.0], [0.0, 0.5, 0.5]
    assert approximate_max_divergence(p, q, delta=0.125) == math.inf
    assert close(approximate_max_divergence(p, q, delta=0.25), math.log(1.5), LOG)
    assert (
        max_divergence(p, q) == kl_divergence(p, q) == renyi_divergence(p, q, order=2) == math.inf
    )
    assert close_renyi(renyi_divergence(p, q, order=0.5), -2 * math.log(math.sqrt(0.375)))
    assert hockey_stick(p, q, epsilon=math.inf) == hockey_stick(p, q, epsilon=1e9) == 0.25


@pytest.mark.unit
def test_a_denormal_mass_of_q_is_not_a_missing_one() -> None:
    tiny = 5e-324
    p, q = [0.5, 0.5, 0.0], [0.0, tiny, 1.0]
    assert approximate_max_divergence(p, q, delta=0.4) == math.inf
    # log(tiny) = -744.4 is right to 4 units in the last place of 2**-43: 2**-41.
    assert close(
        approximate_max_divergence(p, q, delta=0.5), math.log(0.5) - math.log(tiny), 2.0**-40
    )
    assert hockey_stick(p, q, epsilon=740) > 0.5
    assert hockey_stick(p, q, epsilon=745) == 0.5
    assert close(renyi_divergence([tiny, 1.0], [1.0, tiny], order=1e307), -math.log(tiny), 2.0**-40)


@pytest.mark.unit
def test_the_divergence_of_a_forgiven_pair_is_negative() -> None:
    assert close(approximate_max_divergence([0.5, 0.5], [0.5, 0.5], delta=0.5), math.log(0.5), LOG)
    assert approximate_max_divergence([0.5, 0.5], [0.5, 0.5], delta=1) == -math.inf


@pytest.mark.unit
def test_one_outcome_and_disjoint_supports() -> None:
    for divergence, _ in _divergences(0.0, 0.0, 2.0).values():
        assert divergence([1], [1]) == 0
    assert total_variation([1, 0], [0, 1]) == hockey_stick([1, 0], [0, 1], epsilon=5) == 1
    for order in (0.5, 1, 2, math.inf):
        assert renyi_divergence([1, 0], [0, 1], order=order) == math.inf


@pytest.mark.unit
def test_nearly_equal_masses_keep_their_digits() -> None:
    step = 2.0**-40
    p, q = [0.5 + step, 0.5 - step], [0.5, 0.5]
    # ln(1 + 2 step), within the 4 units in the last place of log1p.
    assert float(max_divergence(p, q)) == pytest.approx(math.log1p(2 * step), rel=2.0**-50, abs=0)


@pytest.mark.unit
def test_masses_short_of_1_by_a_rounding_break_no_bound() -> None:
    short, whole = [1 - 2.0**-53], [1.0]
    assert total_variation(short, whole) == total_variation(whole, short) == 2.0**-53
    for divergence in (max_divergence, kl_divergence):
        assert divergence(short, whole) == 0
    assert renyi_divergence(short, whole, order=2) == 0
    assert approximate_max_divergence(short, whole, delta=0.5) == np.log1p(-0.5)
    assert approximate_max_divergence([0.5, 0.5 + 2.0**-52], [0.5, 0.5], delta=1) == -math.inf


@pytest.mark.unit
def test_a_privacy_curve_is_one_call() -> None:
    curve = hockey_stick([[0.75, 0.25]], [[0.25, 0.75]], epsilon=[0, math.log(3), math.inf])
    assert curve.shape == (3,)
    assert close(curve[0], 0.5, 0)
    assert close(curve[1], 0, MASS)
    assert curve[2] == 0


@pytest.mark.unit
@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([0.5, 0.4], [0.5, 0.5], "p must sum to 1 within 3.8e-15, got 0.9"),
        ([0.5, 0.5], [0.5, 0.5 + 1e-14], "q must sum to 1"),
        ([1.5, -0.5], [0.5, 0.5], "p must have masses between 0 and 1, got -0.5"),
        ([math.nan, 1], [0.5, 0.5], "p must have masses between 0 and 1, got nan"),
        ([math.inf, 1], [0.5, 0.5], "p must have masses between 0 and 1, got inf"),
        (["a"], [1], "p must have masses between 0 and 1, got"),
        ([], [1], r"p must have an outcome on its last axis, got shape \(0,\)"),
        (1.0, [1], r"p must have an outcome on its last axis, got shape \(\)"),
        ([1], [0.5, 0.5], "p and q must have equally many outcomes, got 1 and 2"),
        (
            [[1], [1]],
            [[1], [1], [1]],
            r"the leading axes of p and q must broadcast, got shapes \(2, 1\) and \(3, 1\)",
        ),
    ],
)
def test_what_is_no_distribution_is_refused(p: Any, q: Any, message: str) -> None:
    for divergence, _ in _divergences(0.0, 0.0, 2.0).values():
        with pytest.raises(InvalidParameter, match=message):
            divergence(p, q)


@pytest.mark.unit
def test_parameters_outside_their_range_are_refused() -> None:
    for delta in (-0.1, 1.1, math.nan, [0.5, 2]):
        with pytest.raises(InvalidParameter, match="delta must be between 0 and 1, got"):
            approximate_max_divergence([1], [1], delta=delta)
    with pytest.raises(InvalidParameter, match="epsilon must be a number, got nan"):
        hockey_stick([1], [1], epsilon=math.nan)
    for order in (0, -1, math.nan):
        with pytest.raises(InvalidParameter, match="order must be above 0, got"):
            renyi_divergence([1], [1], order=order)
