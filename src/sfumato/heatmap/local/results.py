"""What pipelines of local maps return: plans, and what was collected."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sfumato.heatmap.local.rounds import Design
from sfumato.privacy.accounting import written

if TYPE_CHECKING:
    from sfumato.heatmap.local.collect import Tally
    from sfumato.heatmap.local.maps import LocalMap
    from sfumato.heatmap.local.question import Question


@dataclass(frozen=True, slots=True)
class Expected:
    """A number that a map will have: its middle, and where nine in ten simulated maps lay, or more."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """What is asked of so many users at an epsilon, and what their map will be worth.

    Attributes:
        design: Rounds, cells and patches.
        emd: Earth mover's distance to the truth, in sides of the map, both smoothed by 0.02 sides;
            None for fewer or more than was simulated.
        similarity: The mass shared with the truth, likewise.
        hopeless_below: With fewer users at this epsilon a map is hopeless.
        target: The Similarity that was asked for, if one was.
        required_users: The least users for it at this epsilon; None where no table reaches it.
        answer_bytes: About how long an answer is.
    """

    design: Design
    emd: Expected | None
    similarity: Expected | None
    hopeless_below: int
    target: float | None
    required_users: int | None
    answer_bytes: int

    @property
    def hopeless(self) -> bool:
        """Whether there are too few users for any map."""
        return self.design.users < self.hopeless_below

    def to_json(self) -> dict[str, Any]:
        """All of it; epsilon as an exact fraction."""
        plan = asdict(self.design)
        plan["epsilon"], plan["odds"] = written(self.design.epsilon), written(self.design.odds)
        plan["first_part"] = written(self.design.first_part)
        return {
            "design": plan,
            "rounds": 2 if self.design.cells else 1,
            "emd": None if self.emd is None else asdict(self.emd),
            "similarity": None if self.similarity is None else asdict(self.similarity),
            "hopeless": self.hopeless,
            "hopeless_below": self.hopeless_below,
            "wanted": self.target,
            "required_users": self.required_users,
            "answer_bytes": self.answer_bytes,
        }


@dataclass(frozen=True, slots=True)
class Collected:
    """What was collected, and what was made of it.

    Attributes:
        tally: What was counted, and what was not.
        files: What was written.
        asked: The question of round 2, if it was asked for.
        map: The map, if it was asked for.
    """

    tally: Tally
    files: tuple[str, ...]
    asked: Question | None
    map: LocalMap | None

    def to_json(self) -> dict[str, Any]:
        """Numbers and files; the map without its tiles, which its file holds."""
        found: dict[str, Any] = {"answers": self.tally.to_json(), "files": list(self.files)}
        if self.asked is not None:
            found["question"] = {"digest": self.asked.digest, "cells": len(self.asked.cells)}
        if self.map is not None:
            found["map"] = {k: v for k, v in self.map.to_json().items() if k != "tiles"}
        return found
