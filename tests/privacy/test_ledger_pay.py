"""What a release pays when it says so itself, what a ledger can afford, and how what is left is said."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, InvalidParameter, NotComparable, SfumatoError
from sfumato.privacy import (
    REHEARSAL,
    ZCDP,
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Guarded,
    Ledger,
    Loss,
    Mechanism,
    PureDP,
    RoundedGaussian,
    histogram,
)
from sfumato.privacy.ledger.budget import at_most
from sfumato.privacy.ledger.guarded import Source

THIRD = DiscreteLaplace(3)  # costs 1/3 on a histogram, exactly


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "city.ledger", ApproxDP(1, "1e-6"), unit="user", source="city")


def city(source: Source = "city") -> Guarded[Any]:
    return histogram(np.array([0, 1, 1]), 4, source=source)


def epsilons(**limits: Any) -> st.SearchStrategy[Fraction]:
    return st.fractions(max_denominator=10**6, **limits)


# --- pay ---


@pytest.mark.property
@given(pay=epsilons(min_value=Fraction(1, 3), max_value=3))
def test_a_release_pays_and_promises_exactly_what_it_says(pay: Fraction) -> None:
    ledger = Ledger.rehearsal(PureDP(3))
    paid = ledger.release(THIRD, city(REHEARSAL), pay=PureDP(pay))
    now = ledger.statement()
    assert paid.guarantee.loss == paid.entry.cost == now.entries[0].cost == PureDP(pay)
    assert now.spent.epsilon == pay
    assert now.left == PureDP(3 - pay)
    ledger.check(paid)


@pytest.mark.unit
def test_a_release_that_says_nothing_pays_its_cost(ledger: Ledger) -> None:
    assert ledger.release(THIRD, city()).entry.cost == PureDP("1/3")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("mechanism", "pay", "words"),
    [
        (
            THIRD,
            PureDP("333333/1000000"),
            "its cost of epsilon 0.333334 at least, got epsilon 0.333333",
        ),
        (THIRD, PureDP(Fraction(1, 3) - Fraction(1, 2**80)), "its cost of epsilon"),
        (THIRD, PureDP(0), "its cost of epsilon 0.333334 at least, got epsilon 0"),
        (DiscreteGaussian(10), PureDP(1), "its cost of rho 0.005 at least, got epsilon 1"),
        (
            RoundedGaussian.within(ApproxDP("1/2", "1e-7"), city().bound),
            PureDP(1),
            r"its cost of epsilon 0.5, delta 1e-07 at least, got epsilon 1",
        ),
    ],
    ids=["less", "a hair less", "nothing", "rho", "delta"],
)
def test_a_pay_that_does_not_cover_the_cost_is_refused(
    ledger: Ledger, mechanism: Mechanism[Any, Any], pay: PureDP, words: str
) -> None:
    with pytest.raises(InvalidParameter, match=rf"{words}.*; nothing was charged$"):
        ledger.release(mechanism, city(), pay=pay)
    assert not ledger.statement().entries


@pytest.mark.unit
def test_a_budget_that_holds_the_cost_but_not_the_pay_refuses(ledger: Ledger) -> None:
    ledger.release(THIRD, city(), pay=PureDP("1/2"))
    with pytest.raises(
        BudgetExceeded, match=r"^asked epsilon 0.6, 0.5 left in .*; nothing was released$"
    ):
        ledger.release(THIRD, city(), pay=PureDP("3/5"))
    assert ledger.statement().spent.epsilon == Fraction(1, 2)
    ledger.release(THIRD, city(), pay=PureDP("1/2"))
    assert ledger.statement().left == ApproxDP(0, "1e-6")


# --- afford ---


def refusal(act: Any) -> SfumatoError | None:
    try:
        act()
    except (BudgetExceeded, NotComparable) as refused:
        return refused
    return None


@pytest.mark.property
@given(
    spent=epsilons(min_value=Fraction(1, 3), max_value=1), asked=epsilons(min_value=Fraction(1, 3))
)
def test_what_can_be_afforded_is_what_will_be_released(spent: Fraction, asked: Fraction) -> None:
    ledger = Ledger.rehearsal(PureDP(1))
    ledger.release(THIRD, city(REHEARSAL), pay=PureDP(spent))
    before = ledger.statement()
    first = refusal(lambda: ledger.afford(PureDP(asked)))
    assert ledger.statement() == before  # nothing charged, nothing reserved
    second = refusal(lambda: ledger.release(THIRD, city(REHEARSAL), pay=PureDP(asked)))
    assert (type(first), str(first)) == (type(second), str(second))
    assert (first is None) == (spent + asked <= 1)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("budget", "cost", "kind", "words"),
    [
        (PureDP(1), PureDP("4/3"), BudgetExceeded, "asked epsilon 1.33334, 1 left in "),
        (PureDP(1), ApproxDP(1, "1e-9"), BudgetExceeded, "asked delta 1e-09, 0 left in "),
        (
            PureDP(1),
            ZCDP("1/100"),
            NotComparable,
            r"cannot pay for Gaussian noise \(rho 0.01\) in ",
        ),
        (ZCDP(1), ZCDP("4/3"), BudgetExceeded, "asked rho 1.33334, 1 left in "),
    ],
    ids=["epsilon", "delta", "rho of none", "rho"],
)
def test_what_cannot_be_afforded_is_said_as_a_release_says_it(
    tmp_path: Path, budget: Loss, cost: Loss, kind: type[SfumatoError], words: str
) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", budget, unit="user", source="city")
    before = ledger.path.read_bytes()
    with pytest.raises(kind, match=rf"{words}.*a\.ledger; nothing was released$"):
        ledger.afford(cost)
    ledger.afford(budget)
    ledger.afford(budget)  # nothing is reserved
    assert ledger.path.read_bytes() == before


# --- what is left, as people read it ---


@pytest.mark.unit
def test_what_is_left_is_said_by_hand() -> None:
    assert at_most(PureDP("2/3")) == "epsilon 0.666666"
    assert at_most(PureDP(0)) == "epsilon 0"
    assert at_most(ApproxDP("1999999999/1000000000", "1e-6")) == "epsilon 1.99999, delta 1e-06"
    assert at_most(ZCDP("1/7")) == "rho 0.142857"


@pytest.mark.property
@given(amount=st.fractions(min_value=0, max_value=10**6))
def test_what_is_left_is_rounded_down_and_by_little(amount: Fraction) -> None:
    said = Fraction(at_most(PureDP(amount)).removeprefix("epsilon "))
    assert said <= amount <= Fraction(str(PureDP(amount)).removeprefix("epsilon "))
    assert said >= amount * (1 - Fraction(1, 10**5))
    # Whoever asks for what is said to be left gets it.
    Ledger.rehearsal(PureDP(amount)).afford(PureDP(said))
