"""A whole session on loopback: charged first, one round a level, and stopped where too few devices come."""

from __future__ import annotations

import asyncio
import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.heatmap.shuffled.sessions import (
    ADDER,
    PLACE,
    SESSION,
    SHUFFLER,
    devices_of,
    running,
    small_plan,
)

from sfumato.errors import (
    BudgetExceeded,
    InvalidInput,
    InvalidParameter,
    LedgerMismatch,
    ReleasedAlready,
    SessionStopped,
)
from sfumato.heatmap.shuffled import (
    Device,
    Round,
    ShuffledResult,
    ShufflePlan,
    Shuffler,
    ShuffleSession,
    collect_shuffled,
    parse_address,
    send_reports,
    shuffled_text,
)
from sfumato.heatmap.shuffled import session as sessions
from sfumato.heatmap.shuffled.plan import TOKEN
from sfumato.heatmap.shuffled.rounds import mix
from sfumato.heatmap.shuffled.shuffler import Refused
from sfumato.heatmap.shuffled.wire import ask
from sfumato.privacy import UNITS, ApproxDP, Ledger, Shuffled

pytestmark = pytest.mark.unit

PLAN = small_plan(levels=2)


def made(folder: Path, plan: ShufflePlan = PLAN, **changed: Any) -> Ledger:
    asked: dict[str, Any] = {"model": plan.trust, "budget": ApproxDP(4, "1/5"), **changed}
    return Ledger.create(folder / "phones.ledger", unit="user", source="phones", **asked)


