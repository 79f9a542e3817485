"""What whispers cost, where one began, and one that was made up: in memory and in files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._types import IntArray
from sfumato.errors import InvalidInput
from sfumato.files import write_file
from sfumato.privacy import Loss
from sfumato.privacy.accounting import decode_loss, encode

if TYPE_CHECKING:
    from sfumato.sensing.whisper.answers import WhisperAnswers
    from sfumato.sensing.whisper.posterior import WhisperPosterior
    from sfumato.sensing.whisper.simulated import CascadePosterior
    from sfumato.spaces import Graph

INDEPENDENT = "independent"
IMPLAUSIBLE = 0.01


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
    def implausible(self) -> bool:
        """Whether so few or so many yes hardly ever come in whispers simulated as said."""
        return self.plausible is not None and self.plausible < IMPLAUSIBLE

    @property
    def limits(self) -> str:
        """What the probabilities rest on, and whether it did spread so."""
        from sfumato.sensing.render.whisper import limits_text

        return limits_text(self)

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


@dataclass(frozen=True, slots=True)
class WhisperCost:
    """What one answer of each node costs, and the chance with which each is flipped."""

    cost: Loss
    flipped: float

    def to_json(self) -> dict[str, Any]:
        """As `whisper release --dry-run --json` prints it."""
        return {"cost": encode(self.cost), "flipped": self.flipped}

    @staticmethod
    def from_json(data: Any) -> WhisperCost:
        """The cost that a JSON object states."""
        return WhisperCost(decode_loss(data["cost"]), float(data["flipped"]))


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedWhisper:
    """A synthetic network and who in it has heard a whisper that began at `start`; its files, if any."""

    graph: Graph
    names: tuple[str, ...]
    heard: IntArray
    start: str
    folder: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """The files; without a folder what they would hold, rows without their headers."""
        tables = self.tables()
        if self.folder is None:
            return {name: [list(row) for row in rows] for name, (_, rows) in tables.items()}
        return {name: str(self.folder / f"{name}.csv") for name in tables}

    def tables(self) -> dict[str, tuple[list[str], list[tuple[str, ...]]]]:
        """What `whisper simulate` writes: edges, answers and the start, each a header and rows."""
        words = ("yes" if bit else "no" for bit in self.heard)
        return {
            "edges": (
                ["u", "v"],
                [(self.names[u], self.names[v]) for u, v in self.graph.edges.tolist()],
            ),
            "answers": (["node", "heard"], list(zip(self.names, words, strict=True))),
            "start": (["node"], [(self.start,)]),
        }
