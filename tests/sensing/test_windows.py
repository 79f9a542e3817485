"""Windows of time: each has its own budget, its own ledger, and says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.privacy import ZCDP, ApproxDP, Ledger, MovedMass
from sfumato.privacy.accounting import rho_within
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.site import Site
from sfumato.sensing.planning.synthetic import synthetic_site
from sfumato.sensing.release.noise_plan import NoisePlan
from sfumato.sensing.release.readings import plan, release_snapshot
from sfumato.sensing.release.windows import describe_window, parse_window, window_ledger, window_of

pytestmark = pytest.mark.unit

DAY = timedelta(days=1)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
BUDGET = ApproxDP(1, "1e-6")


@pytest.fixture(scope="module")
def site() -> Site:
    operator = heat_line(sources=20, sensors=5, diffusion_time=0.05)
    return synthetic_site("hall", operator, MovedMass("1/10", "line"))


@pytest.fixture(scope="module")
def noise(site: Site) -> NoisePlan:
    return plan(site, ZCDP("1/1000"))


def ledger(folder: Path, site: Site, moment: datetime = NOON, budget: ApproxDP = BUDGET) -> Ledger:
    return window_ledger(
        folder,
        moment,
        length=DAY,
        budget=budget,
        sensors=site.sensors,
        source=site.name,
        neighbors=site.neighbors,
    )


@pytest.mark.parametrize(("text", "minutes"), [("1m", 1), ("6h", 360), ("2d", 2880), (" 30m ", 30)])
def test_windows_are_minutes_hours_or_days(text: str, minutes: int) -> None:
    assert parse_window(text) == timedelta(minutes=minutes)


@pytest.mark.parametrize("text", ["", "0d", "1", "d", "1w", "-1d", "1.5h", "1d2h"])
def test_other_windows_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="30m, 6h, 1d"):
        parse_window(text)


def test_windows_tile_time() -> None:
    start = window_of(NOON, DAY)
    assert start == datetime(2026, 11, 16, tzinfo=UTC)
    assert window_of(start - timedelta(microseconds=1), DAY) == start - DAY
    assert window_of(start + DAY - timedelta(microseconds=1), DAY) == start
    assert describe_window(start, timedelta(hours=36)) == "within 36h from 2026-11-16T00:00Z"
    with pytest.raises(InvalidParameter, match="time zone"):
        window_of(datetime(2026, 11, 16), DAY)


def test_a_spent_window_refuses_and_the_next_one_pays(
    tmp_path: Path, site: Site, noise: NoisePlan
) -> None:
    during = describe_window(window_of(NOON, DAY), DAY)
    book = ledger(tmp_path, site)
    statement = book.statement()
    assert isinstance(noise.cost, ZCDP)
    fits = int(rho_within(1, "1e-6") / noise.cost.rho)
    for _ in range(fits):
        release_snapshot(np.zeros(5), site, noise, ledger=ledger(tmp_path, site), window=during)
    with pytest.raises(BudgetExceeded, match="nothing was released"):
        release_snapshot(np.zeros(5), site, noise, ledger=ledger(tmp_path, site), window=during)
    assert len(book.statement().entries) == fits > 10
    assert not statement.entries
    tomorrow = ledger(tmp_path, site, NOON + DAY)
    later = describe_window(window_of(NOON + DAY, DAY), DAY)
    snapshot = release_snapshot(np.zeros(5), site, noise, ledger=tomorrow, window=later)
    assert "within 1d from 2026-11-17T00:00Z" in str(snapshot.guarantee)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "20261116T0000Z-1d.ledger",
        "20261117T0000Z-1d.ledger",
    ]


def test_the_ledger_of_another_window_is_refused(
    tmp_path: Path, site: Site, noise: NoisePlan
) -> None:
    with pytest.raises(LedgerMismatch, match="nothing was charged"):
        release_snapshot(
            np.zeros(5), site, noise, ledger=ledger(tmp_path, site), window="within 1d from another"
        )
    with pytest.raises(LedgerMismatch, match="nothing was charged"):
        release_snapshot(np.zeros(5), site, noise, ledger=ledger(tmp_path, site))
    assert not ledger(tmp_path, site).statement().entries


def test_a_folder_has_windows_of_one_length(tmp_path: Path, site: Site) -> None:
    ledger(tmp_path, site)
    with pytest.raises(InvalidParameter, match=r"another length.*nothing was charged"):
        window_ledger(
            tmp_path,
            NOON,
            length=timedelta(hours=6),
            budget=BUDGET,
            sensors=site.sensors,
            source=site.name,
            neighbors=site.neighbors,
        )


@pytest.mark.parametrize("length", [timedelta(0), timedelta(seconds=90), timedelta(days=-1)])
def test_lengths_that_are_no_whole_minutes_are_refused(length: timedelta) -> None:
    with pytest.raises(InvalidParameter, match="whole minutes"):
        window_of(NOON, length)
    with pytest.raises(InvalidParameter, match="whole minutes"):
        describe_window(NOON, length)


def test_the_ends_of_time_are_refused() -> None:
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    with pytest.raises(InvalidParameter, match="years 1 to 9999"):
        window_of(early, timedelta(days=3000))


def test_a_window_keeps_its_budget(tmp_path: Path, site: Site) -> None:
    ledger(tmp_path, site)
    with pytest.raises(InvalidParameter, match="nothing was charged"):
        ledger(tmp_path, site, budget=ApproxDP(2, "1e-6"))
