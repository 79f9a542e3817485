"""Templates of sites: what they place, what they leave to be said, and what they refuse."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP
from sfumato.sensing import Sensors
from sfumato.sensing.pipeline import site_from_template
from sfumato.sensing.release import plan

pytestmark = pytest.mark.unit


def test_a_corridor_has_sensors_at_even_distances() -> None:
    made = site_from_template("c", "corridor", length=12, count=6, beside="1C", step="0.1").site
    assert made.sensors.names == ("s1", "s2", "s3", "s4", "s5", "s6")
    assert made.sensors.positions[:, 0].tolist() == [1, 3, 5, 7, 9, 11]
    assert made.level is not None
    assert made.level.ambient == 20
    assert plan(made, ZCDP(1)).sigma > 0


def test_an_array_sees_what_is_below_it() -> None:
    made = site_from_template("a", "amg8833", height=2, beside="2C").site
    side = 4 * math.tan(math.pi / 6)
    assert len(made.sensors) == 64
    assert made.sensors.names[:9] == (*(f"r0c{n}" for n in range(8)), "r1c0")
    assert np.allclose(made.sensors.positions[63], [side * 15 / 16] * 2)
    assert made.step == Fraction(1, 4)


def test_a_floor_reaches_half_the_way_beyond_its_sensors(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("sensor,x,y\na,0,0\nb,6,0\nc,0,6\nd,6,6\n")
    for sensors in (tmp_path / "s.csv", Sensors([(0, 0), (6, 0), (0, 6), (6, 6)], list("abcd"))):
        made: Any = site_from_template("f", "floor", sensors=sensors, beside="1C", step=0)
        space = made.site.operator.space
        assert made.site.sensors.names == ("a", "b", "c", "d")
        assert space.bounds == (-1.5, -1.5, 7.5, 7.5)


def test_what_is_given_counts_instead(tmp_path: Path) -> None:
    made = site_from_template(
        "c", "corridor", radius="1/2", ambient="18C", beside="1C", step="0.5", out=tmp_path / "c.json"
    )  # fmt: skip
    assert "at most 0.5 (line)" in str(made.site.neighbors)
    assert made.site.level is not None
    assert made.site.level.ambient == 18
    assert made.step_given
    assert not site_from_template("c", "corridor", beside="1C").step_given
    (tmp_path / "g.csv").write_text("u,v,length\na,b,1\nb,c,1\nx,y,1\n")
    roads = site_from_template(
        "r", "roads", graph=tmp_path / "g.csv", swapped=1, beside="1", unit="cars"
    )
    assert roads.site.operator.space.size == 3


@pytest.mark.parametrize(
    ("template", "given", "message"),
    [
        ("attic", {}, "a `template` is one of corridor, floor, amg8833, roads, got 'attic'"),
        ("floor", {}, "needs `sensors`"),
        ("floor", {"count": 3}, "`count` is of the template corridor"),
        ("corridor", {"height": 3}, "`height` is of the template amg8833"),
        ("corridor", {"length": -1}, "the `length` of a corridor lies above 0"),
        ("corridor", {"count": 0}, "count must be a whole number from 1 to 1000"),
        ("amg8833", {"height": 0}, "the `height` above heads lies in"),
        ("roads", {}, "say where sources may be"),
    ],
)
def test_what_is_no_template_is_refused(template: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        site_from_template("x", template, beside="1C", **given)
