"""Devices of one site whose noise differs: each counts by its own, and what is saved is checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.sensing.test_noise_each import OPERATORS, network

from sfumato.privacy import ZCDP, PureDP
from sfumato.sensing import (
    Readings,
    check_recovery,
    describe_site,
    open_ledger,
    plan,
    plan_sensors,
    recover_sources,
    release_snapshot,
    track_sources,
)
from sfumato.sensing.model.operators.weighted import Weighted, gains_of
from sfumato.sensing.model.site import Site
from sfumato.sensing.pipeline.recover import recovered
from sfumato.sensing.recovery.estimators.registry import estimator_named
from sfumato.sensing.recovery.merging import merge
from sfumato.sensing.recovery.options import RecoveryOptions

FAR, NEAR = ZCDP("8"), ZCDP("128")  # a quarter of the noise


def released(site: Site, folder: Path, *losses: ZCDP | PureDP, time: str = "") -> list[Readings]:
    """Every other sensor by a device of its own cost: readings of a source in cell 3."""
    budget = ZCDP(10**6) if isinstance(losses[0], ZCDP) else PureDP(10**6)
    file = folder / f"{site.name}-{time or 'now'}.ledger"
    book = open_ledger(site, file, budget).ledger
    exact = site.operator.columns([3])[:, 0] / site.gains
    made = []
    for number, loss in enumerate(losses):
        rows = range(number, len(exact), len(losses))
        read = {site.sensors.names[row]: float(exact[row]) for row in rows}
        noisy = release_snapshot(read, site, plan(site, loss), ledger=book, time=time)
        made.append(Readings(site, (noisy,)))
    return made


def test_a_device_with_a_quarter_of_the_noise_counts_for_it(tmp_path: Path) -> None:
    """The weighted equation is the plain one times a number a row: the same readings, less noise."""
    site = network(0.5)
    read = released(site, tmp_path, FAR, NEAR)
    plain, found = merge(read), merge(read, weigh=True)
    assert plain.noise == pytest.approx(found.noise, rel=1e-9)
    gains = gains_of(found.site.operator)
    assert gains[0::2] == pytest.approx(np.ones(13))
    assert gains[1::2] == pytest.approx(np.full(13, 4.0), rel=1e-3)
    assert found.values == pytest.approx(plain.values * gains)
    assert found.min_noise == pytest.approx(found.noise)
    assert isinstance(plain.min_noise, float)
    assert plain.min_noise < 0.26 * (plain.noise or 0.0)
    # Fisher's information on any masses, by hand: the weighted one is that of each sensor's own noise.
    own = np.where(np.arange(26) % 2, plain.min_noise, plain.noise or 0.0)
    of_each = (site.operator.dense().T / own**2) @ site.operator.dense()
    weighed = found.site.operator.dense()
    assert weighed.T @ weighed / (found.noise or 1.0) ** 2 == pytest.approx(of_each, rel=2e-3)


def test_where_devices_are_alike_or_sources_between_cells_or_noise_is_laplace_nothing_changes(
    tmp_path: Path,
) -> None:
    net = network(0.5)
    line = describe_site(
        "line", operator=OPERATORS["line"][0], radius="1/10", unit="lux", per_source=1
    ).site
    for site, losses in (
        (net, (FAR, FAR)),
        (line, (FAR, NEAR)),
        (describe_site("pure", operator=net.operator, radius=1, unit="x", per_source=1).site,
         (PureDP(4), PureDP(16))),
    ):  # fmt: skip
        folder = tmp_path / f"{site.name}{losses[0] == losses[1]}"
        folder.mkdir()
        found = merge(released(site, folder, *losses), weigh=True)
        assert not isinstance(found.site.operator, Weighted)


def test_a_recovery_of_unequal_devices_is_saved_and_checked(tmp_path: Path) -> None:
    site = network(0.5)
    read = released(site, tmp_path, FAR, NEAR)
    found = recover_sources(read, estimator="least")
    assert isinstance(found.site.operator, Weighted)
    found.write(tmp_path / "found.json")
    ledger = tmp_path / "net-now.ledger"
    assert check_recovery(tmp_path / "found.json", readings=read, ledgers=[ledger]).holds
    told = released(site, tmp_path, FAR, FAR, time="later")
    assert not check_recovery(tmp_path / "found.json", readings=told, ledgers=[ledger]).holds
    # From before devices were weighed: all noise as the most of it.
    old = recovered(merge(read), RecoveryOptions(estimator_named("least")))
    assert not isinstance(old.site.operator, Weighted)
    assert check_recovery(old, readings=read, ledgers=[ledger]).holds


def test_a_track_takes_noise_for_each(tmp_path: Path) -> None:
    """By the rule's own site: both rounds, the sensors' own gains, and the source where it is."""
    told = plan_sensors(network(0.5), ZCDP(128), trials=0)
    site = told.design.site
    assert isinstance(site.operator, Weighted)
    read = [one for time in ("1", "2") for one in released(site, tmp_path, ZCDP(128), time=time)]
    found = track_sources(read)
    assert [one.sources[0].cell for one in found.rounds] == [3, 3]
    assert found.verdict.kind in ("rely", "care")
