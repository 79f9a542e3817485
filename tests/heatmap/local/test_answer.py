"""A device's side: one answer, paid once, the same again; known answers of the contract."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded, InvalidInput, LedgerMismatch
from sfumato.heatmap.local import (
    Answer,
    Question,
    RandomBytes,
    SubsetSelection,
    answer,
    odds_below,
    report_of,
)
from sfumato.heatmap.local.question import channel_from_json, lot
from sfumato.privacy import Ledger

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
