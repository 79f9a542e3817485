"""Indented JSON: the text of the standard library's, and its refusals."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.files import indented

PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)
TEXT = st.text(max_size=6) | st.sampled_from(["a, b", "[1, 2]", '"', "{}"])
DATA = st.recursive(
    PLAIN | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.unit
@given(data=DATA | st.lists(PLAIN))
def test_it_is_what_the_standard_library_writes(data: object) -> None:
    assert indented(data) == json.dumps(data, indent=1, allow_nan=False)


@pytest.mark.unit
@pytest.mark.parametrize("bad", [float("nan"), [1.0, float("inf")], {"a": [[float("nan")]]}])
def test_numbers_are_finite(bad: object) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented(bad)
