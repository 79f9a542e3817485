"""A budget is spent in exact fractions, never beyond, and says what is left when it refuses."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, NotComparable, SfumatoError
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Ledger,
    Loss,
    PureDP,
    as_approx,
    histogram,
)
from sfumato.privacy.accounting import gaussian_delta, rho_within
from sfumato.privacy.ledger import Spent
from sfumato.privacy.ledger.budget import charge, left

TENTH = PureDP(0.1)


def spend(budget: Loss, *costs: Loss, spent: Spent | None = None) -> Spent:
    now = Spent() if spent is None else spent
    for cost in costs:
        now = charge(budget, now, cost)
    return now


@pytest.mark.unit
def test_ten_tenths_are_one_and_not_a_hair_more() -> None:
    full = spend(PureDP(1), *[TENTH] * 10)
    assert full.epsilon == 1
    assert left(PureDP(1), full) == PureDP(0)
    with pytest.raises(BudgetExceeded, match=r"^asked epsilon 1e-30, 0 left$"):
        charge(PureDP(1), full, PureDP("1e-30"))
    assert charge(PureDP(1), full, PureDP(0)) == full


@pytest.mark.unit
def test_what_floats_would_lose_is_counted() -> None:
    # As doubles, 1e16 + 1 == 1e16, and three times 0.1 is above 0.3.
    assert spend(PureDP("1e16"), PureDP("9999999999999999"), PureDP(1)).epsilon == 10**16
    with pytest.raises(BudgetExceeded, match=r"^asked epsilon 1, 0 left$"):
        spend(PureDP("1e16"), PureDP("1e16"), PureDP(1))
    assert left(PureDP(0.3), spend(PureDP(0.3), TENTH, TENTH, TENTH)) == PureDP(0)
    assert spend(PureDP(1), *[PureDP("1/3")] * 3).epsilon == 1


@pytest.mark.unit
def test_a_refusal_says_what_was_asked_and_what_is_left() -> None:
    with pytest.raises(BudgetExceeded, match=r"^asked epsilon 1\.5, 1 left$"):
        charge(PureDP(1), Spent(), PureDP(1.5))
    with pytest.raises(BudgetExceeded, match=r"^asked epsilon 0\.5, 0\.4 left$"):
        spend(ApproxDP(1, "1e-6"), ApproxDP(0.6, 0), PureDP(0.5))
    with pytest.raises(BudgetExceeded, match=r"^asked delta 1e-06, 5e-07 left$"):
        spend(ApproxDP(1, "1e-6"), ApproxDP(0.1, "5e-7"), ApproxDP(0.1, "1e-6"))
    with pytest.raises(BudgetExceeded, match=r"^asked delta 1e-07, 0 left$"):
        charge(PureDP(1), Spent(), ApproxDP(0.1, "1e-7"))
    with pytest.raises(BudgetExceeded, match=r"^asked rho 0\.3, 0\.2 left$"):
        spend(ZCDP(0.5), ZCDP(0.3), ZCDP(0.3))
    with pytest.raises(BudgetExceeded, match=r"^asked rho 0\.5 \(for epsilon 1\), 0\.2 left$"):
        spend(ZCDP(0.5), ZCDP(0.3), PureDP(1))


@pytest.mark.unit
def test_an_approximate_budget_adds_both_parts() -> None:
    budget = ApproxDP(1, "1e-6")
    spent = spend(budget, PureDP("1/3"), ApproxDP("1/3", "1/3000000"), ApproxDP("1/3", "2/3000000"))
    assert spent == Spent(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert left(budget, spent) == ApproxDP(0, 0)


@pytest.mark.unit
def test_a_zcdp_budget_takes_pure_losses_at_their_rho() -> None:
    budget = ZCDP(1)
    assert spend(budget, PureDP(1)).rho == Fraction(1, 2)
    assert spend(budget, PureDP(0.5), ZCDP("7/8")).rho == 1
    # Above epsilon 2, epsilon itself is the smaller bound on the rate of every order.
    assert spend(ZCDP(3), PureDP(3)).rho == 3
    assert left(budget, spend(budget, PureDP(1))) == ZCDP("1/2")
    assert spend(budget, ApproxDP(1, 0)).rho == Fraction(1, 2)
    with pytest.raises(
        NotComparable, match="approximate DP with delta above 0 has no zCDP equivalent"
    ):
        charge(budget, Spent(), ApproxDP(0.1, "1e-9"))


@pytest.mark.unit
def test_a_pure_budget_cannot_pay_for_gaussian_noise() -> None:
    with pytest.raises(
        NotComparable,
        match=r"^a budget of epsilon 1 has no delta and cannot pay for Gaussian noise \(rho 0\.125\)$",
    ):
        charge(PureDP(1), Spent(), ZCDP("1/8"))
    with pytest.raises(BudgetExceeded, match=r"^asked rho 0\.125, 0 left$"):
        charge(ApproxDP(1, 0), Spent(), ZCDP("1/8"))


@pytest.mark.unit
def test_the_first_gaussian_charge_opens_an_account_with_all_that_is_left() -> None:
    budget = ApproxDP(1, "1e-6")
    before = spend(budget, PureDP(0.25), ApproxDP(0.25, "4e-7"))
    opened = charge(budget, before, ZCDP("1/1000"))
    assert opened.account == rho_within("1/2", "6e-7")
    assert (opened.epsilon, opened.delta, opened.rho) == (
        before.epsilon,
        before.delta,
        Fraction(1, 1000),
    )
    assert left(budget, opened) == ZCDP(opened.account - Fraction(1, 1000))
    # Everything after it is paid from there: epsilon and delta stand still, the size of the account
    # too.
    later = spend(budget, ZCDP("1/2000"), PureDP("1/50"), spent=opened)
    assert (later.epsilon, later.delta, later.account) == (
        before.epsilon,
        before.delta,
        opened.account,
    )
    assert later.rho == Fraction(1, 1000) + Fraction(1, 2000) + Fraction(1, 5000)
    with pytest.raises(NotComparable, match="has no zCDP equivalent"):
        charge(budget, opened, ApproxDP("1/100", "1e-9"))


@pytest.mark.unit
def test_an_account_is_filled_to_the_last_fraction() -> None:
    budget = ApproxDP(1, "1e-6")
    account = rho_within(1, "1e-6")
    full = charge(budget, Spent(), ZCDP(account))
    assert left(budget, full) == ZCDP(0)
    for cost in (ZCDP("1e-30"), PureDP("1e-30")):
        with pytest.raises(BudgetExceeded, match=r"^asked rho .*, 0 left$"):
            charge(budget, full, cost)
    with pytest.raises(BudgetExceeded, match=r"^asked rho 0\.0243"):
        charge(budget, Spent(), ZCDP(account + Fraction(1, 10**30)))


@pytest.mark.unit
def test_spent_reads_as_people_say_it() -> None:
    budget = ApproxDP(1, "1e-6")
    assert str(Spent()) == "epsilon 0"
    assert str(spend(budget, TENTH)) == "epsilon 0.1"
    assert str(spend(budget, ApproxDP(0.1, "1e-7"))) == "epsilon 0.1, delta 1e-07"
    assert str(spend(ZCDP(1), ZCDP(0.5))) == "rho 0.5"
    assert str(spend(budget, ZCDP("1e-3"))) == "rho 0.001 of 0.024356"
    assert str(spend(budget, TENTH, ZCDP("1e-3"))).startswith(
        "epsilon 0.1, delta 0 and rho 0.001 of 0.02"
    )
    assert str(spend(budget, ApproxDP(0, "1e-7"), ZCDP("1e-3"))).startswith(
        "epsilon 0, delta 1e-07 and rho"
    )


@pytest.mark.unit
def test_a_ledger_refuses_word_for_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = histogram([0, 1, 1], 2, source="city")
    ledger = Ledger.create("city.ledger", PureDP(1), unit="user", source="city")
    with pytest.raises(BudgetExceeded) as over:
        ledger.release(DiscreteLaplace(Fraction(2, 3)), data)
    assert str(over.value) == "asked epsilon 1.5, 1 left in city.ledger; nothing was released"
    with pytest.raises(NotComparable) as foreign:
        ledger.release(DiscreteGaussian(2), data)
    assert str(foreign.value) == (
        "a budget of epsilon 1 has no delta and cannot pay for Gaussian noise (rho 0.125) "
        "in city.ledger; nothing was released"
    )
    with_delta = Ledger.create("both.ledger", ApproxDP(1, "1e-6"), unit="user", source="city")
    with pytest.raises(BudgetExceeded) as gaussian:
        with_delta.release(DiscreteGaussian(2), data)
    assert (
        str(gaussian.value)
        == "asked rho 0.125, 0.0243559 left in both.ledger; nothing was released"
    )
    assert [ledger.statement().spent, with_delta.statement().spent] == [Spent(), Spent()]


amounts = st.fractions(0, 2, max_denominator=10**6)
chances = st.fractions(0, Fraction(1, 2), max_denominator=10**6)
losses: st.SearchStrategy[Loss] = st.one_of(
    amounts.map(PureDP), amounts.map(ZCDP), st.builds(ApproxDP, amounts, chances)
)


@pytest.mark.property
@given(budget=losses, costs=st.lists(losses, max_size=8))
@settings(max_examples=60)
def test_no_sequence_of_charges_leaves_the_budget(budget: Loss, costs: list[Loss]) -> None:
    spent = Spent()
    for cost in costs:
        before = spent
        try:
            spent = charge(budget, spent, cost)
        except SfumatoError:
            continue
        assert before.epsilon <= spent.epsilon
        assert before.delta <= spent.delta
        assert before.rho <= spent.rho
        assert before.account in (None, spent.account)
        match budget:
            case PureDP(epsilon):
                assert spent.epsilon <= epsilon
                assert spent.delta == spent.rho == 0
            case ZCDP(rho):
                assert spent.rho <= rho
                assert spent.epsilon == spent.delta == 0
            case ApproxDP(epsilon, delta):
                assert spent.epsilon <= epsilon
                assert spent.delta <= delta
                assert spent.rho <= (0 if spent.account is None else spent.account)
    left(budget, spent)  # never negative: a loss refuses that


@pytest.mark.property
@given(share=st.integers(2, 40), whole=st.fractions(Fraction(1, 1000), 50, max_denominator=10**9))
def test_equal_shares_fill_a_budget_exactly(share: int, whole: Fraction) -> None:
    for kind in (PureDP, ZCDP):
        full = spend(kind(whole), *[kind(whole / share)] * share)
        assert left(kind(whole), full) == kind(0)
        with pytest.raises(BudgetExceeded):
            charge(kind(whole), full, kind(whole / share))


def least_epsilon(rho: Fraction, delta: Fraction) -> mpmath.mpf:
    """The least epsilon that rho-zCDP implies by [canonne20, prop. 12], by golden section with 80 digits.

    Written here once more: infimum over a > 1 of rho a + (ln(1/delta) - ln a) / (a - 1) + ln(1 -
    1/a).
    """

    def epsilon(x: mpmath.mpf) -> mpmath.mpf:
        a = 1 + mpmath.e**x
        return rho_ * a + (-log_delta - mpmath.log(a)) / (a - 1) + mpmath.log((a - 1) / a)

    with mpmath.workdps(80):
        rho_ = mpmath.mpf(rho.numerator) / rho.denominator
        log_delta = mpmath.log(mpmath.mpf(delta.numerator) / delta.denominator)
        low, high, ratio = mpmath.mpf(-10), mpmath.mpf(25), (mpmath.sqrt(5) - 1) / 2
        while high - low > mpmath.mpf(10) ** -25:
            inner, outer = high - ratio * (high - low), low + ratio * (high - low)
            low, high = (low, outer) if epsilon(inner) < epsilon(outer) else (inner, high)
        return epsilon(low)


budgets = st.tuples(
    st.fractions(Fraction(1, 100), 50, max_denominator=10**4),
    st.integers(1, 15).map(lambda digits: Fraction(3, 10**digits)).filter(lambda delta: delta < 1),
)


@pytest.mark.property
@given(budget=budgets, share=st.fractions(0, Fraction(9, 10), max_denominator=100))
@settings(
    max_examples=60, phases=[Phase.generate]
)  # a smaller budget would say no more, after a minute
def test_the_gaussian_account_keeps_the_budget(
    budget: tuple[Fraction, Fraction], share: Fraction
) -> None:
    epsilon, delta = budget
    spent = spend(
        ApproxDP(epsilon, delta), PureDP(epsilon * share), ApproxDP(0, delta * share), ZCDP(0)
    )
    rest, chance, account = epsilon * (1 - share), delta * (1 - share), spent.account
    assert account is not None
    assume(account > 0)
    implied = least_epsilon(account, chance)
    # It keeps the budget, and wastes less than a millionth of it. The golden section is exact to
    # 1e-40.
    with mpmath.workdps(80):
        wanted = mpmath.mpf(rest.numerator) / rest.denominator
        assert implied <= wanted * (1 + mpmath.mpf(10) ** -40)
        assert implied >= wanted * (1 - mpmath.mpf(10) ** -6)
    # Our own conversion says the same, up to its search for the order: that can only overstate
    # epsilon.
    stated = as_approx(ZCDP(account), chance).epsilon
    assert stated >= rest * (1 - Fraction(1, 10**6))
    assert stated <= rest * (1 + Fraction(1, 10**9))


@pytest.mark.property
@given(budget=budgets)
@settings(max_examples=60)
def test_gaussian_noise_that_uses_up_the_account_keeps_epsilon_and_delta(
    budget: tuple[Fraction, Fraction],
) -> None:
    account = spend(ApproxDP(*budget), ZCDP(0)).account
    assert account is not None
    assume(account > 0)
    sigma = float(1 / (2 * account)) ** 0.5
    assert gaussian_delta(float(budget[0]), sigma=sigma) <= budget[1]
