"""Releasing readings: rounding is counted, payment comes first, and the key holder gets the readings back."""

from __future__ import annotations

import json
import math
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chance import assert_law

from sfumato.errors import (
    BudgetExceeded,
    InvalidInput,
    InvalidParameter,
    LedgerMismatch,
    SfumatoError,
    Unguarded,
)
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    GaussianLaw,
    Ledger,
    MovedMass,
    PureDP,
    RoundedGaussianLaw,
    SwappedCells,
    gaussian_sigma,
)
from sfumato.privacy.accounting import gaussian_delta
from sfumato.privacy.noise.laws import LARGEST_ROUNDED
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.sensitivity import Sensitivity, per_sensor_loss
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.model.site import Site
from sfumato.sensing.planning.synthetic import synthetic_site
from sfumato.sensing.release.keys import Device, MasterKey, write_device_key
from sfumato.sensing.release.noise_plan import LARGEST_READING, NoisePlan, plan_noise, unit_of
from sfumato.sensing.release.readings import (
    Readings,
    Snapshot,
    plan,
    quantise,
    read_readings,
    release_snapshot,
    unseal_snapshot,
)
from sfumato.sensing.release.seal import law_of
from sfumato.spaces import Line

LOSS = ApproxDP(1, "1e-6")


def hall(step: str = "0") -> Site:
    return Site(
        "hall",
        heat_line(
            sources=40, sensors=Sensors([0.1, 0.4, 0.9], ["a", "b", "c"]), diffusion_time=0.05
        ),
        MovedMass("1/10", "line"),
        Fraction(step),
        unit="mass",
        per_source=Fraction(1),
    )


@cache
def planned(step: str, rho: str) -> tuple[Site, NoisePlan]:
    site = hall(step)
    return site, plan(site, ZCDP(rho) if rho else LOSS)


@pytest.fixture(scope="module")
def site() -> Site:
    return hall()


@pytest.fixture(scope="module")
def noise(site: Site) -> NoisePlan:
    return plan(site, LOSS)


@pytest.fixture
def book(tmp_path: Path, site: Site) -> Ledger:
    return ledger_of(site, tmp_path / "hall.ledger")


def ledger_of(site: Site, path: Path, budget: Any = None) -> Ledger:
    return Ledger.create(
        path,
        budget or ApproxDP(10, "1e-4"),
        unit=unit_of(site.sensors),
        source=site.name,
        neighbors=site.neighbors,
        model="local",
    )


@pytest.fixture
def device(tmp_path: Path, key: bytes) -> Device:
    write_device_key(tmp_path / "d.key", MasterKey(key), "gateway")
    return Device(tmp_path / "d.key")