@dataclass
class Ran:
    result: ShuffledResult
    ledger: Ledger
    sent: Any
    folder: Path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Twenty devices, two rounds, one map."""
    folder = tmp_path_factory.mktemp("shuffled")
    ledger, sent = made(folder), []
    with running(PLAN) as address:
        devices = Thread(target=lambda: sent.append(send_reports(devices_of(PLAN, 20), address)))
        devices.start()
        result = collect_shuffled(
            PLAN, key=ADDER, shuffler=address, ledger=ledger, outputs=[folder / "map.json"]
        )
        devices.join(600)
    return Ran(result, ledger, sent[0], folder)


def test_a_map_comes_of_devices(ran: Ran) -> None:
    from sfumato.heatmap import read_heatmap
    from sfumato.heatmap.accuracy.noise_mark import EmptyMaps

    result = ran.result
    assert [one.level for one in result.rounds] == [1, 2]
    assert {one.arrived for one in result.rounds} == {20}
    assert not any(one.spoilt for one in result.rounds)
    # Twenty people in one cell, epsilon 4: the noise is of less than a person.
    assert 5 < result.map.tiles.total < 40
    assert ran.sent.rounds == 2
    assert "20 devices answered 2 rounds" in shuffled_text(ran.sent)
    assert "counts in 2 rounds of 20 to 20 devices" in shuffled_text(result)
    assert "anybody could report, and whoever did often counts as many" in shuffled_text(result)
    assert "only enrolled devices" in shuffled_text(replace(result, enrolled=True))
    saved = read_heatmap(ran.folder / "map.json")
    assert saved.guarantee == result.map.guarantee
    # Maps of nobody are simulated with the noise of the shuffled model.
    assert EmptyMaps.of(saved).heights() is not None
    Ledger(ran.ledger.path).check(result.map.receipt)


def test_the_statement_says_who_was_trusted(ran: Ran) -> None:
    said = ran.result.release.statement
    assert said.startswith("epsilon 4, delta 0.0")
    assert "shuffled model: 16 to 20 devices add their own shares of the noise" in said
    assert "not to work with whoever adds them up" in said
    loss = ran.result.map.guarantee.loss
    assert isinstance(loss, ApproxDP)
    assert (loss.epsilon, loss.delta) == PLAN.cost
    entry = ran.ledger.statement().entries[0]
    assert entry.mechanism == "shuffled/1"
    assert entry.parameters["messages"] == PLAN.messages


def test_what_is_published_is_said_in_json(ran: Ran) -> None:
    told = ran.result.to_json()["shuffled"]
    assert told["digest"] == PLAN.digest.hex()
    assert [one["cells"] for one in told["rounds"]] == [4, ran.result.rounds[1].cells]


def test_too_few_devices_stop_a_map_and_the_charge_stands(tmp_path: Path) -> None:
    ledger = made(tmp_path)
    with running(PLAN, wait=0.0) as address, pytest.raises(SessionStopped) as stopped:
        collect_shuffled(PLAN, key=ADDER, shuffler=address, ledger=ledger)
    assert "0 devices came in 0 s, a batch is 16 at least: what they sent was forgotten" in str(
        stopped.value
    )
    assert "what was charged stands" in str(stopped.value)
    assert ledger.statement().count == 1
    # The same command again is another charge for nothing.
    with pytest.raises(
        ReleasedAlready, match=r"paid for as entry 1 of .*nothing was charged again"
    ):
        collect_shuffled(PLAN, key=ADDER, shuffler=address, ledger=ledger)
    assert ledger.statement().count == 1


def test_devices_are_told_when_a_map_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[ShuffleSession] = []
    monkeypatch.setattr(ShuffleSession, "finish", lambda session: ended.append(session))
    with running(PLAN, wait=0.0) as address, pytest.raises(SessionStopped):
        collect_shuffled(PLAN, key=ADDER, shuffler=address, ledger=made(tmp_path))
    assert len(ended) == 1


def test_a_session_that_has_begun_is_noticed_before_the_charge(tmp_path: Path) -> None:
    ledger, asked = made(tmp_path), Round(1, np.arange(4)).signed(PLAN, ADDER)
    with running(PLAN, wait=0.0) as address:
        _opened(parse_address(address), asked)
        with pytest.raises(SessionStopped, match="levels of this session were asked for"):
            collect_shuffled(PLAN, key=ADDER, shuffler=address, ledger=ledger)
    assert ledger.statement().count == 0


def test_an_adder_waits_longer_than_a_round_or_charges_nothing(tmp_path: Path) -> None:
    ledger = made(tmp_path)
    with (
        running(PLAN, wait=600.0) as address,
        pytest.raises(InvalidParameter, match="`timeout` must be at least 60 s more, got 600"),
    ):
        collect_shuffled(PLAN, key=ADDER, shuffler=address, ledger=ledger, timeout=600)
    assert ledger.statement().count == 0


def test_a_shuffler_of_another_plan_is_noticed_before_the_charge(tmp_path: Path) -> None:
    ledger = made(tmp_path)
    with (
        running(replace(PLAN, title="another")) as address,
        pytest.raises(SessionStopped, match="another plan; nothing was charged"),
    ):
        collect_shuffled(PLAN, key=ADDER, shuffler=address, ledger=ledger)
    assert ledger.statement().count == 0


@pytest.mark.parametrize(
    ("changed", "key", "error", "because"),
    [
        ({"model": "central"}, ADDER, LedgerMismatch, "is of the central model"),
        ({"model": Shuffled(16)}, ADDER, LedgerMismatch, "16 at most"),
        ({"budget": ApproxDP(1, "1/5")}, ADDER, BudgetExceeded, "left"),
        ({}, SHUFFLER, InvalidInput, "not that of the plan's adder"),
    ],
)
def test_what_can_be_refused_is_refused_before_the_charge(
    changed: dict[str, Any], key: Any, error: Any, because: str, tmp_path: Path
) -> None:
    ledger = made(tmp_path, **changed)
    with pytest.raises(error, match=because):
        collect_shuffled(PLAN, key=key, shuffler="127.0.0.1:1", ledger=ledger)
    assert ledger.statement().count == 0


def test_nobody_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionStopped, match="does not answer"):
        collect_shuffled(PLAN, key=ADDER, shuffler="127.0.0.1:1", ledger=made(tmp_path))
    with pytest.raises(InvalidParameter, match="HOST:PORT"):
        parse_address("localhost")


def test_a_device_counts_once_and_only_if_enrolled() -> None:
    """Refusals are for all to see; nobody's second report, and nobody else's first."""
    plan = small_plan()
    own, stranger = Device(plan, [PLACE]), Device(plan, [PLACE])
    enrolled = frozenset([hashlib.sha256(own.token).hexdigest()])
    asked = Round(1, np.arange(4)).signed(plan, ADDER)
    with running(plan, enrolled=enrolled) as address:
        at = parse_address(address)

        def refused(report: bytes) -> str:
            with pytest.raises(SessionStopped) as problem:
                ask(at, {"do": "report"}, report, timeout=600)
            return str(problem.value)

        assert "no round is open" in refused(bytes(plan.report_bytes(4)))
        opener = Thread(target=_opened, args=(at, asked))
        opener.start()
        told, announced = ask(at, {"do": "round", "after": 0}, timeout=600)
        assert announced == asked
        session = bytes.fromhex(told["session"])
        first = own.report(asked, session)
        assert "not enrolled" in refused(stranger.report(asked, session))
        assert "not of the size" in refused(first[:-1])
        assert "not sealed for this round" in refused(bytes(len(first)))
        ask(at, {"do": "report"}, first, timeout=600)
        again = Device(plan, [PLACE], token=own.token)
        assert "has reported in this round" in refused(again.report(asked, session))
        with pytest.raises(SessionStopped, match="is open, or was asked for"):
            ask(at, {"do": "open"}, asked, timeout=600)
        for odd in (
            {"do": "report", "size": -1},
            {"do": "all"},
            {"do": "over"},
            {"do": "round", "after": math.inf},
        ):
            with pytest.raises(SessionStopped):
                ask(at, odd, b"", timeout=600)
        # Ended by whoever runs it: the opener is told nothing.
        _release(at)
        opener.join(600)


def test_a_report_that_was_recorded_is_taken_in_no_other_session() -> None:
    """A shuffler that is started again would mix recorded reports once more, without that of one device."""
    plan = small_plan()
    asked, recorded = Round(1, np.arange(4)).signed(plan, ADDER), bytes(1)
    said: list[str] = []
    device = Device(plan, [PLACE])
    for _ in range(2):
        with running(plan) as address:
            at = parse_address(address)
            opener = Thread(target=_opened, args=(at, asked))
            opener.start()
            told, _ = ask(at, {"do": "round", "after": 0}, timeout=600)
            if not said:
                recorded = device.report(asked, bytes.fromhex(told["session"]))
            try:
                ask(at, {"do": "report"}, recorded, timeout=600)
                said.append("taken")
            except SessionStopped as problem:
                said.append(str(problem))
            _release(at)
            opener.join(600)
    assert said == ["taken", "the shuffler refuses: the report is not sealed for this round"]


def _opened(at: tuple[str, int], asked: bytes) -> None:
    try:
        ask(at, {"do": "open"}, asked, timeout=600)
    except SessionStopped:
        return


def _release(at: tuple[str, int]) -> None:
    ask(at, {"do": "over"}, ADDER.sign(small_plan().digest + b"over"), timeout=600)


def test_shares_of_devices_that_are_gone_are_drawn_by_the_adder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sixteen of twenty came: noise of the four others is added, so that it has the law that is said."""
    plan, asked = small_plan(), Round(1, np.arange(4))
    reports = []
    for device in devices_of(plan, 16):
        told = SHUFFLER.unseal(
            device.report(asked.signed(plan, ADDER), SESSION), plan.digest + SESSION
        )
        assert told is not None
        reports.append(told[TOKEN + 1 :])
    missing: list[int] = []

    def answer(*_: Any, **__: Any) -> Any:
        return {"arrived": len(reports)}, mix(reports, plan.record)

    def gone(_: Any, asked: Round, many: int) -> Any:
        missing.append(many)
        return np.full(asked.cells.size, 1000)

    monkeypatch.setattr(sessions, "ask", answer)
    monkeypatch.setattr(sessions, "missing_shares", gone)
    session = ShuffleSession(plan, ADDER, ("", 0), timeout=1)
    none = np.zeros(4, dtype=np.int64)
    session.values.of_cells(1, np.arange(4))
    found = session.noisy_sum(none, plan.scales, none, plan.trust)
    assert missing == [4]
    assert np.abs(found // UNITS - [1016, 1000, 1000, 1000]).max() < 40
    reports.pop()
    session.values.of_cells(1, np.arange(4))
    with pytest.raises(SessionStopped, match="of 15 devices, which is no batch"):
        session.noisy_sum(none, plan.scales, none, plan.trust)


def test_memory_is_bounded() -> None:
    with pytest.raises(InvalidParameter, match="`memory`"):
        Shuffler(PLAN, SHUFFLER, memory=10_000, enrolled=None)
    with pytest.raises(InvalidInput, match="not that of the plan's shuffler"):
        Shuffler(PLAN, ADDER, enrolled=None)


def test_a_report_that_waited_until_its_round_was_over_is_not_kept() -> None:
    plan = small_plan()
    asked = Round(1, np.arange(4))

    async def late() -> int:
        shuffler = Shuffler(plan, SHUFFLER, enrolled=None)
        shuffler._round = asked
        report = Device(plan, [PLACE]).report(asked.signed(plan, ADDER), shuffler._session)
        async with shuffler._changed:
            taking = asyncio.create_task(shuffler._take(report, asked))
            await asyncio.sleep(0)
            shuffler._round = None
        with pytest.raises(Refused, match="the round is over"):
            await taking
        return len(shuffler._reports)

    assert asyncio.run(late()) == 0
