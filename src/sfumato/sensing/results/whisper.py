"""Where a whisper began, in memory and in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._types import IntArray
from sfumato.errors import InvalidInput
from sfumato.files import write_file

if TYPE_CHECKING:
    from sfumato.sensing.whisper.answers import WhisperAnswers
    from sfumato.sensing.whisper.posterior import WhisperPosterior
    from sfumato.sensing.whisper.simulated import CascadePosterior

LIMITS = (
    "nodes count as independent given the start; where it ran along edges they are not, and both the "
    "community and the set of nodes are less sure than said"
)
SIMULATED = (
    "probabilities are how often it would be so of whispers simulated as said; if it spread otherwise, "
    "they may be wrong"
)
UNSTATED = (
    "how far it goes was NOT stated: averaged over several chances or weights, and probabilities can be off "
    "by more than 5 points; state `chance` or `weight` if it is known"
)
IMPLAUSIBLE = 0.01
OTHERWISE = (
    "it did NOT spread as said: so few or so many yes come in {:.1%} of whispers simulated so; do not rely "
    "on the answer"
)
INDEPENDENT = "independent"


@dataclass(frozen=True, slots=True)
class WhisperCommunity:
    """A community: its label, how many nodes it has, and the probability that it began there."""

    label: int
    nodes: int
    probability: float


@dataclass(frozen=True, slots=True)
class WhisperStart:
    """The true start of a simulation: how likely it was found, and its rank among all nodes."""

    node: str
    probability: float
    rank: int
    community: int
    in_smallest: bool


@dataclass(frozen=True, slots=True)
class WhisperResult:
    """Where a whisper began: how likely each community and each node is.

    Attributes:
        statement: What was promised for the answers.
        answered: How many nodes answered.
        communities: Every community with its probability.
        share: The probability of the set `smallest`.
        smallest: The fewest nodes that hold the start with that probability, the likeliest first.
        probabilities: The probability of every node.
        start: How the true start was found, where it was given.
        spread: The model of the spread that probabilities rest on.
        plausible: Of whispers simulated so, the share with so few or so many yes; None where none were.
        rehearsal: Whether any answers came from a ledger for rehearsals.
        answers: The answers, for pictures; not saved.
        posterior: The posterior itself; not saved.
        labels: The community of each node; not saved.
    """

    statement: str
    answered: int
    communities: tuple[WhisperCommunity, ...]
    share: float
    smallest: tuple[str, ...]
    probabilities: Mapping[str, float]
    start: WhisperStart | None = None
    rehearsal: bool = False
    spread: str = INDEPENDENT
    plausible: float | None = None
    answers: WhisperAnswers | None = None
    posterior: WhisperPosterior | CascadePosterior | None = None
    labels: IntArray | None = None

    @property
    def limits(self) -> str:
        """What the probabilities rest on."""
        if self.spread.startswith(INDEPENDENT) and not self.spread.startswith(
            "independent-cascade"
        ):
            return LIMITS
        # The name alone is that of several models; one says its numbers.
        stated = "," in self.spread
        said = f"{self.spread}: {SIMULATED}" + ("" if stated else f"; {UNSTATED}")
        if self.plausible is not None and self.plausible < IMPLAUSIBLE:
            said += f"; {OTHERWISE.format(self.plausible)}"
        return said

    def to_json(self) -> dict[str, Any]:
        """Everything, with the probability of every node."""
        data: dict[str, Any] = {
            "rehearsal": self.rehearsal,
            "statement": self.statement,
            "nodes": len(self.probabilities),
            "answers": self.answered,
            "communities": [
                {"label": one.label, "nodes": one.nodes, "probability": one.probability}
                for one in self.communities
            ],
            "share": self.share,
            "smallest": [
                {"node": node, "probability": self.probabilities[node]} for node in self.smallest
            ],
            "spread": self.spread,
            "limits": self.limits,
        }
        if self.plausible is not None:
            data["plausible"] = self.plausible
        if self.start is not None:
            one = self.start
            data["start"] = {
                "node": one.node,
                "probability": one.probability,
                "rank": one.rank,
                "community": one.community,
                "in_smallest": one.in_smallest,
            }
        return {**data, "probabilities": dict(self.probabilities)}

    def summary(self) -> dict[str, Any]:
        """What `whisper locate --json` prints: all but the probability of every node."""
        return {name: value for name, value in self.to_json().items() if name != "probabilities"}

    @staticmethod
    def from_json(data: Any) -> WhisperResult:
        """The result that a JSON object states.

        Raises:
            InvalidInput: If it is no whole result.
        """
        try:
            began = data.get("start")
            return WhisperResult(
                str(data["statement"]),
                int(data["answers"]),
                tuple(
                    WhisperCommunity(int(c["label"]), int(c["nodes"]), float(c["probability"]))
                    for c in data["communities"]
                ),
                float(data["share"]),
                tuple(str(one["node"]) for one in data["smallest"]),
                {str(node): float(p) for node, p in data["probabilities"].items()},
                None if began is None else WhisperStart(**began),
                bool(data["rehearsal"]),
                str(data.get("spread", INDEPENDENT)),  # files before there was a choice have none
                None if data.get("plausible") is None else float(data["plausible"]),
            )
        except (KeyError, AttributeError, TypeError, ValueError) as problem:
            raise InvalidInput(f"not a whole result of a whisper: {problem}") from None

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save as .json."""
        write_file(path, json.dumps(self.to_json(), indent=1) + "\n", overwrite=overwrite)

    def __str__(self) -> str:
        from sfumato.sensing.render.whisper import whisper_text

        return whisper_text(self)

    def _repr_html_(self) -> str:
        from sfumato.sensing.render.figure import draw_whisper
        from sfumato.sensing.render.words import page_of

        return page_of(str(self), None if self.posterior is None else draw_whisper(self))
