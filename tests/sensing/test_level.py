"""Levels that are taken off: public, exact, and of no effect on what is promised."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, MovedMass
from sfumato.sensing import Site, describe_site, heat_line, open_ledger, read_site
from sfumato.sensing.model.level import Level, with_unit
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.pipeline import release_readings, simulate_site
from sfumato.sensing.release import plan, quantise
from sfumato.sensing.release.exact import check_level, in_sources, named_numbers
from sfumato.sensing.release.noise_plan import SLIP
from sfumato.sensing.render import site_remarks

pytestmark = pytest.mark.unit

LINE = heat_line(sources=20, sensors=4, diffusion_time=0.02)
PLAIN: dict[str, Any] = {"operator": LINE, "radius": "1/10", "unit": "C", "per_source": "1/2"}
OUT = "outdoors"


def site(**more: Any) -> Site:
    return describe_site("hall", **{**PLAIN, **more}).site


def test_a_number_may_carry_its_unit() -> None:
    assert with_unit("0.8C", "per_source", "") == (Fraction(4, 5), "C")
    assert with_unit("1e-3 degC", "per_source", "degC") == (Fraction(1, 1000), "degC")
    assert with_unit("1/2", "per_source", "C") == (Fraction(1, 2), "C")
    assert with_unit("2eV", "per_source", "") == (Fraction(2), "eV")
    with pytest.raises(InvalidParameter, match="a site has one; nothing was built"):
        with_unit("0.8C", "per_source", "F")


@pytest.mark.parametrize("unit", ["C", "degC", "kelvin", "degrees"])
def test_degrees_need_a_level_so_that_rooms_do_not_pass_as_sources(unit: str) -> None:
    with pytest.raises(InvalidParameter, match="are not 0 where nobody is: say what they are"):
        site(unit=unit)
    for said in ({"ambient": 0}, {"offsets": {"0": "0.5"}}, {"baseline": OUT}):
        assert site(unit=unit, **said).level is not None
    assert site(unit="mass").level is None


def test_a_site_of_people_of_one_degree_around_twenty_is_one_call() -> None:
    hall = describe_site(
        "hall", line=20, sensors=LINE.sensors, diffusion_time=0.02, radius="1/10", beside="1C",
        ambient="20C", largest="5C",
    ).site  # fmt: skip
    assert (hall.unit, hall.level) == ("C", Level(Fraction(20)))
    # A person right at a sensor makes it read 21.
    made = simulate_site(site=hall, sources=1, rng=np.random.default_rng(0))
    cell = int(np.flatnonzero(made.sources)[0])
    near = np.argmin(np.abs(hall.sensors.positions[:, 0] - (cell + 1) / 20))
    assert 20 < made.readings[near] <= 21 + 1e-9
    with pytest.raises(InvalidParameter, match="say what a source adds once"):
        site(ambient=0, beside="1C")


def test_a_baseline_is_public() -> None:
    with pytest.raises(
        InvalidParameter, match="'1' is a sensor of the site, whose readings are priv"
    ):
        site(baseline="1")
    with pytest.raises(
        InvalidParameter, match="offsets are of sensors of the site, got one of 'x'"
    ):
        site(offsets={"x": 1})
    with pytest.raises(InvalidParameter, match="needs their `unit` and `per_source`"):
        Site("hall", LINE, MovedMass("1/10", "line"), level=Level(Fraction(1)))
    hall = site(baseline=OUT)
    with pytest.raises(
        InvalidParameter, match="the public baseline 'outdoors', which these readings"
    ):
        named_numbers(dict.fromkeys(hall.sensors.names, 20.0), hall)
    with pytest.raises(InvalidParameter, match="must be a number within 1e100"):
        named_numbers({**dict.fromkeys(hall.sensors.names, 20.0), OUT: np.inf}, hall)


def test_a_site_with_a_level_comes_back_and_one_from_before_is_the_same(tmp_path: Path) -> None:
    hall = site(ambient="20", offsets={"0": "1/3"}, baseline=OUT)
    hall.write(tmp_path / "site.json")
    assert read_site(tmp_path / "site.json") == hall
    assert hall.digest != site(ambient="21", offsets={"0": "1/3"}, baseline=OUT).digest
    # What a site of an earlier version holds, and its digest, which plans and seals name.
    old = Site("hall", LINE, MovedMass("1/10", "line"), unit="mass", per_source=Fraction(1))
    held = old.to_json()
    assert set(held) == {
        "format", "name", "operator", "sources", "sensors", "neighbors", "step", "unit", "per_source"
    }  # fmt: skip
    assert Site.from_json(json.loads(json.dumps(held))) == old
    assert old.digest == "a0a97d1729e9d776f0d619d18113be90bf9bd0f3433058018b84890966e45375"


def test_noise_does_not_change_with_the_level() -> None:
    warm, plain = site(ambient=20, offsets={"1": 2}), site(ambient=0)
    assert plan(warm, ZCDP(1)).sigma == plan(plain, ZCDP(1)).sigma
    assert plan(warm, ZCDP(1)).moved == plan(plain, ZCDP(1)).moved


@given(st.floats(-60, 60), st.floats(-5, 5), st.floats(-100, 100), st.sampled_from([None, "3"]))
def test_two_readings_are_no_further_apart_after_the_level_is_off(
    read: float, change: float, ambient: float, largest: str | None
) -> None:
    hall = site(ambient=str(Fraction(ambient)), largest=largest, baseline=OUT)
    made = plan(hall, ZCDP(1))
    outside = {OUT: 7.3}
    units = []
    for value in (read, read + change):
        exact = named_numbers({**dict.fromkeys(hall.sensors.names, value), **outside}, hall)
        check_level(exact, hall, made.exponent)
        told = in_sources(exact.numbers, hall, level=exact.level, exponent=made.exponent)
        if largest is not None:
            assert np.abs(told).max() <= 2 * float(largest)
        units.append(quantise(told, made.exponent))
    moved = Fraction(abs((read + change) - read)) * 2 / Fraction(2) ** made.exponent
    # A lattice unit and the slip that every plan counts.
    assert int(np.abs(units[1] - units[0]).max()) <= moved + 1 + Fraction(SLIP)


def test_a_level_that_doubles_cannot_hold_beside_the_noise_is_refused(tmp_path: Path) -> None:
    hall = site(ambient="1e40")
    book = open_ledger(hall, tmp_path / "hall.ledger", ZCDP(1)).ledger
    with pytest.raises(InvalidParameter, match="too large for the noise beside it"):
        release_readings(dict.fromkeys(hall.sensors.names, 1e40), hall, ledger=book, loss=ZCDP(1))
    assert not book.statement().entries


def test_short_numbers_are_as_coarse_as_where_they_were_read() -> None:
    # float32 near 20 is 1.9e-6 apart, near 5 a quarter of that: the step must cover the first.
    values = np.full(4, 20, dtype=np.float32)
    near_five = str(Fraction(float(np.spacing(np.float32(5)))))
    with pytest.raises(InvalidParameter, match="of type float32 are rounded"):
        named_numbers(values, site(ambient=20, largest=5, step=near_five))
    near_25 = str(Fraction(float(np.spacing(np.float32(25)))))
    assert (
        named_numbers(values, site(ambient=20, largest=5, step=near_25)).numbers.tolist()
        == [20] * 4
    )


def test_what_is_released_is_what_is_above_the_level(tmp_path: Path) -> None:
    hall = site(ambient=20, offsets={"0": 1}, baseline=OUT)
    book = open_ledger(hall, tmp_path / "hall.ledger", ZCDP("1e20")).ledger
    exact = {"0": 24.5, "1": 23.0, "2": 23.5, "3": 22.5, OUT: 3.0}
    noisy = release_readings(exact, hall, ledger=book, loss=ZCDP("1e20"))
    numbers = noisy.readings.snapshots[0].numbers()
    assert numbers == pytest.approx([1, 0, 1, -1], abs=1e-6)  # per_source is 1/2


@pytest.mark.parametrize(
    ("time", "question"),
    [(1e6, "over all of a site 40 wide"), (0.01, "and sensors are 9 apart"), (4.0, "")],
)
def test_a_diffusion_time_that_makes_no_sense_is_questioned(time: float, question: str) -> None:
    at = Sensors([(x, y) for x in (2, 11, 20, 29, 38) for y in (1, 10)])
    made = describe_site(
        "floor", sensors=at, grid=3, bounds=(0, 0, 40, 12), diffusion_time=time, radius=1,
        beside="1C", ambient="20C",
    )  # fmt: skip
    remarks = site_remarks(made)
    asked = [line for line in remarks if line.startswith("is `diffusion_time`")]
    assert bool(asked) == bool(question)
    assert question in " ".join(asked)
    assert "taken off readings, public: 20 C" in remarks
    assert "a source of mass 1 adds 1 C to a sensor where it stands" in remarks
