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
    InvalidParameter,
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
    read_question,
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


def test_an_answer_costs_no_less_than_its_channel_tells() -> None:
    LocalAnswer(SubsetSelection(4, 1, odds_below(1)), Fraction(1))
    with pytest.raises(InvalidParameter, match="more than it pays for"):
        LocalAnswer(SubsetSelection(4, 1, odds_below(1)), Fraction(999, 1000))


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


def test_a_device_has_a_limit_for_one_question_and_a_ledger_keeps_its_budget(
    tmp_path: Path,
) -> None:
    book = tmp_path / "me.ledger"
    with pytest.raises(InvalidInput, match="costs 1; nothing was charged"):
        answer(asked(), [], device="a", ledger=book, budget=3, at_most="0.9")
    assert not book.exists()
    answer(asked(), [], device="a", ledger=book, budget=3, at_most=1)
    with pytest.raises(LedgerMismatch, match="keeps it"):
        answer(asked("summer"), [], device="a", ledger=book, budget=4)
    assert Ledger(book).statement().spent.epsilon == 1


def test_masses_of_one_cell_stay_within_what_the_ledger_is_told(tmp_path: Path) -> None:
    heavy = [(0.5, 0.5, device.MAX_MASS - 1), (0.6, 0.6, 2)]
    with pytest.raises(InvalidInput, match="one cell add up"):
        answer(asked(), heavy, device="a", ledger=tmp_path / "b", budget=1)
    assert not (tmp_path / "b").exists()


def changed(**parts: object) -> dict[str, object]:
    return {**asked().to_json(), **parts}


@pytest.mark.parametrize(
    "data",
    [
        changed(epsilon="1e999999999"),
        changed(epsilon="9" * 10**6),
        changed(part=["0", "1e999999999"]),
        changed(cells=[[10**9, 0], [1, 1], [1, 2], [1, 3]]),
        changed(cells=[[-(10**9), 0], [1, 1], [1, 2], [1, 3]]),
        changed(cells=[[0, 0]]),
        changed(cells=[[1, 0], [2, 0], [1, 2], [1, 3]]),
        changed(cells=[[1, 0], [1, 0], [1, 2], [1, 3]]),
        changed(bounds=[-1e308, 0, 1e308, 1]),
        changed(bounds=[0, -1e308, 1, 1e308]),
        changed(campaign=""),
        changed(campaign="a\nb"),
        changed(campaign="a" * 10**6),
        changed(channel={"kind": "k-ary-response", "cells": 4, "odds": "1e999999999"}),
    ],
)
def test_a_question_that_is_none_is_refused_before_any_work(data: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as refused:
        Question.from_json(data)
    assert "digest" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_cells_that_overlap_and_leave_a_hole_are_no_map() -> None:
    """Their areas add up to 1: two are the same place at two levels, and one place has none."""
    cells = [(1, 0), *((2, code) for code in range(4)), (1, 2), (1, 3)]
    channel = SubsetSelection(7, 1, Fraction(2))
    with pytest.raises(InvalidInput, match="cover the map once"):
        Question(
            "c", 1, 9, Fraction(1), (0, 0, 1, 1), tuple(cells), (Fraction(0), Fraction(1)), channel
        )


def test_a_question_file_has_a_size(tmp_path: Path) -> None:
    with (tmp_path / "q.json").open("wb") as file:
        file.truncate(2**25 + 1)
    with pytest.raises(InvalidInput, match="at most"):
        read_question(tmp_path / "q.json")


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