@pytest.mark.docs
@pytest.mark.parametrize(
    "page", ["proofs/sensors.md", "explain/sensors.md", "reference/keyed-noise.md"]
)
def test_pages_say_where_readings_are_clipped(page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    assert LARGEST_READING == 2**48
    assert re.search("clip[^.|]*2⁴⁸|2⁴⁸[^.|]*clip", text)
    assert "2⁵²" not in text


# --- the plan


@pytest.mark.unit
def test_rounding_and_the_sensors_step_are_counted() -> None:
    for step in ("0", "1/16", "3"):
        made = plan(hall(step), LOSS)
        root3 = math.sqrt(3)
        by_hand = (
            made.sensitivity.l2 + float(Fraction(step)) * root3
        ) / 2.0**made.exponent + 17 / 16 * root3
        assert float(made.moved) == pytest.approx(by_hand, rel=1e-12)
        # And in fractions it is no less: (moved - l2 / g)**2 >= 3 (step / g + 1)**2.
        g = Fraction(2) ** made.exponent
        assert (made.moved - Fraction(made.sensitivity.l2) / g) ** 2 >= 3 * (
            Fraction(step) / g + Fraction(17, 16)
        ) ** 2
        assert float(made.width) == pytest.approx(
            gaussian_sigma(1, "1e-6", sensitivity=made.moved), rel=1e-15
        )
        assert made.cost == LOSS


@pytest.mark.unit
def test_the_lattice_is_the_finest_that_can_be_drawn(noise: NoisePlan) -> None:
    assert LARGEST_ROUNDED / 2.1 < noise.width <= LARGEST_ROUNDED
    finer = plan(hall(), ZCDP("1/100"))
    assert finer.exponent < noise.exponent
    # Rounding costs less than a hundredth of the noise here, where sqrt(3) units stand beside
    # hundreds.
    assert noise.sigma < 1.01 * gaussian_sigma(1, "1e-6", sensitivity=noise.sensitivity.l2)


@pytest.mark.unit
def test_the_papers_calibration_is_wider_and_refused_where_it_fails() -> None:
    assert plan(hall(), LOSS, calibration="papers").sigma > 5 * plan(hall(), LOSS).sigma
    with pytest.raises(InvalidParameter, match="analytic"):
        plan(hall(), ApproxDP(40, "0.1"), calibration="papers")


@pytest.mark.unit
def test_the_loss_of_one_sensor_counts_its_step_and_rounding() -> None:
    made = plan(hall("1"), LOSS)
    alone = made.per_sensor_loss("1e-6")
    moved = made.sensitivity.per_sensor + 1 + 2.0**made.exponent
    for epsilon, change in zip(alone, moved, strict=True):
        assert gaussian_delta(epsilon, sigma=made.sigma, sensitivity=change) <= 1e-6
        # Without the step it would be far less: what the plan said before.
    bare = per_sensor_loss(made.sensitivity, made.sigma, "1e-6")
    assert (alone > 2 * bare).all()


@pytest.mark.unit
def test_a_calibration_that_does_not_apply_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="of epsilon and delta"):
        plan(hall(), ZCDP("1/100"), calibration="papers")
    with pytest.raises(InvalidParameter, match="'analytic' or 'papers'"):
        plan(hall(), LOSS, calibration="best")  # type: ignore[arg-type]


@pytest.mark.unit
@pytest.mark.parametrize("time", [5, "two\nlines", None])
def test_a_time_that_is_no_line_of_text_is_not_charged(
    time: Any, site: Site, noise: NoisePlan, book: Ledger
) -> None:
    with pytest.raises(InvalidParameter, match="nothing was charged"):
        release_snapshot([1, 2, 3], site, noise, ledger=book, time=time)
    assert not book.statement().entries


@pytest.mark.unit
def test_coordinates_beyond_three_have_numbers(tmp_path: Path, book: Ledger) -> None:
    places = Sensors([[1, 2, 3, 4], [5, 6, 7, 8]])
    deep = synthetic_site("deep", linear(np.eye(2), Line(2), sensors=places), MovedMass(1, "line"))
    paid = release_snapshot(
        [1, 2], deep, plan(deep, LOSS), ledger=ledger_of(deep, tmp_path / "deep.ledger")
    )
    assert Readings(deep, (paid,)).table().splitlines()[0] == "sensor,x1,x2,x3,x4,value,sigma"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("loss", "message"),
    [(PureDP(0), "epsilon"), (ZCDP(0), "cost nothing"), (ApproxDP(1, 0), "delta above 0")],
)
def test_plans_that_cannot_be_are_refused(loss: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        plan(hall(), loss)


@pytest.mark.unit
def test_more_sensors_than_the_lattice_can_round_are_refused() -> None:
    many = Sensors(np.arange(2_000_000.0))
    small = Sensitivity(1.0, np.ones(2_000_000), True, (0, 1), SwappedCells(1))
    with pytest.raises(InvalidParameter, match="give rho instead"):
        plan_noise(many, small, LOSS)
    assert plan_noise(many, small, ZCDP("1/8")).sigma > 0
    with pytest.raises(InvalidParameter, match="nothing to protect"):
        plan_noise(many, replace(small, l2=0.0), LOSS)
    with pytest.raises(InvalidParameter, match="2000000 sensors, got 3"):
        plan_noise(hall().sensors, small, LOSS)


# --- quantising


@pytest.mark.property
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=8),
    st.integers(-20, 20),
    st.integers(0, 8),
)
def test_two_readings_differ_by_at_most_one_unit_more_after_rounding(
    pairs: list[tuple[float, float]], exponent: int, step: int
) -> None:
    # In fractions, so that nothing rounds but what is tested. `step` > 0 is a sensor with its own
    # resolution.
    one, other = np.array(pairs).T
    own = Fraction(step, 8)
    if step:
        one, other = (np.rint(values / float(own)) * float(own) for values in (one, other))
    g = Fraction(2) ** exponent
    moved = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*np.array(pairs).T, strict=True))
    rounded = quantise(one, exponent) - quantise(other, exponent)
    m = len(pairs)
    bound = (math.sqrt(moved) + float(own) * math.sqrt(m)) / float(g) + math.sqrt(m)
    assert math.sqrt(float(sum(int(z) ** 2 for z in rounded))) <= bound * (1 + 1e-9)


