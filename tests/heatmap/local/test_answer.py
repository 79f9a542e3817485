"""A device's side: one answer, paid once, the same again; known answers of the contract."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Never

import pytest

from sfumato._types import IntArray
from sfumato.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerBusy,
    LedgerMismatch,
)
from sfumato.heatmap.local import (
    Answer,
    LocalAnswer,
    Question,
    RandomBytes,
    SubsetSelection,
    answer,
    device,
    odds_below,
    report_of,
)
from sfumato.heatmap.local.question import channel_from_json, lot
from sfumato.privacy import Ledger, Noise

pytestmark = pytest.mark.unit

CONTRACT = Path(__file__).parents[3] / "contracts" / "local-answers-v1.json"
LEVEL_1 = tuple((1, code) for code in range(4))


def asked(campaign: str = "spring", epsilon: str = "1") -> Question:
    channel = SubsetSelection(4, 1, odds_below(epsilon))
    whole = (Fraction(0), Fraction(1))
    return Question(campaign, 1, 100, Fraction(epsilon), (0, 0, 2, 2), LEVEL_1, whole, channel)


def test_the_same_question_gets_the_same_answer_and_is_paid_once(tmp_path: Path) -> None:
    book = tmp_path / "me.ledger"
    first = answer(asked(), [(0.5, 0.5, 1)], device="a", ledger=book, budget="1.5")
    left = Ledger(book).statement().left
    for _ in range(5):
        again = answer(asked(), [(1.5, 1.5, 1)], device="a", ledger=book)
        assert again.report == first.report  # it is given again, not drawn again
        assert again.again
    assert Ledger(book).statement().left == left
    with pytest.raises(LedgerMismatch):
        answer(asked(epsilon="0.5"), [(0.5, 0.5, 1)], device="a", ledger=book)
    with pytest.raises(BudgetExceeded):
        answer(asked("summer"), [(0.5, 0.5, 1)], device="a", ledger=book)
    assert Answer.from_json(first.to_json()) == first


class Killed(BaseException):
    """What ends a process while it draws."""


def test_an_answer_that_was_paid_and_never_drawn_is_drawn_at_no_further_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tmp_path / "me.ledger"

    def killed(*_: object) -> Never:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(LocalAnswer, "sample", killed)
        for _ in range(2):  # a draw of what was paid for may be killed as well
            with pytest.raises(Killed):
                answer(asked(), [(0.5, 0.5, 1)], device="a", ledger=book, budget=1)
    drawn = answer(asked(), [(0.5, 0.5, 1)], device="a", ledger=book)
    assert not drawn.again
    assert answer(asked(), [], device="a", ledger=book) == replace(drawn, again=True)
    assert Ledger(book).statement().spent.epsilon == 1


def test_an_answer_that_another_process_draws_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again from within the draw: busy for as long as it lasts, then the answer that was drawn."""
    book, sample = tmp_path / "me.ledger", LocalAnswer.sample
    monkeypatch.setattr(device, "TRIES", 3)
    monkeypatch.setattr(device, "PAUSE", 0.001)

    def slow(self: LocalAnswer, values: IntArray, noise: Noise) -> IntArray:
        with pytest.raises(LedgerBusy, match="being drawn by another process"):
            answer(asked(), [], device="a", ledger=book)
        return sample(self, values, noise)

    with monkeypatch.context() as patched:
        patched.setattr(LocalAnswer, "sample", slow)
        found = answer(asked(), [(0.5, 0.5, 1)], device="a", ledger=book, budget=1)
    assert answer(asked(), [], device="a", ledger=book).report == found.report


def test_two_processes_that_pay_at_once_pay_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tmp_path / "me.ledger"
    first = answer(asked(), [(0.5, 0.5, 1)], device="a", ledger=book, budget=1)
    # The other one looked before the charge.
    monkeypatch.setattr(Ledger, "made_once", lambda *_: None)
    assert answer(asked(), [], device="a", ledger=book) == replace(first, again=True)


def test_a_channel_of_more_reports_than_integers_hold_is_none() -> None:
    for wide in (
        {"kind": "disk", "outputs": 2**70, "near": [[0], [1]], "odds": "2"},
        {"kind": "local-hashing", "cells": 4, "buckets": 2, "functions": 2**70, "odds": "2"},
    ):
        with pytest.raises(InvalidInput, match=str(2**20)):
            channel_from_json(wide)


def test_a_promise_names_the_local_model_and_the_replaced_user(tmp_path: Path) -> None:
    answer(asked(), [], device="a", ledger=tmp_path / "b.ledger", budget=2)
    said = Ledger(tmp_path / "b.ledger").statement()
    assert said.header.model == "local"
    assert said.entries[0].mechanism.startswith("local-answer/1")


def test_a_place_is_drawn_by_mass_and_none_is_any_cell() -> None:
    class First:
        def __init__(self, drawn: int) -> None:
            self.drawn = iter([drawn, 0])

        def uniform(self, below: int, size: int) -> list[int]:
            return [next(self.drawn) % below for _ in range(size)]

    channel = SubsetSelection(4, 1, Fraction(3))
    cells = [report_of(channel, [0, 2, 1, 0], First(drawn))[0] for drawn in range(3)]
    assert cells == [1, 1, 2]
    assert [report_of(channel, [0] * 4, First(drawn))[0] for drawn in range(4)] == [0, 1, 2, 3]


def test_nothing_is_charged_for_what_is_no_answer(tmp_path: Path) -> None:
    book = tmp_path / "me.ledger"
    part = (Fraction(0), Fraction(1, 2))
    half = Question("c", 1, 9, Fraction(1), (0, 0, 1, 1), LEVEL_1, part, asked().channel)
    late = next(name for name in "abcdefgh" if lot("c", name) >= Fraction(1, 2))
    with pytest.raises(InvalidInput, match="does not ask"):
        answer(half, [], device=late, ledger=book, budget=1)
    with pytest.raises(InvalidInput, match="whole number"):
        answer(asked(), [(0.1, 0.1, 0)], device="a", ledger=book, budget=1)
    with pytest.raises(InvalidInput, match="name of a device"):
        answer(asked(), [], device="a\nb", ledger=book, budget=1)
    assert not book.exists()
    with pytest.raises(InvalidInput, match="more than it says"):
        Question.from_json({**asked().to_json(), "epsilon": "1/2"})


def test_known_answers_are_given() -> None:
    contract = json.loads(CONTRACT.read_text(encoding="utf-8"))
    assert {one["channel"]["kind"] for one in contract["answers"]} == {"subset-selection", "disk"}
    for one in contract["answers"]:
        raw = iter(bytes.fromhex(one["bytes"]))
        channel = channel_from_json(one["channel"])
        noise = RandomBytes(lambda size: bytes(next(raw) for _ in range(size)))  # noqa: B023
        assert list(report_of(channel, one["masses"], noise)) == one["report"]
    for one in contract["cells"]:
        question = Question.from_json(contract["questions"][one["question"]])
        assert question.cell_of(*one["place"]) == one["cell"]
    for one in contract["lots"]:
        assert lot(one["campaign"], one["device"]) == Fraction(one["lot"])
