"""The budget of a pyramid is split as stated, to the last digit."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.budget_split import DECAY, first_level, split_epsilon


@pytest.mark.unit
def test_the_first_level_is_the_finest_with_at_most_width_cells() -> None:
    for width in range(1, 3000):
        q = first_level(width, 16)
        assert 4**q <= width < 4 ** (q + 1)


@pytest.mark.unit
def test_the_first_level_is_found_in_integers() -> None:
    """As a double the root of 4**27 - 1 is 2**27: one level too fine, were there so many."""
    assert math.floor(math.log2(math.sqrt(4**27 - 1))) == 27
    for q in range(16):
        assert first_level(4 ** (q + 1) - 1, 16) == q
    assert first_level(4**27 - 1, 16) == 16


@pytest.mark.unit
def test_the_papers_parameters() -> None:
    shares = split_epsilon(Fraction(1), 8, width=20)
    assert list(shares) == [2, 3, 4, 5, 6, 7, 8]
    ratio = Fraction(DECAY)
    assert [shares[level + 1] / shares[level] for level in range(2, 8)] == [ratio] * 6
    assert float(shares[2]) == pytest.approx((1 - DECAY) / (1 - DECAY**7), rel=1e-12)


@pytest.mark.unit
def test_the_printed_shares_are_not_of_order_one() -> None:
    """The proof of Theorem 3.1 divides by Z = sum of decay**(i - q): a power of the width, not a constant."""
    for q in (2, 5, 8):
        printed = sum(0.8 ** (i - q) for i in range(17))
        meant = sum(0.8 ** abs(i - q) for i in range(17))
        assert printed >= 0.8**-q
        assert meant <= (1 + 0.8) / (1 - 0.8)
    assert sum(0.8 ** (i - 16) for i in range(17)) > 100


@pytest.mark.property
@given(
    epsilon=st.fractions(min_value=Fraction(1, 10**9), max_value=1000),
    levels=st.integers(0, 16),
    width=st.integers(1, 10**6),
    decay=st.floats(0.01, 1.0),
)
def test_the_shares_add_up_exactly_and_fall(
    epsilon: Fraction, levels: int, width: int, decay: float
) -> None:
    shares = split_epsilon(epsilon, levels, width=width, decay=decay)
    assert list(shares) == list(range(first_level(width, levels), levels + 1))
    assert sum(shares.values()) == epsilon
    falling = list(shares.values())
    assert all(a * Fraction(decay) == b > 0 for a, b in pairwise(falling))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": Fraction(0)}, r"epsilon must be above 0, got 0; no budget was split"),
        ({"width": 0}, r"width must be a whole number, at least 1, got 0"),
        ({"levels": 17}, r"levels must be a whole number from 0 to 16, got 17"),
        ({"decay": 0.0}, r"decay must lie in \(0, 1\], got 0.0; no budget was split"),
        ({"decay": 1.5}, r"decay must lie in \(0, 1\], got 1.5"),
        ({"decay": math.nan}, r"decay must lie in \(0, 1\], got nan"),
    ],
)
def test_a_broken_rule_is_named(change: dict[str, object], message: str) -> None:
    given_values: dict[str, object] = {
        "epsilon": Fraction(1),
        "levels": 8,
        "width": 20,
        "decay": 0.5,
    }
    with pytest.raises(InvalidParameter, match=message):
        split_epsilon(**(given_values | change))  # type: ignore[arg-type]
