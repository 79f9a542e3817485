"""What a device with sensors needs loads nothing heavy: a site, a noise plan, a ledger, a key, a seal."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import pytest
from tests.test_light_path import HEAVY, MOST_MEGABYTES, measured

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import ZCDP, ApproxDP, Ledger, MovedMass
from sfumato.sensing import Operator, Site, heat_line, heat_plane, release_readings
from sfumato.sensing.pipeline import make_device_key, make_master_key, open_ledger, unseal_readings
from sfumato.sensing.release import plan, read_noise_plan, read_readings
from sfumato.spaces import Grid

pytestmark = [
    pytest.mark.unit,
    pytest.mark.skipif(sys.platform != "linux", reason="resident memory is counted as on Linux"),
]

SITES: dict[str, Operator] = {
    "line": heat_line(sources=20, sensors=4, diffusion_time=0.02),
    "plane": heat_plane(
        sources=Grid(3),
        sensors=[(0.2, 0.2), (0.8, 0.2), (0.2, 0.8), (0.8, 0.8)],
        diffusion_time=0.02,
    ),
}
LOSSES: dict[str, ZCDP | ApproxDP] = {"rho": ZCDP(1), "epsilon": ApproxDP(4, "1e-6")}
BUDGETS: dict[str, ZCDP | ApproxDP] = {"rho": ZCDP(2), "epsilon": ApproxDP(8, "1e-5")}
VALUES = {"0": 0.5, "1": 2.25, "2": 1.5, "3": -0.125}

RELEASE = """
from sfumato.privacy import Ledger
from sfumato.sensing.model import read_site
from sfumato.sensing.release import Device, Readings, read_noise_plan, release_snapshot

site, plan = read_site("site.json"), read_noise_plan("plan.json")
ledger, device = Ledger("site.ledger"), Device("device.json")
snapshot = release_snapshot(VALUES, site, plan, ledger=ledger, device=device, time="now")
Readings(site, (snapshot,)).write("readings.json")
"""
PIPELINE = """
from sfumato.sensing.pipeline import release_readings
from sfumato.sensing.release import read_noise_plan

plan = read_noise_plan("plan.json")
release_readings(
    [("now", VALUES)], "site.json", ledger="site.ledger", noise_plan=plan, device="device.json",
    out=["readings.json"],
)
"""


@pytest.mark.parametrize("code", [RELEASE, PIPELINE], ids=["by hand", "pipeline"])
@pytest.mark.parametrize("on", SITES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_device_seals_readings_and_loads_nothing_heavy(
    on: str, loss: str, code: str, tmp_path: Path
) -> None:
    site = Site(
        "hall",
        SITES[on],
        MovedMass("1/10", SITES[on].space.metric),
        unit="mass",
        per_source=Fraction(1),
    )
    site.write(tmp_path / "site.json")
    plan(site, LOSSES[loss]).write(tmp_path / "plan.json")
    open_ledger(site, tmp_path / "site.ledger", BUDGETS[loss])
    make_master_key(tmp_path / "master.json")
    make_device_key(tmp_path / "master.json", tmp_path / "device.json", name="door")
    found = measured(f"VALUES = {VALUES}\n{code}", tmp_path)
    assert isinstance(found["modules"], list)
    assert not set(HEAVY) & set(found["modules"])
    assert isinstance(found["megabytes"], float)
    assert found["megabytes"] < MOST_MEGABYTES
    # What it sent is whole: the holder of the master key finds the readings, to a lattice unit.
    sent = read_readings(tmp_path / "readings.json")
    rows = unseal_readings(sent, tmp_path / "master.json").rows
    assert {name: pytest.approx(value, abs=1e-3) for _, name, value in rows} == VALUES


@pytest.mark.parametrize("loss", LOSSES)
def test_a_noise_plan_is_the_same_from_its_file(loss: str, tmp_path: Path) -> None:
    site = Site("hall", SITES["line"], MovedMass("1/10", "line"), step=Fraction(1, 16))
    made = plan(site, LOSSES[loss])
    made.write(tmp_path / "plan.json")
    again = read_noise_plan(tmp_path / "plan.json")
    assert again.to_json() == made.to_json()
    assert (again.cost, again.moved, again.sigma, again.bound()) == (
        made.cost,
        made.moved,
        made.sigma,
        made.bound(),
    )


def test_a_plan_that_does_not_keep_its_promise_is_refused(tmp_path: Path) -> None:
    site = Site("hall", SITES["line"], MovedMass("1/10", "line"))
    made = plan(site, LOSSES["epsilon"])
    made.write(tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text()
    l2 = made.sensitivity.l2
    (tmp_path / "plan.json").write_text(text.replace(str(l2), str(2 * l2), 1))
    with pytest.raises(InvalidInput, match="does not keep"):
        read_noise_plan(tmp_path / "plan.json")
    (tmp_path / "plan.json").write_text(text.replace("noise-plan/1", "noise-plan/2"))
    with pytest.raises(InvalidInput, match="its format is not sfumato-noise-plan/1"):
        read_noise_plan(tmp_path / "plan.json")


def test_a_plan_of_another_site_or_beside_a_cost_is_refused(tmp_path: Path) -> None:
    site, other = (
        Site(name, SITES["line"], MovedMass(radius, "line"), unit="mass", per_source=Fraction(1))
        for name, radius in (("hall", "1/10"), ("hall", "1/5"))
    )
    open_ledger(site, tmp_path / "site.ledger", BUDGETS["rho"])
    paid = Ledger(tmp_path / "site.ledger")
    with pytest.raises(InvalidParameter, match="made for another site; nothing was charged"):
        release_readings(VALUES, site, ledger=paid, noise_plan=plan(other, LOSSES["rho"]))
    own = plan(site, LOSSES["rho"])
    with pytest.raises(InvalidParameter, match="a noise plan has its own cost"):
        release_readings(VALUES, site, ledger=paid, noise_plan=own, loss=LOSSES["rho"])
    assert not paid.statement().entries