@pytest.mark.property
@given(data=st.data())
def test_neighbors_move_quantised_readings_within_the_bound(data: st.DataObject) -> None:
    # Brute force over lattice pairs of the real forward matrix: mass moved along the line by at
    # most 1/10.
    site, made = planned("1/32", "")
    n = site.operator.space.size
    masses = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    other = masses.copy()
    left = 0.1 * (1 - 1e-9)
    for _ in range(data.draw(st.integers(1, 4))):
        a, b = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
        if a == b:
            continue
        distance = abs(a - b) / n
        mass = min(other[a], left / distance) * data.draw(st.floats(0, 1))
        other[a] -= mass
        other[b] += mass
        left -= mass * distance
    before, after = (
        quantise(np.rint(site.operator.readings(f) * 32) / 32, made.exponent)
        for f in (masses, other)
    )
    assert sum(int(z) ** 2 for z in before - after) <= made.moved**2


@pytest.mark.unit
def test_far_readings_are_clipped_not_wrapped() -> None:
    assert quantise(np.array([1e300, -1e300]), 0).tolist() == [LARGEST_READING, -LARGEST_READING]


# --- release


@pytest.mark.unit
def test_a_release_says_what_was_promised_and_for_which_sensors(
    site: Site, noise: NoisePlan, book: Ledger
) -> None:
    snapshot = release_snapshot([1.0, 2.0, 3.0], site, noise, ledger=book)
    said = str(snapshot.guarantee)
    assert site.sensors.digest[:16] in said
    assert "read jointly by 3 sensors" in said
    assert "earth mover's distance of at most 0.1 (line)" in said
    assert "local model" in said
    assert snapshot.guarantee.computational is None
    assert book.statement().entries[0].cost == LOSS
    assert snapshot.sigma == pytest.approx(noise.sigma, rel=1e-6)
    book.check(snapshot.release)


@pytest.mark.unit
def test_a_device_releases_its_own_readings_and_pays_for_all(
    site: Site, noise: NoisePlan, book: Ledger
) -> None:
    snapshot = release_snapshot({"c": 3.0, "a": 1.0}, site, noise, ledger=book)
    assert snapshot.names == ("a", "c")
    assert snapshot.numbers().shape == (2,)
    assert book.statement().spent.epsilon == 1


@pytest.mark.statistical
def test_readings_have_the_noise_that_was_planned(
    site: Site, noise: NoisePlan, tmp_path: Path
) -> None:
    wide = synthetic_site(
        "hall", heat_line(sources=40, sensors=2000, diffusion_time=0.05), site.neighbors
    )
    made = plan(wide, LOSS)
    book = ledger_of(wide, tmp_path / "wide.ledger", ApproxDP(10, "1e-5"))
    values = np.linspace(-1, 1, 2000)
    drawn = np.concatenate(
        [
            release_snapshot(values, wide, made, ledger=book).release.value
            - quantise(values, made.exponent)
            for _ in range(10)
        ]
    )
    law = RoundedGaussianLaw(made.width)
    rivals = [
        RoundedGaussianLaw(made.width * share) for share in (Fraction(9, 10), Fraction(23, 25))
    ]
    assert_law(drawn, law.cdf, rivals=[rival.cdf for rival in rivals])


