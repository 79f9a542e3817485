"""Devices wait as long as the shuffler answers, and no longer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.heatmap.shuffled.sessions import ADDER, SESSION, devices_of, running, small_plan

from sfumato.errors import SessionStopped
from sfumato.heatmap.shuffled import Device, Round, parse_address, send_reports, sending, shuffler
from sfumato.heatmap.shuffled.wire import POLL_SECONDS, ask

pytestmark = pytest.mark.unit
PLAN = small_plan()
ASKED = Round(1, np.arange(4)).signed(PLAN, ADDER)
WAIT, OVER = ({"state": "wait"}, b""), ({"state": "over"}, b"")
OPEN = ({"state": "open", "session": SESSION.hex()}, ASKED)
LOST = SessionStopped("the shuffler does not answer")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the shuffler answers, one after another; every answer takes as long as one is held back."""
    answers: list[Any] = []
    now = [0.0]

    def answer(_: Any, header: dict[str, Any], *__: Any, **___: Any) -> Any:
        now[0] += POLL_SECONDS
        found = ({}, b"") if header["do"] == "report" else answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(sending, "ask", answer)
    monkeypatch.setattr("sfumato.heatmap.shuffled.sending.time.monotonic", lambda: now[0])
    monkeypatch.setattr("sfumato.heatmap.shuffled.sending.time.sleep", sleep)
    return answers


def test_devices_wait_while_the_adder_opens_messages(told: list[Any]) -> None:
    """An hour of answers that there is no round yet, with a patience of ten minutes."""
    told += [WAIT, OPEN, *[WAIT] * 180, OVER]
    assert send_reports(devices_of(PLAN, 2), "127.0.0.1:1", timeout=600).rounds == 1


def test_a_broken_connection_is_tried_again(told: list[Any]) -> None:
    told += [WAIT, LOST, LOST, OPEN, LOST, OVER]
    assert send_reports(devices_of(PLAN, 1), "127.0.0.1:1", timeout=600).rounds == 1


@pytest.mark.parametrize("answers", [[LOST], [WAIT, *[LOST] * 30]])
def test_silence_ends_it(told: list[Any], answers: list[Any]) -> None:
    told += answers
    with pytest.raises(SessionStopped, match="does not answer"):
        send_reports(devices_of(PLAN, 1), "127.0.0.1:1", timeout=600)


def test_who_waits_above_a_number_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: no connection is held for it; and it hears that the map is done when it asks again."""
    monkeypatch.setattr(shuffler, "POLLERS", 0)
    monkeypatch.setattr(shuffler, "RETRY_SECONDS", 0.05)
    with running(PLAN) as address:
        at = parse_address(address)
        told, _ = ask(at, {"do": "round", "after": 0}, timeout=600)
        assert told["state"] == "wait"
        assert told["busy"]


def test_what_it_costs_is_said_before_the_first_answer(told: list[Any], tmp_path: Path) -> None:
    before = small_plan(title="another")
    old = Device(before, memory=tmp_path / "m.json")
    old.report(Round(1, np.arange(4)).signed(before, ADDER), SESSION)
    said: list[str] = []
    told += [OPEN, OVER]
    own = Device(PLAN, memory=tmp_path / "m.json")
    send_reports([own], "127.0.0.1:1", watch=said.append)
    assert said[0].startswith("the plan costs a device epsilon 4, delta 0.0")
    assert "; with plans answered before 8 and 0." in said[0]
    assert said[1] == "level 1: answered"
