"""What a device computes in integers is bit for bit what mpmath gives: roots of plans, tables of noise."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.privacy.accounting.conversion import _best, _epsilon_of_rho, _overhead, rho_within
from sfumato.privacy.accounting.numbers import SMALLEST, WORKING, down, real, sqrt_above, up
from sfumato.privacy.noise.tables import FAR, FIXED, _exp, _sum_distance

pytestmark = pytest.mark.unit

WIDE = st.integers(1, 10**40)


@given(WIDE, WIDE)
@example(1, 1)
@example(4**30, 1)
@example(1, 2**31)
@example(10**18, 49)
@example(1, 2 ** (2 * SMALLEST))
@example(1, 2 ** (2 * SMALLEST + 2))
def test_a_root_is_rounded_as_before(top: int, bottom: int) -> None:
    number = Fraction(top, bottom)
    with mpmath.workprec(WORKING):
        assert sqrt_above(number) == up(mpmath.sqrt(real(number)))
    assert sqrt_above(number) ** 2 >= number


def test_a_root_of_nothing_is_nothing() -> None:
    assert sqrt_above(Fraction(0)) == 0


@given(st.integers(0, 10**30), WIDE)
@example(0, 1)
@example(511, 1)
@example(512, 1)
@example(10**9, 1)
@example(1, 10**40)
def test_weights_are_those_of_mpmath(top: int, bottom: int) -> None:
    power = -Fraction(top, bottom)
    with mpmath.workprec(FIXED + 64):
        assert _exp(power) == int(mpmath.floor(mpmath.ldexp(mpmath.exp(real(power)), FIXED)))


@given(st.fractions(1, 1000))
@example(Fraction(FAR))
@example(Fraction(FAR) - Fraction(1, 10**9))
def test_how_far_a_sum_is_off_is_what_mpmath_says(r: Fraction) -> None:
    with mpmath.workprec(64):
        assert _sum_distance(r) == up(4 * mpmath.exp(-2 * mpmath.pi**2 * real(r)))


def overhead(order: float, delta: Fraction) -> mpmath.mpf:
    """As `_overhead`, in mpmath's numbers."""
    a = mpmath.mpf(order)
    return (-mpmath.log(real(delta)) - mpmath.log(a)) / (a - 1) + mpmath.log((a - 1) / a)


@given(st.fractions(Fraction(1, 10**6), 10**4), st.integers(1, 300))
@example(Fraction(120), 6)
@example(Fraction(10**100), 300)
def test_a_budget_is_worth_the_rho_and_the_epsilon_of_before(loss: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    order = _best(lambda a: -(float(loss) - _overhead(a, float(delta))) / a)
    with mpmath.workprec(WORKING):
        wanted = max(Fraction(0), down((real(loss) - overhead(order, delta)) / order))
    assert rho_within(loss, delta) == wanted
    order = _best(lambda a: float(loss) * a + _overhead(a, float(delta)))
    with mpmath.workprec(WORKING):
        wanted = max(Fraction(0), up(real(loss) * order + overhead(order, delta)))
    assert _epsilon_of_rho(loss, delta) == wanted