@pytest.mark.unit
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], "one reading for each of 3 sensors"),
        ([1.0, math.nan, 3.0], "sensor 'b' has none"),
        ([1.0, 2.0, math.inf], "sensor 'c' has none"),
        ({"a": 1.0, "x": 2.0}, "has no sensor of the 2. name given"),
        ({21.4371: "a"}, "has no sensor of the 1. name given"),
        (["1", "2", "3"], "must be numbers"),
        ([1j, 2, 3], "must be numbers"),
        ([10**400, 2, 3], "must be numbers"),
        (np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]), "must not be masked"),
        ({}, "one reading for each"),
        (["warm", 2, 3], "must be numbers"),
    ],
)
def test_bad_readings_get_one_sentence_and_no_charge(
    values: Any, message: str, site: Site, noise: NoisePlan, book: Ledger
) -> None:
    with pytest.raises(InvalidParameter, match=message) as refusal:
        release_snapshot(values, site, noise, ledger=book)
    assert "nothing was charged" in str(refusal.value)
    assert not book.statement().entries


@pytest.mark.unit
def test_ledgers_and_plans_of_others_are_refused(
    site: Site, noise: NoisePlan, book: Ledger, tmp_path: Path
) -> None:
    moved = synthetic_site(
        "hall",
        heat_line(
            sources=40, sensors=Sensors([0.1, 0.4, 0.8], ["a", "b", "c"]), diffusion_time=0.05
        ),
        site.neighbors,
    )
    warmer = heat_line(sources=40, sensors=site.sensors, diffusion_time=50)
    hot = synthetic_site("hall", warmer, site.neighbors)
    fine = replace(site, step=Fraction(1, 2))
    for other in (moved, hot, fine, replace(site, neighbors=MovedMass("1/5", "line"))):
        with pytest.raises(InvalidParameter, match="another site"):
            release_snapshot([1, 2, 3], other, noise, ledger=book)
    with pytest.raises(LedgerMismatch, match="accounts for the source 'hall'"):
        release_snapshot([1, 2, 3], replace(site, name="clinic"), noise, ledger=book)
    free = Ledger.rehearsal(LOSS, unit=unit_of(site.sensors), neighbors=site.neighbors)
    with pytest.raises(LedgerMismatch, match="accounts for the source REHEARSAL"):
        release_snapshot([1, 2, 3], site, noise, ledger=free)
    with pytest.raises(LedgerMismatch, match="nothing was charged"):
        release_snapshot([1, 2, 3], moved, plan(moved, LOSS), ledger=book)
    poor = ledger_of(site, tmp_path / "poor.ledger", ApproxDP("1/2", "1e-4"))
    with pytest.raises(BudgetExceeded, match="nothing was released"):
        release_snapshot([1, 2, 3], site, noise, ledger=poor)


# --- sealing


