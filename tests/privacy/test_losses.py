"""Numbers, losses, relations and statements: exact, refused where wrong, the same through JSON."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Claim,
    FlippedEdge,
    Guarantee,
    MovedMass,
    PureDP,
    RandomApproxDP,
    RandomPureDP,
    ReplaceUser,
    SwappedCells,
)
from sfumato.privacy.accounting.codec import decode_loss, decode_neighbors, encode
from sfumato.privacy.accounting.numbers import WORKING, double_above, down, exact, exp_below, up

fractions = st.fractions(min_value=0, max_value=1000)


@pytest.mark.unit
def test_a_number_means_what_a_person_wrote() -> None:
    assert PureDP(0.1).epsilon == Fraction(1, 10)
    assert PureDP("0.1") == PureDP(0.1) == PureDP(Fraction(1, 10))
    assert sum(PureDP(0.1).epsilon for _ in range(10)) == 1
    assert ApproxDP("1/3", 1e-6).delta == Fraction(1, 10**6)


@pytest.mark.unit
@pytest.mark.parametrize("bad", [math.nan, math.inf, "one", "1/0", "", None])
def test_what_is_no_number_is_refused(bad: object) -> None:
    with pytest.raises(InvalidParameter, match="finite number"):
        exact(bad)  # type: ignore[arg-type]


@pytest.mark.unit
def test_bad_losses_are_refused_with_the_rule_and_the_value() -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be at least 0, got -1"):
        PureDP(-1)
    with pytest.raises(InvalidParameter, match=r"delta must be below 1, got 1"):
        ApproxDP(1, 1)
    with pytest.raises(InvalidParameter, match="rho must be at least 0"):
        ZCDP("-1/2")
    with pytest.raises(InvalidParameter, match="radius must be above 0, got 0"):
        MovedMass(0, "line")
    with pytest.raises(InvalidParameter, match="metric must be named"):
        MovedMass(1, "")
    with pytest.raises(InvalidParameter, match="gamma must be below 1"):
        RandomPureDP(1, 2)
    with pytest.raises(InvalidParameter, match="unit of privacy must be named"):
        Guarantee(PureDP(1), AddRemoveUser(), "")
    with pytest.raises(InvalidParameter, match="'central' or 'local'"):
        Guarantee(PureDP(1), AddRemoveUser(), "user", "cloud")  # type: ignore[arg-type]


@pytest.mark.unit
def test_statements_read_as_sentences() -> None:
    said = str(
        Guarantee(ApproxDP(1, 1e-6), MovedMass("1/4", "line"), "room", "local", Fraction(1, 2**90))
    )
    assert said == (
        "epsilon 1, delta 1e-06 for each room (sources moved by an earth mover's distance of at most 0.25 "
        "(line)), local model; computational: removable by whoever holds the key, "
        "within 8.07794e-28 of the ideal noise"
    )
    assert str(Claim(RandomApproxDP(1, "1e-6", "1/20"), ReplaceUser())) == (
        "claimed: epsilon 1, delta 1e-06 except with probability 0.05 over the data "
        "(one user's data replaced)"
    )
    assert "nodes public" in str(FlippedEdge())
    assert "[0, 1]" in str(SwappedCells(1))


@pytest.mark.property
@given(fractions, st.fractions(min_value=0, max_value=Fraction(999, 1000)))
def test_losses_survive_json(a: Fraction, b: Fraction) -> None:
    for loss in (PureDP(a), ApproxDP(a, b), ZCDP(a)):
        assert decode_loss(encode(loss)) == loss
    for relation in (
        AddRemoveUser(),
        ReplaceUser(),
        FlippedEdge(),
        MovedMass(a + 1, "l1"),
        SwappedCells(a + 1),
    ):
        assert decode_neighbors(encode(relation)) == relation


@pytest.mark.unit
@pytest.mark.parametrize(
    "bad",
    [{}, {"kind": "Perfect"}, {"kind": "PureDP"}, {"kind": "PureDP", "epsilon": "-1"}, [], None],
)
def test_bad_json_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInput, match="not a loss"):
        decode_loss(bad)


@pytest.mark.property
@given(st.fractions(min_value=Fraction(-300), max_value=Fraction(300)))
def test_directed_rounding_is_on_the_right_side_and_close(power: Fraction) -> None:
    with mpmath.workprec(4 * WORKING):
        true = mpmath.exp(mpmath.mpf(power.numerator) / power.denominator)
        below = exp_below(power)
        assert mpmath.mpf(below.numerator) / below.denominator <= true
        assert mpmath.mpf(below.numerator) / below.denominator >= true * (1 - mpmath.mpf(2) ** -62)
        over, under = up(true), down(-true)
        assert mpmath.mpf(over.numerator) / over.denominator >= true
        assert mpmath.mpf(over.numerator) / over.denominator <= true * (1 + mpmath.mpf(2) ** -62)
        assert mpmath.mpf(under.numerator) / under.denominator <= -true


@pytest.mark.property
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_noise_parameters_round_up_to_the_next_double(number: Fraction) -> None:
    above = double_above(number)
    assert above >= number
    assert Fraction(float(above)) == above
    assert Fraction(math.nextafter(float(above), 0)) < number or above == number
