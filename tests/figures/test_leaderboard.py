"""A sheet of small maps: one scale for all, and room for as many as there are."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.figures.maps import COLUMNS, draw_small_maps

pytestmark = pytest.mark.unit


def size(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


def draw(count: int, value: float = 1.0, name: str = "map") -> bytes:
    return draw_small_maps([(name, value * np.eye(8))] * count, top=2.0, caption="what is drawn")


def test_a_sheet_grows_by_rows() -> None:
    one, full, more = (size(draw(count)) for count in (1, COLUMNS, COLUMNS + 1))
    assert one == full
    assert more[0] == full[0]
    assert more[1] > full[1]


def test_the_scale_is_given_and_not_read_off() -> None:
    assert draw(2) == draw(2)
    assert draw(2, 0.5) != draw(2)
    assert draw(2, 3.0) == draw(2, 1e9)


def test_a_long_name_is_cut() -> None:
    assert draw(1, name="package.module:function_of_mine") == draw(
        1, name="package.module:function_of_yours"
    )


def test_bad_sheets_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least one map"):
        draw(0)
    with pytest.raises(InvalidParameter, match="above 0, got 0"):
        draw_small_maps([("a", np.eye(2))], top=0, caption="")
