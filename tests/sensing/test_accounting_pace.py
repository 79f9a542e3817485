"""Accounting at the pace of sensors: a ledger is read once for all releases, and says what ran out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded
from sfumato.privacy import ZCDP, ApproxDP, Ledger
from sfumato.privacy.ledger import LedgerStatement, verify_ledger
from sfumato.sensing import describe_site, heat_line, open_ledger, release_readings
from sfumato.sensing.pipeline import check_recovery, recover_sources
from sfumato.sensing.release import Readings

pytestmark = pytest.mark.unit

LINE = heat_line(sources=20, sensors=4, diffusion_time=0.02)
HALL = describe_site("hall", operator=LINE, radius="1/10", unit="mass", per_source=1).site
VALUES = dict(zip(HALL.sensors.names, LINE.columns([7])[:, 0].tolist(), strict=True))


@pytest.fixture
def read_times(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The ledgers whose statements were read, once for each time."""
    found: list[Path] = []
    usual = Ledger.statement

    def counted(ledger: Ledger) -> LedgerStatement:
        found.append(ledger.path)
        return usual(ledger)

    monkeypatch.setattr(Ledger, "statement", counted)
    return found


def released(folder: Path, rounds: int) -> Readings:
    book = open_ledger(HALL, folder / "hall.ledger", ZCDP(1000)).ledger
    several = [(str(number), VALUES) for number in range(rounds)]
    return release_readings(several, HALL, ledger=book, loss=ZCDP(10)).readings


def test_many_releases_are_checked_in_one_pass(tmp_path: Path, read_times: list[Path]) -> None:
    noisy = released(tmp_path, 12)
    found = recover_sources(noisy, average=True, estimator="least", max_mass=2)
    read_times.clear()
    assert check_recovery(found, readings=noisy, ledgers=[tmp_path / "hall.ledger"]).paid
    assert read_times == [tmp_path / "hall.ledger"]
    read_times.clear()
    releases = [(f"{one.time}.json", [one.release]) for one in noisy.snapshots]
    assert verify_ledger(tmp_path / "hall.ledger", releases).receipts == 12
    assert read_times == [tmp_path / "hall.ledger"]


@pytest.mark.parametrize(
    ("budget", "asked", "first"),
    [
        (ApproxDP(100, "2e-6"), ApproxDP(1, "1e-6"), "enough for 2: delta runs out first in "),
        (ApproxDP(2, "1e-2"), ApproxDP(1, "1e-6"), "enough for 2: epsilon runs out first in "),
        (ZCDP(2), ZCDP(1), "rho 2 left, enough for 2 in "),
    ],
)
def test_a_refusal_of_several_readings_names_what_ran_out(
    tmp_path: Path, budget: ApproxDP | ZCDP, asked: ApproxDP | ZCDP, first: str
) -> None:
    book = open_ledger(HALL, tmp_path / "hall.ledger", budget).ledger
    with pytest.raises(BudgetExceeded) as refused:
        release_readings([(t, VALUES) for t in "abc"], HALL, ledger=book, loss=asked)
    assert first in str(refused.value)
    assert not book.statement().entries
