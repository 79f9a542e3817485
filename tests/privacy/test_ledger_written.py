"""What a ledger writes can be read: what could not be is refused before it is committed."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, InvalidParameter, NotComparable
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Bound,
    DiscreteLaplace,
    Ledger,
    Loss,
    MovedMass,
    Neighbors,
    PureDP,
    SwappedCells,
    guard,
    histogram,
    read_release,
)
from sfumato.privacy.accounting import Clock
from sfumato.privacy.accounting.codec import decode_loss, encode
from sfumato.privacy.accounting.numbers import MAX_DIGITS, exact, written
from sfumato.privacy.accounting.units import period_of

LONG = Fraction(10**400 + 1, 2 * 10**400)  # just above 1/2, in more than 800 letters
ENDLESS = Fraction(10**5000 + 1, 2 * 10**5000)  # more than Python writes out


@dataclass(frozen=True)
class Priced:
    """A mechanism of any cost, name and parameters."""

    price: Any = field(repr=False)
    anything: Any = None
    name: str = "priced/1"
    additive: ClassVar[bool] = True

    def cost(self, bound: Bound) -> Loss:
        assert bound.size
        found: Loss = self.price
        return found

    def draws(self, bound: Bound) -> int:
        return bound.size

    def sample(self, exact: Any, noise: Any) -> Any:
        assert not noise.known
        return exact.copy()


def sizes(most: int) -> st.SearchStrategy[int]:
    """Whole numbers of any length up to so many digits, short and long ones alike."""
    return st.integers(1, most).flatmap(lambda digits: st.integers(1, 10**digits))


def amounts(most: int) -> st.SearchStrategy[Fraction]:
    return st.builds(Fraction, sizes(most), sizes(most))


def losses(most: int) -> st.SearchStrategy[Loss]:
    return st.one_of(
        amounts(most).map(PureDP),
        amounts(most).map(ZCDP),
        st.builds(
            lambda epsilon, few, more: ApproxDP(epsilon, Fraction(few, few + more)),
            amounts(most),
            sizes(most),
            sizes(most),
        ),
    )


# Most can be printed and written, so that most are charged.
printable = st.text(st.characters(categories=["L", "M", "N", "P", "S"]), min_size=1, max_size=600)
words = st.one_of(*[printable] * 9, st.text(max_size=600))
RICH = ApproxDP(10**3999, Fraction(10**500 - 1, 10**500))
VAST = ZCDP(10**3999)


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | printable
    | amounts(500)
)
data = st.one_of(
    *[st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)] * 4,
    st.dictionaries(words | st.integers(), leaves, max_size=3),
    st.just(object()),
    st.just(float("nan")),
)


@pytest.mark.property
@given(
    budget=st.none() | st.none() | losses(1500),
    cost=losses(4200),  # above MAX_DIGITS; Python prints no more than 4300
    unit=words | st.just("user-day"),
    source=words,
    zone=words,
    name=words,
    note=words,
    anything=data,
)
@example(PureDP(1), PureDP(LONG), "user", "city", "", "priced/1", "", None)
@example(PureDP(LONG), PureDP(Fraction(1, 3)), "user", "city", "", "priced/1", "", {1: 2, "1": 3})
@example(
    ApproxDP(1, Fraction(1, 10**2000)), ZCDP(Fraction(1, 10**9)), "user", "c", "", "p", "", None
)
@settings(max_examples=150)
def test_whatever_is_charged_reads_as_it_was_written(
    budget: Loss | None,
    cost: Loss,
    unit: str,
    source: str,
    zone: str,
    name: str,
    note: str,
    anything: Any,
) -> None:
    budget = budget or (VAST if isinstance(cost, ZCDP) else RICH)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.ledger"
        try:
            ledger = Ledger.create(path, budget, unit=unit, source=source)
        except InvalidParameter:
            assert not path.exists()
            return
        assert Ledger(path).header == ledger.header
        clock = None if period_of(unit) is None else Clock(source, zone)
        bound = Bound(AddRemoveUser(), 1, l1=1, unit=unit, clock=clock)
        before = path.read_bytes()
        try:
            mechanism: Any = Priced(cost, anything, name)
            paid = ledger.release(mechanism, guard([1], bound, source=source), note=note)
        except (InvalidParameter, BudgetExceeded, NotComparable):
            assert path.read_bytes() == before
            return
        event(f"charged {type(cost).__name__}")
        again = Ledger(path)
        assert again.statement().entries == (paid.entry,)
        assert (paid.entry.cost, paid.entry.clock) == (cost, clock)
        paid.write(Path(folder) / "receipt.json")
        again.check(read_release(Path(folder) / "receipt.json"))


@pytest.mark.unit
def test_a_cost_of_many_digits_is_charged_and_read(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "city.ledger", PureDP(2), unit="user", source="city")
    for _ in range(2):
        ledger.release(DiscreteLaplace(2), histogram([0], 1, source="city"), pay=PureDP(LONG))
    assert Ledger(ledger.path).statement().spent.epsilon == 2 * LONG


@pytest.mark.unit
def test_a_cost_of_too_many_digits_is_refused_and_the_ledger_stays_whole(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "city.ledger", PureDP(2), unit="user", source="city")
    before = ledger.path.read_bytes()
    with pytest.raises(
        InvalidParameter, match=r"^an entry must read as it was written: .*; nothing was charged$"
    ):
        ledger.release(DiscreteLaplace(2), histogram([0], 1, source="city"), pay=PureDP(ENDLESS))
    assert ledger.path.read_bytes() == before
    with pytest.raises(InvalidParameter, match=r"must read as it was written.*; nothing was made$"):
        Ledger.create(tmp_path / "long.ledger", PureDP(ENDLESS), unit="user", source="city")
    assert [file.name for file in tmp_path.iterdir()] == ["city.ledger"]


@pytest.mark.unit
def test_relations_of_many_digits_are_read(tmp_path: Path) -> None:
    relations: list[Neighbors] = [MovedMass(LONG, "1/3"), SwappedCells(LONG)]
    for number, relation in enumerate(relations):
        made = Ledger.create(
            tmp_path / f"{number}", PureDP(1), unit="user", source="city", neighbors=relation
        )
        assert Ledger(made.path).header.neighbors == relation


@pytest.mark.property
@given(amounts(MAX_DIGITS))
def test_a_fraction_reads_as_it_was_written(amount: Fraction) -> None:
    assert exact(written(amount)) == amount
    assert written(-amount) == f"-{written(amount)}"
    assert decode_loss(encode(PureDP(amount))) == PureDP(amount)


@pytest.mark.unit
@pytest.mark.parametrize(
    "text", ["1e401", "1e-999999999", "9" * (MAX_DIGITS + 1), "0." + "1" * 400, "1/" + "3" * 4001]
)
def test_a_number_without_end_is_not_computed(text: str) -> None:
    with pytest.raises(
        InvalidParameter,
        match="of at most 4000 digits, or a number of at most 400, got one of more",
    ):
        exact(text)
