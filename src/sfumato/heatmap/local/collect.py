"""Gather answers: from files or one by one; a device counts once, and what is no answer is counted apart."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sfumato.errors import InvalidInput
from sfumato.files import read_bytes
from sfumato.heatmap.local.device import Answer
from sfumato.heatmap.local.odds import Report
from sfumato.heatmap.local.question import Question

Verdict = Literal["counted", "repeated", "conflicting", "not asked", "other question", "malformed"]
MAX_BYTES = 2**30
# An answer that comes by itself is at most so long.
MAX_ANSWER = 2**16


@dataclass(frozen=True, slots=True)
class Tally:
    """How many answers were counted and how many were not, by reason.

    Attributes:
        counted: Answers that count, for each question in order.
        repeated: The same answer of a device once more: it counts once.
        conflicting: Another answer of a device that had answered: the first one counts.
        not_asked: Answers of devices whose lot is in the other part.
        other_question: Answers to questions that were not given here.
        malformed: Lines that are no answers.
    """

    counted: tuple[int, ...]
    repeated: int
    conflicting: int
    not_asked: int
    other_question: int
    malformed: int

    def to_json(self) -> dict[str, Any]:
        """The numbers by name."""
        return {
            "counted": list(self.counted),
            "repeated": self.repeated,
            "conflicting": self.conflicting,
            "not_asked": self.not_asked,
            "other_question": self.other_question,
            "malformed": self.malformed,
        }


@dataclass(slots=True)
class Collector:
    """Takes answers to the questions of one campaign.

    An answer counts if its question is one of these, its device is asked by it and has not answered
    any of them. It may come at any time before the map is made: one to the first question that
    comes after the second was made still counts in the map, and no longer in what is asked.
    """

    questions: Sequence[Question]
    reports: list[dict[Report, int]] = field(default_factory=list)
    _seen: dict[str, tuple[str, Report]] = field(default_factory=dict)
    _refused: dict[str, int] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= 2:
            raise InvalidInput(
                f"a campaign has one or two questions, got {len(self.questions)}; nothing was collected"
            )
        if [one.round for one in self.questions] != list(range(1, len(self.questions) + 1)):
            raise InvalidInput("questions are given in the order of rounds; nothing was collected")
        if len({(one.campaign, one.epsilon, one.bounds) for one in self.questions}) != 1:
            raise InvalidInput("both questions are of one campaign; nothing was collected")
        self.reports = [{} for _ in self.questions]
        self._numbers = {one.digest: at for at, one in enumerate(self.questions)}

    def add(
        self,
        line: str | bytes,
        *,
        keep: Callable[[], None] | None = None,
        sender: str | None = None,
    ) -> Verdict:
        """Take one answer as JSON; what became of it.

        `keep` is called before the answer counts; if it raises, it does not. An answer of another device
        than its `sender`, where that is known, is none.
        """
        verdict = self._taken(line, keep, sender)
        if verdict != "counted":
            self._refused[verdict] = self._refused.get(verdict, 0) + 1
        return verdict

    def _taken(
        self, line: str | bytes, keep: Callable[[], None] | None, sender: str | None
    ) -> Verdict:
        try:
            # In another encoding, which JSON may guess, it could not be kept as a line, and would come
            # again and again.
            text = line.decode("utf-8-sig") if isinstance(line, bytes) else line
            answer = Answer.from_json(json.loads(text))
        except (InvalidInput, ValueError, RecursionError):
            return "malformed"
        if sender is not None and answer.device != sender:
            return "malformed"
        which = self._numbers.get(answer.question)
        if which is None:
            return "other question"
        question, held = self.questions[which], self.reports[which]
        if not question.asks(answer.device):
            return "not asked"
        if answer.report not in held:
            try:
                question.channel.likely(answer.report)
            except InvalidInput:
                return "malformed"
        before = self._seen.get(answer.device)
        if before is not None:
            same = before == (answer.question, answer.report)
            return "repeated" if same else "conflicting"
        if keep is not None:
            keep()
        self._seen[answer.device] = (answer.question, answer.report)
        held[answer.report] = held.get(answer.report, 0) + 1
        return "counted"

    @property
    def tally(self) -> Tally:
        """What was counted so far."""
        return Tally(
            counted=tuple(sum(held.values()) for held in self.reports),
            repeated=self._refused.get("repeated", 0),
            conflicting=self._refused.get("conflicting", 0),
            not_asked=self._refused.get("not asked", 0),
            other_question=self._refused.get("other question", 0),
            malformed=self._refused.get("malformed", 0),
        )


@dataclass(frozen=True, slots=True)
class AnswerDesk:
    """Where answers arrive that come by themselves: one after the other, kept before they count.

    Attributes:
        collector: Counts them.
        keep: Told each answer before it counts; if it raises OSError or ValueError, it does not count.
    """

    collector: Collector
    keep: Callable[[bytes], None] = lambda _: None
    _one_by_one: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """What it is called where answers come from: the same whenever it is opened again."""
        return f"sfumato-{self.collector.questions[0].digest[:15]}"

    def take(self, line: bytes, sender: str | None = None) -> Verdict:
        """Take one answer; what became of it. `sender` is the only device it may be of, if one is known."""
        if len(line) > MAX_ANSWER:
            line = b""  # none, and counted as such
        with self._one_by_one:
            return self.collector.add(line, keep=lambda: self.keep(line), sender=sender)


def read_answers(collector: Collector, paths: Iterable[str | Path]) -> None:
    """Take the answers of files, one JSON object a line; empty lines are none.

    Args:
        collector: Takes them.
        paths: The files, read in this order.

    Raises:
        InvalidInput: A file cannot be read.

    """
    for path in paths:
        data = read_bytes(Path(path), undone="nothing was collected", max_bytes=MAX_BYTES)
        for line in data.splitlines():
            if line.strip():
                collector.add(line)