@pytest.mark.property
@settings(max_examples=25)  # each pays from a ledger of its own, on the disk
@given(
    values=st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3),
    rho=st.sampled_from(["", "1/50"]),
)
def test_unsealing_is_exact(values: list[float], rho: str, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("seal")
    site, made = planned("0", rho)
    master = MasterKey(bytes(range(32)))
    write_device_key(folder / "d.key", master, "gateway")
    book = ledger_of(site, folder / "l.ledger")
    snapshot = release_snapshot(values, site, made, ledger=book, device=Device(folder / "d.key"))
    back = unseal_snapshot(
        Snapshot.from_json(json.loads(json.dumps(snapshot.to_json()))), site, master
    )
    expected = np.ldexp(quantise(np.array(values), made.exponent).astype(float), made.exponent)
    assert np.array_equal(back.reveal(), expected)
    assert back.names == site.sensors.names
    assert snapshot.guarantee.computational is not None
    assert "computational" in str(snapshot.guarantee)


def sealed(site: Site, noise: NoisePlan, book: Ledger, device: Device) -> Snapshot:
    return release_snapshot([1.0, 2.0, 3.0], site, noise, ledger=book, device=device)


@pytest.mark.unit
def test_the_noise_is_really_there_and_fresh_each_time(
    site: Site, noise: NoisePlan, book: Ledger, device: Device
) -> None:
    one, two = (sealed(site, noise, book, device) for _ in range(2))
    exact = quantise(np.array([1.0, 2.0, 3.0]), noise.exponent)
    assert not np.array_equal(one.release.value, exact)
    assert not np.array_equal(one.release.value, two.release.value)
    assert one.seal is not None
    assert two.seal is not None
    assert (one.seal.epoch, one.seal.first, two.seal.first) == (two.seal.epoch, 0, 3)


@pytest.mark.unit
def test_another_key_and_changed_readings_are_refused(
    site: Site, noise: NoisePlan, book: Ledger, device: Device, key: bytes
) -> None:
    snapshot = sealed(site, noise, book, device)
    assert snapshot.seal is not None
    with pytest.raises(InvalidInput, match="sealed under key"):
        unseal_snapshot(snapshot, site, MasterKey(bytes(32)))
    master = MasterKey(key)
    unseal_snapshot(snapshot, site, master)
    shifted = snapshot.release.value.copy()
    shifted[0] += 1
    stronger = replace(snapshot.release.entry, parameters={"sigma": "1000", "promise": None})
    changed = [
        replace(snapshot, release=replace(snapshot.release, value=shifted)),
        replace(
            snapshot, release=replace(snapshot.release, exponent=snapshot.release.exponent + 1)
        ),
        replace(snapshot, release=replace(snapshot.release, entry=stronger)),
        replace(snapshot, names=("b", "a", "c")),
        replace(snapshot, time="another"),
        replace(snapshot, seal=replace(snapshot.seal, first=1)),
        replace(snapshot, seal=replace(snapshot.seal, device="other")),
        replace(snapshot, seal=replace(snapshot.seal, step=1)),
        replace(snapshot, seal=replace(snapshot.seal, epoch="00" * 12)),
        replace(snapshot, seal=replace(snapshot.seal, code="00" * 32)),
    ]
    with pytest.raises(InvalidInput, match="changed since they were sealed"):
        unseal_snapshot(snapshot, replace(site, step=Fraction(1)), master)
    for other in changed:
        with pytest.raises(InvalidInput, match="changed since they were sealed"):
            unseal_snapshot(other, site, master)
    with pytest.raises(InvalidInput, match="gone for good"):
        unseal_snapshot(replace(snapshot, seal=None), site, master)


@pytest.mark.unit
def test_unsealed_readings_are_another_type_that_nothing_exports(
    site: Site, noise: NoisePlan, book: Ledger, device: Device, key: bytes, tmp_path: Path
) -> None:
    snapshot = sealed(site, noise, book, device)
    found: Any = unseal_snapshot(snapshot, site, MasterKey(key))
    assert repr(found) == "Unsealed(3 private readings)"
    attempts: list[Any] = [
        lambda: json.dumps(found, default=lambda value: value.to_json()),
        lambda: pickle.dumps(found),
        lambda: np.asarray(found),
        lambda: list(found),
        lambda: replace(snapshot.release, value=found).write(tmp_path / "x.json"),
        lambda: Readings(
            site, (replace(snapshot, release=replace(snapshot.release, value=found)),)
        ).write(tmp_path / "y.json"),
    ]
    for attempt in attempts:
        with pytest.raises((Unguarded, TypeError, SfumatoError)):
            attempt()
    assert not list(tmp_path.glob("?.json"))


@pytest.mark.unit
def test_the_law_of_the_noise_is_read_from_the_entry(
    site: Site, noise: NoisePlan, book: Ledger
) -> None:
    assert law_of(
        release_snapshot([1, 2, 3], site, noise, ledger=book).release
    ) == RoundedGaussianLaw(noise.width)
    made = plan(site, ZCDP("1/100"))
    found = release_snapshot([1, 2, 3], site, made, ledger=book)
    assert law_of(found.release) == GaussianLaw(made.width)
    for wrong in ({}, {"sigma": "x"}, {"sigma": None}):
        entry = replace(found.release.entry, parameters=wrong)
        with pytest.raises(InvalidInput, match="how wide"):
            law_of(replace(found.release, entry=entry))
    with pytest.raises(InvalidInput, match="Gaussian"):
        law_of(
            replace(
                found.release, entry=replace(found.release.entry, mechanism="permute-and-flip/1")
            )
        )


# --- files


@pytest.mark.unit
def test_readings_come_back_from_their_file(
    site: Site, noise: NoisePlan, book: Ledger, device: Device, tmp_path: Path
) -> None:
    snapshots = (
        release_snapshot([1.0, 2.0, 3.0], site, noise, ledger=book, device=device, time="09:00"),
        release_snapshot({"b": 2.0}, site, noise, ledger=book, time="10:00"),
    )
    Readings(site, snapshots).write(tmp_path / "r.json")
    again = read_readings(tmp_path / "r.json")
    assert again.site == site
    assert [s.to_json() for s in again.snapshots] == [s.to_json() for s in snapshots]
    assert again.snapshots[0].seal == snapshots[0].seal
    Readings(site, snapshots).write(tmp_path / "r.csv")
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert lines[0] == "time,sensor,x,value,sigma"
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["09:00", "a", "0.1"],
        ["09:00", "b", "0.4"],
        ["09:00", "c", "0.9"],
        ["10:00", "b", "0.4"],
    ]
    with pytest.raises(InvalidInput, match="exists already and is kept"):
        again.write(tmp_path / "r.json")
    with pytest.raises(InvalidParameter, match="written as"):
        again.write(tmp_path / "r.txt")


