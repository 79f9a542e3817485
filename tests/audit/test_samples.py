"""Outputs as rows: whatever comes out of a box, two outputs that differ are two rows that differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.samples import Encoder, encoder_of

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
    ],
)
def test_the_first_outputs_choose_the_encoder(outputs: Any, encoder: Encoder) -> None:
    assert encoder_of(outputs) == encoder
    assert encoder(outputs).shape == (len(outputs), encoder.width + 1)


def test_odd_outputs_are_marked_and_still_told_apart() -> None:
    rows = Encoder(2, words=False)([(1.0, 2.0), (math.nan, 0.0), (math.inf, 0.0), (1.0,), "gone", None])
    assert rows[0].tolist() == [1.0, 2.0, 0.0]
    assert rows[1:, -1].tolist() == [1.0] * 5
    assert len({tuple(row) for row in rows}) == 6


def test_an_array_with_odd_rows_marks_them() -> None:
    rows = Encoder(1, words=False)(np.array([1.0, math.nan, 2.0]))
    assert rows[[0, 2]].tolist() == [[1.0, 0.0], [2.0, 0.0]]
    assert rows[1, 1] == 1.0


def test_what_doubles_would_merge_is_told_apart() -> None:
    encoder = Encoder(1, words=False)
    for outputs in ([math.nan, math.inf, -math.inf], [2**53 + 1, 2**53 + 2, 2**53 + 3], [2**62, 2**62 + 1]):
        assert len({tuple(row) for row in encoder(np.array(outputs))}) == len(outputs)
        assert len({tuple(row) for row in encoder(outputs)}) == len(outputs)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_numbers_keep_their_bits(values: list[float]) -> None:
    rows = encoder_of(values)(values)
    assert rows[:, 0].tobytes() == np.array(values, dtype=np.float64).tobytes()


@given(st.lists(st.text(), min_size=2, max_size=30, unique=True))
def test_different_words_are_different_rows(words: list[str]) -> None:
    rows = Encoder(1, words=True)(words)
    assert len(set(rows[:, 0].tolist())) == len(words)
