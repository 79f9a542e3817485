"""How much noise hides who began a whisper, in memory and in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.files import write_file

GUARANTEE = (
    "Pufferfish: between two protected starts, all answers together change the odds by a factor of e to "
    "the loss at most, if the whisper spread as the model says; each node's own answer is protected by "
    "epsilon, however it spread"
)
PROOF = "docs/proofs/whisper-starts.md"


@dataclass(frozen=True, slots=True)
class WhisperPlan:
    """The largest epsilon for each node's answer at which starts are protected from each other.

    Attributes:
        epsilon: For each answer, of three digits: what `whisper release` is to be asked for.
        flipped: The chance with which an answer is flipped at it.
        target: The loss that was asked for.
        loss: What is proved at this epsilon, for the worst of all pairs.
        exact: Whether some answers attain it; otherwise the true loss may be less.
        reason: What the bound rests on.
        pairs: How many pairs of starts are protected from each other: all were looked at.
        worst: The pair with that loss.
        next_epsilon: The next larger epsilon, at which the target is not proved; None at the largest.
        next_loss: The loss there, of some pair.
        spread: The model of the spread that it rests on.
        within: Starts are protected from those at most so many hops away; None for any distance.
        communities: They are protected from others of their community, of so many; None for any.
        nodes: How many nodes there are.
    """

    epsilon: Fraction
    flipped: float
    target: float
    loss: float
    exact: bool
    reason: str
    pairs: int
    worst: tuple[str, str]
    next_epsilon: Fraction | None
    next_loss: float | None
    spread: str
    within: int | None
    communities: int | None
    nodes: int

    def to_json(self) -> dict[str, Any]:
        """Everything, as `whisper plan --json` prints it."""
        return {
            "epsilon": str(self.epsilon),
            "flipped": self.flipped,
            "target": self.target,
            "loss": self.loss,
            "exact": self.exact,
            "reason": self.reason,
            "pairs": self.pairs,
            "worst": list(self.worst),
            "next_epsilon": None if self.next_epsilon is None else str(self.next_epsilon),
            "next_loss": self.next_loss,
            "spread": self.spread,
            "within": self.within,
            "communities": self.communities,
            "nodes": self.nodes,
            "guarantee": GUARANTEE,
            "proof": PROOF,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> WhisperPlan:
        """The plan that a JSON object states.

        Raises:
            InvalidInput: If it is no whole plan.
        """
        try:
            beyond, loss = data["next_epsilon"], data["next_loss"]
            within, communities = data["within"], data["communities"]
            first, second = data["worst"]
            return WhisperPlan(
                Fraction(data["epsilon"]),
                float(data["flipped"]),
                float(data["target"]),
                float(data["loss"]),
                bool(data["exact"]),
                str(data["reason"]),
                int(data["pairs"]),
                (str(first), str(second)),
                None if beyond is None else Fraction(beyond),
                None if loss is None else float(loss),
                str(data["spread"]),
                None if within is None else int(within),
                None if communities is None else int(communities),
                int(data["nodes"]),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidInput(f"not a whole plan of a whisper: {problem}") from None

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save as .json."""
        write_file(path, json.dumps(self.to_json(), indent=1) + "\n", overwrite=overwrite)

    def __str__(self) -> str:
        from sfumato.sensing.render.whisper import whisper_plan_text

        return whisper_plan_text(self)
