"""What an audit is asked for besides a refutation: certificates, and how much more to run for bounds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.cli.audit_options import MOST, loaded
from sfumato.cli.chance import chance
from sfumato.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    from sfumato.audit.boxes import Box, Pair
    from sfumato.audit.pairs import Inputs
    from sfumato.audit.refute import Budget
    from sfumato.audit.verdict import Verdict
    from sfumato.privacy import Claim

FEWEST = 1000
NOTICEABLE = 0.1


@dataclass(frozen=True, slots=True)
class Certificate:
    """What --certify is asked for, as the command line spells it."""

    proximity: float | None
    outputs: str
    specification: str
    data: str
    confidence: float

    def check(self, wanted: bool, claim: Claim) -> None:
        """Refuse options that do not go together, before anything is loaded."""
        from sfumato.privacy import RandomApproxDP, RandomPureDP

        if not wanted and isinstance(claim.loss, RandomPureDP | RandomApproxDP):
            raise InvalidParameter(
                "a claim with gamma is about random data: no pair refutes it; give --certify and --data; "
                "nothing was run"
            )
        if wanted and (self.proximity is None or not self.outputs):
            raise InvalidParameter(
                "--certify needs --proximity, how far off the claim may be, and --outputs, how many there "
                "are; nothing was run"
            )
        if not wanted and (self.proximity is not None or self.outputs or self.specification or self.data):
            raise InvalidParameter(
                "--proximity, --outputs, --specification and --data go with --certify; nothing was run"
            )

    def verdict(self, box: Box, claim: Claim, tried: Sequence[Pair] | Inputs, limit: Budget) -> Verdict:
        """What the testers of the thesis say."""
        from sfumato.audit.boxes import function_box
        from sfumato.audit.certify import certify

        stated = loaded(function_box, self.specification).function if self.specification else None
        source = _source(self.data) if self.data else None
        pairs = tried if isinstance(tried, Sequence) else tried.patterns()
        return certify(
            box,
            claim,
            proximity=self.proximity or 0.0,
            outputs=_outputs(self.outputs),
            pairs=pairs,
            data=source,
            specification=stated,
            rng=chance() if source else None,
            confidence=self.confidence,
            budget=None if limit.runs == MOST else limit.runs,
        )


def further_runs(box: Box, pair: Pair, limit: Budget, most: int) -> int:
    """Runs for a bound or a band: as many as the budget allows, at the speed of a few that are thrown away.

    Half of the budget's time is left for what is computed from them.
    """
    from sfumato.audit.boxes import SampleBox

    if isinstance(box, SampleBox):
        return min(most, 2 * min(len(box.first), len(box.second)))
    if limit.seconds is None:
        return min(most, limit.runs)
    size, seconds = 1, 0.0
    while seconds < NOTICEABLE and size < most:
        size *= 4
        begun = time.monotonic()
        box.run(pair.first, size)
        seconds = time.monotonic() - begun
    timely = int(limit.seconds / 2 * size / max(seconds, 1e-6))
    return min(most, limit.runs, max(FEWEST, timely))


def worst_pair(verdict: Verdict, tried: Sequence[Pair] | Inputs) -> Pair:
    """The pair to look at closer: that of the witness, or the first."""
    if verdict.witness is not None:
        return verdict.witness.pair
    if verdict.pairs:
        return verdict.pairs[0]
    return (tried if isinstance(tried, Sequence) else tried.patterns())[0]


def own_delta(verdict: Verdict) -> float:
    """The delta at which epsilon is bounded: that of the statement that was broken, or a middling one."""
    from sfumato.audit.claims import implied

    if verdict.witness is not None:
        return verdict.witness.statement.delta
    statements = implied(verdict.claim)
    return statements[len(statements) // 2].delta


def _outputs(text: str) -> int | list[Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, list) or type(found) is int:
        return found
    raise InvalidParameter(f"--outputs is a number, or a list as JSON, got {text!r}; nothing was run")


def _source(target: str) -> Callable[[Any], Pair]:
    from sfumato.audit.boxes import Pair, function_box

    draw = loaded(function_box, target).function

    def drawn(rng: Any, /) -> Pair:
        found = draw(rng)
        if isinstance(found, Pair):
            return found
        if isinstance(found, tuple) and len(found) == 2:
            return Pair(*found, "drawn")
        raise InvalidInput(f"{target} must return two inputs, got {type(found).__name__}; nothing was run")

    return drawn
