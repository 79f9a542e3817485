"""Results of audits, as a user gets them: an audit, a replay, a plan; each to JSON and back, and in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato import __version__
from sfumato.audit.claims import MAX_EPSILON, is_random, traits_of
from sfumato.audit.verdict import DeltaBand, Kind, LowerBound, Replay, Verdict, Witness
from sfumato.files import write_file
from sfumato.privacy import Claim


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit of one mechanism found: the verdict, which is final, and what was asked besides.

    Attributes:
        verdict: Refuted, not refuted, certified or inconclusive, with the witness.
        target: The name of what was audited.
        bound: A lower bound of epsilon on the worst pair, where it was asked for and there was time.
        band: Delta at several epsilons on the worst pair, likewise.
        total_runs: All runs made, also those after the verdict and those that measured the speed.
        diagnostics: What could not be done, one sentence each.
        version: Of sfumato.
    """

    verdict: Verdict
    target: str
    bound: LowerBound | None = None
    band: DeltaBand | None = None
    total_runs: int = 0
    diagnostics: tuple[str, ...] = ()
    version: str = __version__

    @property
    def kind(self) -> Kind:
        """The verdict in one word."""
        return self.verdict.kind

    @property
    def witness(self) -> Witness | None:
        """What `replay_verdict` runs again: the verdict's witness, else that of the bound."""
        return self.verdict.witness or (None if self.bound is None else self.bound.witness)

    @property
    def can_replay(self) -> bool:
        """Whether the witness can be run again: its event is data, not only words."""
        from sfumato.audit.codec import can_replay

        return self.witness is not None and can_replay(self.witness.event)

    def to_json(self) -> dict[str, Any]:
        """Everything, as a saved file has it; doubles are kept to the bit."""
        from sfumato.audit.codec import encode_result

        return encode_result(self)

    def summary(self) -> dict[str, Any]:
        """`to_json` without what only a replay reads: the event as data, and the path of the bet."""
        found = self.to_json()
        del found["wealth"]
        for one in (found["witness"], (found["bound"] or {}).get("witness")):
            if one is not None:
                del one["event"]["test"]
        return found

    @staticmethod
    def from_json(data: Any) -> AuditResult:
        """The result that a JSON object states; nothing is recomputed or believed.

        Raises:
            InvalidInput: If it is not a whole verdict.
        """
        from sfumato.audit.codec import decode_result

        return decode_result(data)

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save as .json, for `replay_verdict`; a new file, unless told otherwise."""
        text = json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n"
        write_file(path, text, overwrite=overwrite)

    def __str__(self) -> str:
        """The result in words, one sentence a line."""
        from sfumato.audit.render.words import result_lines

        return "\n".join(result_lines(self))

    def _repr_html_(self) -> str:
        """The result for a notebook: words, counts and pictures."""
        from sfumato.audit.render.page import sections_html
        from sfumato.audit.render.report import result_sections

        return sections_html(result_sections(self))


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What fresh runs of a saved witness say.

    Attributes:
        replay: The counts and the exact test.
        witness: The witness with these counts.
        target: What was run.
        audited: What the verdict is of.
    """

    replay: Replay
    witness: Witness
    target: str
    audited: str

    @property
    def refuted(self) -> bool:
        """Whether these runs alone refute the statement."""
        return self.replay.refuted

    def to_json(self) -> dict[str, Any]:
        """The test, the witness and the names, as JSON."""
        from sfumato.audit.codec import encode_witness

        names = {"target": self.target, "audited": self.audited}
        return {**self.replay.to_json(), **names, "witness": encode_witness(self.witness)}

    @staticmethod
    def from_json(data: Any) -> ReplayResult:
        """The result that a JSON object states.

        Raises:
            InvalidInput: If it states none.
        """
        from sfumato.audit.codec import decode_witness, whole

        with whole("replay"):
            return ReplayResult(
                Replay.from_json(data),
                decode_witness(data["witness"]),
                str(data["target"]),
                str(data["audited"]),
            )

    def __str__(self) -> str:
        """The result in words, one sentence a line."""
        from sfumato.audit.render.words import replay_lines

        return "\n".join(replay_lines(self))


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """How many runs verify a claim up to a proximity, or why none do.

    Attributes:
        claim: What is to be verified.
        outputs: How many outputs the mechanism has.
        proximity: How far off the claim may be and still be accepted.
        confidence: Of a certificate.
        weight: How much of a proximity in gamma counts as one in delta.
        min_mass: The least mass that stated laws give an output; None where none are stated.
        unverifiable: Why no number of runs verifies it; empty where some do.
        min_runs: Runs of each input without which no test decides it; 0 if unverifiable.
        enough_runs: Runs of each input with which ours does; 0 if unverifiable.
        pairs: Pairs of inputs that are tested.
        reasons: The theorems behind the two numbers.
        instead_runs: Runs in all that certify the same epsilon with a small delta, where a pure claim
            cannot be verified; else None.
    """

    claim: Claim
    outputs: int
    proximity: float
    confidence: float
    weight: float = 1.0
    min_mass: float | None = None
    unverifiable: str = ""
    min_runs: int = 0
    enough_runs: int = 0
    pairs: int = 0
    reasons: tuple[str, ...] = ()
    instead_runs: int | None = None

    @property
    def verifiable(self) -> bool:
        """Whether any number of runs verifies the claim."""
        return not self.unverifiable

    @property
    def refutable(self) -> bool:
        """Whether runs on a pair of inputs may refute the claim."""
        tested = traits_of(self.claim.loss).tested
        return not is_random(self.claim) and (tested is None or tested.epsilon <= MAX_EPSILON)

    @property
    def total_runs(self) -> int:
        """Runs that are enough, of all pairs and both inputs."""
        return 2 * self.pairs * self.enough_runs

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON."""
        from sfumato.audit.codec import encode_plan

        return encode_plan(self)

    @staticmethod
    def from_json(data: Any) -> AuditPlan:
        """The plan that a JSON object states.

        Raises:
            InvalidInput: If it states none.
        """
        from sfumato.audit.codec import decode_plan

        return decode_plan(data)

    def __str__(self) -> str:
        """The plan in words, one sentence a line."""
        from sfumato.audit.render.words import plan_lines

        return "\n".join(plan_lines(self))
