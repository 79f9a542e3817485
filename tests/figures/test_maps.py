"""Pictures depend on what is drawn and on nothing else."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.figures import draw_maps

pytestmark = pytest.mark.unit


def size(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


def draw(values: np.ndarray, **rest: str) -> bytes:
    return draw_maps([("one", values)], top=10, caption="what was promised", unit="people", **rest)


def test_the_same_values_give_the_same_bytes() -> None:
    assert draw(np.eye(8)) == draw(np.eye(8))
    assert draw(np.eye(8)) != draw(2 * np.eye(8))
    assert draw(np.eye(8)) != draw(np.eye(8), stamp="rehearsal")


def test_the_picture_has_the_same_size_whatever_the_values() -> None:
    """Threat S15: neither the extent nor the legend follows the data."""
    empty, full = draw(np.zeros((8, 8))), draw(np.full((8, 8), 1e9))
    assert size(empty) == size(full)


def test_a_scale_beyond_which_values_differ_hides_them() -> None:
    assert draw(np.full((8, 8), 11.0)) == draw(np.full((8, 8), 1e9))


def test_bad_pictures_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least one map"):
        draw_maps([], top=1, caption="", unit="")
    with pytest.raises(InvalidParameter, match="above 0, got 0"):
        draw_maps([("a", np.eye(2))], top=0, caption="", unit="")
