"""Outputs as rows: whatever comes out of a box, two outputs that differ are two rows that differ."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.boxes.box import FunctionBox, Pair
from sfumato.audit.boxes.samples import REMEMBERED, WORD, Encoder, code, encoder_of, spelled
from sfumato.audit.fixed.bound import lower_bound
from sfumato.audit.property_testing.certificate import certify
from sfumato.privacy import AddRemoveUser, ApproxDP, Claim

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("outputs", "encoder"),
    [
        ([1, 2], Encoder(1, words=False)),
        ([True, False], Encoder(1, words=False)),
        (np.zeros((5, 3)), Encoder(3, words=False)),
        ([np.zeros((2, 2))], Encoder(4, words=False)),
        ([(1.0, 2.0), (3.0, 4.0)], Encoder(2, words=False)),
        (["yes", "no"], Encoder(1, words=True)),
        ([None, 1], Encoder(1, words=True)),
        ([(1.0,), (1.0, 2.0)], Encoder(1, words=True)),
        ([(1.0, 2.0), None, (3.0, 4.0)], Encoder(2, words=False)),
        ([("ok", 1.0), ("no", 2.0)], Encoder(2, words=False)),
        ([{"count": 1.0}, {"count": 2}], Encoder(2, words=False)),
        ([Fraction(1, 2), Fraction(1, 3)], Encoder(2, words=False)),
        ([(1, (2, 3))], Encoder(4, words=False)),
        (np.array(["a", "b"]), Encoder(1, words=True)),
        ([(), ()], Encoder(1, words=True)),
    ],
)
def test_the_first_outputs_choose_the_encoder(outputs: Any, encoder: Encoder) -> None:
    assert encoder_of(outputs) == encoder
    assert encoder(outputs).shape == (len(outputs), encoder.width + 1)


def test_odd_outputs_are_marked_and_still_told_apart() -> None:
    rows = Encoder(2, words=False)(
        [(1.0, 2.0), (math.nan, 0.0), (math.inf, 0.0), (1.0,), "gone", None]
    )
    assert rows[0].tolist() == [1.0, 2.0, 0.0]
    assert rows[1:, -1].tolist() == [1.0, 1.0, 2.0, 2.0, 2.0]
    assert len({tuple(row) for row in rows}) == 6


def test_an_array_with_odd_rows_marks_them() -> None:
    rows = Encoder(1, words=False)(np.array([1.0, math.nan, 2.0]))
    assert rows[[0, 2]].tolist() == [[1.0, 0.0], [2.0, 0.0]]
    assert rows[1, 1] == 1.0


def test_what_doubles_would_merge_is_told_apart() -> None:
    encoder = Encoder(1, words=False)
    for outputs in (
        [math.nan, math.inf, -math.inf],
        [2**53 + 1, 2**53 + 2, 2**53 + 3],
        [2**62, 2**62 + 1],
    ):
        assert len({tuple(row) for row in encoder(np.array(outputs))}) == len(outputs)
        assert len({tuple(row) for row in encoder(outputs)}) == len(outputs)


@given(st.lists(st.floats(min_value=-1e301, max_value=1e301), min_size=2, max_size=20))
def test_numbers_keep_their_bits(values: list[float]) -> None:
    rows = encoder_of(values)(values)
    assert rows[:, 0].tobytes() == np.array(values, dtype=np.float64).tobytes()


SCALARS = st.one_of(
    st.integers(),
    st.sampled_from(
        [2**53, 2**53 + 1, 2**60, -(2**63), 2**64, 2.0**60, 1e305, -0.0, math.nan, math.inf]
    ),
    st.floats(),
    st.booleans(),
    st.text(max_size=3),
    st.text(max_size=3).map(np.str_),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.floats().map(np.float64),
    st.none(),
    st.fractions(),
    st.decimals(),
    st.binary(max_size=2),
)
OUTPUTS = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.tuples(SCALARS, SCALARS),
    st.tuples(st.floats(), st.floats()),
    st.dictionaries(st.text(max_size=2), SCALARS, max_size=2),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2).map(np.array),
)


@given(
    st.lists(OUTPUTS, max_size=6),
    st.lists(OUTPUTS, max_size=6),
    st.sampled_from([Encoder(1, words=False), Encoder(2, words=False), Encoder(1, words=True)]),
)
def test_a_row_depends_on_its_output_alone(
    first: list[Any], second: list[Any], encoder: Encoder
) -> None:
    together = encoder(first + second)
    assert together.tobytes() == encoder(first).tobytes() + encoder(second).tobytes()
    assert together.tobytes() == b"".join(encoder([one]).tobytes() for one in first + second)
    assert np.isfinite(together).all()


@pytest.mark.parametrize(
    "array",
    [
        np.array([2**53, 2**53 + 1, -(2**63), 5]),
        np.array([2**64 - 1, 2**63, 1], dtype=np.uint64),
        np.array([1.5, math.nan, 1e305, -0.0], dtype=np.float64),
        np.array([True, False]),
        np.array(["a", "bc"]),
        np.array([1.5, 2.5], dtype=np.float16),
        np.array([1.5, 2.5], dtype=np.longdouble) + np.longdouble(2.0**-60),
        np.array([1, 1j]),
    ],
)
def test_an_array_gives_what_its_parts_give(array: Any) -> None:
    for encoder in (encoder_of(array), Encoder(1, words=True), Encoder(1, words=False)):
        rows = encoder(array)
        assert rows.tobytes() == encoder(list(array)).tobytes() == encoder(array.tolist()).tobytes()
        assert len({row.tobytes() for row in rows}) == len(array)


def test_a_batch_does_not_change_what_its_outputs_are() -> None:
    """A half or 2**60, with either chance: whether a batch holds both must not tell."""
    encoder = encoder_of([0.5, 2**60])
    assert encoder([2**60, 2**60])[0].tobytes() == encoder([0.5, 2**60])[1].tobytes()


@pytest.mark.parametrize(
    ("wrapped", "numbers"),
    [
        ([("ok", x) for x in (0.5, 7)], [0.5, 7.0]),
        ([{"count": x} for x in (0.5, 7)], [0.5, 7.0]),
        ([{"b": 1, "a": x} for x in (0.5, 7)], [0.5, 7.0]),
        ([("ok", {"n": [x]}) for x in (0.5, 7)], [0.5, 7.0]),
        ([Fraction(1, 2), Fraction(7)], [0.5, 7.0]),
        ([Decimal("0.5"), Decimal(7)], [0.5, 7.0]),
        ([Fraction(1, 3), Fraction(2, 3)], [1 / 3, 2 / 3]),
    ],
)
def test_numbers_in_other_outputs_are_columns(wrapped: list[Any], numbers: list[float]) -> None:
    rows = encoder_of(wrapped)(wrapped)
    assert numbers in rows.T.tolist()
    assert rows[:, -1].tolist() == [0.0, 0.0]


def test_the_form_tells_and_so_does_what_a_double_leaves() -> None:
    encoder = Encoder(2, words=False)
    third = Fraction(1, 3)
    outputs = [
        {"a": 1},
        {"b": 1},
        ("a", 1),
        third,
        Fraction(float(third)),
        Decimal("1.0"),
        Decimal("1.00"),
    ]
    assert len({row.tobytes() for row in encoder(outputs)}) == len(outputs)
    three = Encoder(3, words=False)
    assert three([{"a": 1, "b": 2}]).tobytes() == three([{"b": 2, "a": 1}]).tobytes()


def test_words_are_spelled_and_no_more_are_kept_than_need_be() -> None:
    assert spelled(Encoder(1, words=True)(np.array(["red"]))[0, 0]) == "'red'"
    assert spelled(Encoder(1, words=False)([math.nan])[0, 0]) == "nan"
    assert spelled(1e300) is None
    assert WORD <= code("red") < 2 * WORD
    assert (spelled(code("x" * 99)) or "").endswith("...")
    for number in range(REMEMBERED):
        code(str(number))
    forgotten = spelled(Encoder(1, words=True)(["red"])[0, 0])
    assert forgotten == "'red'"
    assert (spelled(np.nextafter(WORD, math.inf)) or "").startswith("a word (code 1)")


@given(st.lists(st.text(), min_size=2, max_size=30, unique=True))
def test_different_words_are_different_rows(words: list[str]) -> None:
    rows = Encoder(1, words=True)(words)
    assert len(set(rows[:, 0].tolist())) == len(words)


@pytest.mark.statistical
@pytest.mark.parametrize("wrap", [lambda x: ("ok", x), lambda x: {"count": x}, Fraction, Decimal])
def test_what_wraps_a_number_does_not_hide_it(rng: np.random.Generator, wrap: Any) -> None:
    """Laplace noise of scale 1/2 is above 1/2 with chances 0.82 and 0.18, whose ratio has the logarithm 1.49.

    From 1,100 runs of each that has a standard deviation of 0.065; a bound at 1e-6 is 4.8 of them
    below it, and with chance 1e-6 another 4.8. A bound of noise of scale 50 is above its epsilon
    with chance 1e-6.
    """

    def noisy(data: float, scale: float) -> Any:
        # On a grid, so that no low bits tell.
        return wrap(round((data + rng.laplace(scale=scale)) * 64) / 64)

    asked: Any = {"runs": 4000, "confidence": 1 - 1e-6}
    found = [
        lower_bound(
            FunctionBox(partial(noisy, scale=scale), "noisy"), Pair(0.0, 1.0), **asked
        ).epsilon
        for scale in (0.5, 50.0)
    ]
    assert found[0] > 0.6 > 0.02 >= found[1]


def test_numpy_strings_are_the_strings_that_certify_was_told(rng: np.random.Generator) -> None:
    box = FunctionBox(lambda data, runs: rng.choice(np.array(["a", "b"]), runs), "coin")
    claim = Claim(ApproxDP(0.5, 0.01), AddRemoveUser())
    verdict = certify(
        box, claim, outputs=["a", "b"], pairs=[Pair(0, 1)], proximity=0.3, confidence=1 - 1e-6
    )
    assert verdict.kind == "CERTIFIED"
