"""Pictures of blocks draw what they are given, and refuse what makes no sense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.figures import sheet
from sfumato.figures.graphon import _ink, _places, blocks_picture, phase_picture
from sfumato.figures.style import INK, PAPER

pytestmark = pytest.mark.unit

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the pixels a side: nothing here needs more, and drawing is slow."""
    monkeypatch.setattr(sheet, "DPI", 50)


def blocks(**changed: Any) -> bytes:
    given: dict[str, Any] = {
        "matrix": [[0.5, 0.1], [0.1, 0.3]], "shares": [0.6, 0.4], "caption": "made up", **changed,
    }  # fmt: skip
    return blocks_picture(given.pop("matrix"), given.pop("shares"), **given)


def phase(**changed: Any) -> bytes:
    given: dict[str, Any] = {
        "densities": [0.01, 0.1, 1.0], "blocks": [2, 4], "regimes": [[0, 1, 1], [0, 0, 1]],
        "names": ["no", "yes"], "caption": "c", **changed,
    }  # fmt: skip
    return phase_picture(given.pop("densities"), given.pop("blocks"), given.pop("regimes"), **given)


def test_pictures_are_png_and_the_same_each_time() -> None:
    for draw in (blocks, phase):
        assert draw().startswith(PNG)
        assert draw() == draw()


def test_blocks_are_drawn_as_given() -> None:
    usual = blocks()
    assert usual != blocks(matrix=[[0.5, 0.2], [0.2, 0.3]])
    assert usual != blocks(shares=[0.5, 0.5])
    assert usual != blocks(names=["north", "$south$"])
    assert usual != blocks(title="other")
    assert usual != blocks(rehearsal=True)
    assert blocks(matrix=[[0.0]], shares=[1.0]).startswith(PNG)
    many = np.full(60, 1 / 60)
    assert blocks(matrix=np.outer(many, many), shares=many).startswith(PNG)


def test_narrow_blocks_have_names_too() -> None:
    """One block of 66 % and eleven of 3 %: twelve names, apart, in order, and inside the picture."""
    sizes = np.array([0.66] + [0.34 / 11] * 11)
    for gap in (0.03, 0.05, 0.09):
        places = _places(sizes, gap)
        assert list(places) == list(range(12))
        at = np.array(list(places.values()))
        assert np.diff(at).min() >= gap - 1e-12
        assert 0 <= at.min() < at.max() <= 1 + 1e-12
    assert list(_places(sizes, 0.2)) == [0]
    assert _places(np.full(4, 0.25), 0.03) == pytest.approx(
        {0: 0.125, 1: 0.375, 2: 0.625, 3: 0.875}
    )


def test_numbers_stand_out_of_their_color() -> None:
    assert _ink((0.4, 0.6, 0.9, 1.0)) == INK
    assert _ink((0.03, 0.2, 0.45, 1.0)) == PAPER
    assert (_ink((1.0, 1.0, 1.0)), _ink((0.0, 0.0, 0.0))) == (INK, PAPER)


def test_a_phase_is_drawn_as_given() -> None:
    usual = phase()
    with_point = phase(point=(0.05, 3))
    assert len({usual, with_point, phase(point=(0.5, 3)), phase(trivial=[0.02, 0.2])}) == 4
    assert usual != phase(regimes=[[0, 0, 1], [0, 0, 1]])
    assert usual != phase(names=["no", "perhaps"])


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"matrix": [[0.5]]}, r"each two of 2 blocks, got shape \(1, 1\)"),
        ({"matrix": [[0.5, np.nan], [0.1, 0.3]]}, "finite"),
        ({"shares": [0.5, 0.4]}, "sum to 1"),
        ({"matrix": [[0.5, -0.1], [-0.1, 0.3]]}, "at least 0"),
        ({"names": ["one"]}, "2 blocks need as many names, got 1"),
    ],
)
def test_blocks_that_make_no_sense_are_refused(changed: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        blocks(**changed)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"densities": [0.0, 0.1, 1.0]}, "above 0"),
        ({"regimes": [[0, 1, 1]]}, r"shape \(1, 3\)"),
        ({"names": ["no"]}, "got 1 names"),
        ({"trivial": [0.1]}, "trivial must be one number for each of 2"),
    ],
)
def test_phases_that_make_no_sense_are_refused(changed: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        phase(**changed)