@pytest.mark.unit
@pytest.mark.parametrize("missing", ["format", "site", "snapshots"])
def test_a_file_that_is_not_whole_is_refused(
    missing: str, site: Site, noise: NoisePlan, book: Ledger, tmp_path: Path
) -> None:
    whole = Readings(site, (release_snapshot([1, 2, 3], site, noise, ledger=book),)).to_json()
    path = tmp_path / "r.json"
    path.write_text(json.dumps({name: value for name, value in whole.items() if name != missing}))
    with pytest.raises(InvalidInput, match="not a whole file of readings"):
        read_readings(path)
    for part in ("names", "release", "seal", "time"):
        broken = json.loads(json.dumps(whole))
        del broken["snapshots"][0][part]
        path.write_text(json.dumps(broken))
        with pytest.raises(InvalidInput, match="not a whole file of readings"):
            read_readings(path)
    changes: list[Callable[[Any], Any]] = [
        lambda data: data["snapshots"][0].update(names=["a", "a", "b"]),
        lambda data: data["snapshots"][0]["release"]["entry"].update(computational="1/0"),
        lambda data: data["site"].update(step="1e99999999"),
        lambda data: data.update(site=hall().to_json() | {"sensors": other_sensors()}),
    ]
    for change in changes:
        broken = json.loads(json.dumps(whole))
        change(broken)
        path.write_text(json.dumps(broken))
        with pytest.raises(InvalidInput, match="not a whole file of readings"):
            read_readings(path)
    path.write_text("[" * 100_000)
    with pytest.raises(InvalidInput, match="it is no JSON"):
        read_readings(path)
    stranger = json.loads(json.dumps(whole))
    stranger["snapshots"][0]["names"] = ["a", "b", "x"]
    path.write_text(json.dumps(stranger))
    with pytest.raises(InvalidInput, match="not a whole file of readings"):
        read_readings(path)


def other_sensors() -> dict[str, Any]:
    sensors = Sensors([0.9, 0.4, 0.1], ["a", "b", "c"])
    return {
        "names": ["a", "b", "c"],
        "positions": sensors.positions.tolist(),
        "set": sensors.digest,
    }
