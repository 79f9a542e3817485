"""What was paid for and not delivered is told wherever a ledger is named, and not paid for twice in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.sense_runs import alone, entries, hall, release
from tests.cli.test_once_and_resume import club, dies_when_drawn, ended, several

from sfumato.cli.endings import INVALID, MADE_BEFORE
from sfumato.privacy import Ledger, PureDP
from sfumato.privacy.ledger.storage import store

pytestmark = [
    pytest.mark.fault,
    pytest.mark.filterwarnings("always:.*paid for and not delivered"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


def city(budget: int = 9) -> list[str]:
    rows = "\n".join(f"{number},0.5,0.5" for number in range(9))
    Path("rows.csv").write_text(f"cab,lon,lat\n{rows}\n")
    Ledger.create("a.ledger", PureDP(budget), unit="user", source="city")
    return ["heatmap", "release", "rows.csv", "--user", "cab", "--plane", "--bounds", "0,0,1,1",
            "--levels", "3", "--method", "laplace", "--ledger", "a.ledger"]  # fmt: skip


def killed(words: list[str], monkeypatch: pytest.MonkeyPatch, part: int = 1) -> None:
    with monkeypatch.context() as patch:
        dies_when_drawn(patch, part)
        ended(130, *words)


PAID = "entry 1 of a.ledger was paid for"
RESUME = "sfumato heatmap resume a.ledger"


def test_the_same_maps_are_not_paid_for_twice_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*city(), "--epsilon", "1", "--out", "m.json"]
    killed(words, monkeypatch)
    # Where it is written, and what is noted, make no other request of it.
    for more in ([], ["--dry-run"], ["--note", "again"], ["--out", "other.png"]):
        told = ended(INVALID, *words, *more).stderr
        assert (
            f"{PAID} by the same request and not delivered; finish it at no cost: {RESUME}" in told
        )
        assert told.endswith("or pay again with --anew; nothing was charged\n")
    assert len(entries("a.ledger")) == 1
    ended(0, *words, "--anew", "--quiet")
    assert len(entries("a.ledger")) == 2
    Path("m.json").unlink()
    ended(0, "heatmap", "resume", "a.ledger")
    ended(0, *words[:-1], "n.json")  # nothing is undelivered now
    assert len(entries("a.ledger")) == 3


def test_another_request_is_warned_and_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    words = city()
    killed([*words, "--epsilon", "1", "--out", "m.json"], monkeypatch)
    told = f"{PAID} and not delivered: {RESUME}"
    other = [*words, "--epsilon", "2", "--out", "n.json"]
    assert ended(0, *other, "--dry-run").stdout.splitlines()[-1] == told
    dry = json.loads(ended(0, *other, "--dry-run", "--json").stdout)["undelivered"]
    shown = json.loads(ended(0, "ledger", "show", "a.ledger", "--json").stdout)["undelivered"]
    assert dry == shown
    assert [(one["entries"], one["finish"]) for one in shown] == [([1], RESUME)]
    assert told in " ".join(ended(0, "ledger", "show", "a.ledger").stdout.split())
    assert told in ended(0, *other, "--quiet").stderr
    assert len(entries("a.ledger")) == 2


def test_who_has_spent_all_is_told_what_was_not_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*city(budget=1), "--epsilon", "1", "--out", "m.json"]
    killed(words, monkeypatch)
    assert RESUME in ended(INVALID, *words).stderr


def test_a_key_goes_on_with_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*city(), "--epsilon", "1", "--out", "m.json"]
    killed([*words, "--once", "monday"], monkeypatch)
    assert PAID in ended(INVALID, *words).stderr
    dry = ended(0, *words, "--once", "monday", "--dry-run", "--json").stdout
    assert "undelivered" not in json.loads(dry)
    ended(MADE_BEFORE, *words, "--once", "monday")
    assert len(entries("a.ledger")) == 1


def test_readings_of_the_same_times_are_not_paid_for_twice_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hall()
    several("1", "2")
    words = ["sense", *release()]
    killed(words, monkeypatch, part=2)
    told = ended(INVALID, *words).stderr
    assert "entries 1, 2 of hall.ledger were paid for by the same request" in told
    assert "sfumato sense resume hall.ledger; or pay again with --anew" in told
    assert len(entries()) == 2
    several("3")  # later readings are another request, of a device that goes on
    assert "entries 1, 2 of hall.ledger were paid for and not delivered" in ended(0, *words).stderr
    assert len(entries()) == 3


def test_blocks_are_not_paid_for_twice_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*club()[:-2], "--epsilon", "3", "--out", "b.json"]
    killed(words, monkeypatch, part=2)
    told = ended(INVALID, *words).stderr
    assert "entries 1, 2 of e.ledger were paid for by the same request" in told
    assert "sfumato graph resume e.ledger; or pay again with --anew" in told
    ended(0, *words, "--anew")
    assert len(entries("e.ledger")) == 4


def test_what_was_delivered_under_a_key_is_known_by_its_last_line() -> None:
    words = [*city(), "--epsilon", "1", "--out", "m.json", "--once", "monday"]
    ended(0, *words)
    (file,) = Path("a.ledger.d").glob("*.jsonl")
    assert store.is_delivered(file)
    whole = file.read_bytes()
    for cut in (1, len(store.DELIVERED), len(whole)):
        file.write_bytes(whole[:-cut])
        assert not store.is_delivered(file)
    file.unlink()
    assert store.is_delivered(file)
