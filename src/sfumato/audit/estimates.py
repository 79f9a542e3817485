"""What may follow a verdict, in the time left: a lower bound of epsilon, a band of delta of the worst pair."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.audit.boxes.box import Box, Pair, SampleBox
from sfumato.audit.boxes.pairs import Inputs
from sfumato.audit.claims import implied
from sfumato.audit.fixed.bound import MIN_RUNS, lower_bound
from sfumato.audit.fixed.delta_profile import profile
from sfumato.audit.results import AuditResult
from sfumato.audit.sequential.bet import Look
from sfumato.audit.sequential.budget import Budget
from sfumato.audit.verdict import Verdict
from sfumato.privacy import Claim

Watch = Callable[[Look | str], None]
"""Is told what begins, as a sentence, and how a bet stands, as a Look."""
BOUND_RUNS, BAND_RUNS = 400_000, 200_000
"""Runs of a lower bound and of a band, at most."""
BAND_POINTS = 9
"""Epsilons of a band; each takes its share of the error that is allowed."""
NOTICEABLE = 0.03
TRIES = 3


@dataclass(frozen=True, slots=True)
class Pace:
    """Time for what follows a bet: the budget's once more, for all parts together."""

    box: Box
    budget: Budget
    begun: float
    rate: list[float] = field(default_factory=list)

    def runs(self, pair: Pair, max_runs: int, *, parts: int) -> int:
        """Runs of the next of so many parts, both inputs together, at the speed of a few thrown away.

        Half of a part's time is left for what is computed from its runs.
        """
        if isinstance(self.box, SampleBox):
            return min(max_runs, 2 * min(len(self.box.first), len(self.box.second)))
        if self.budget.seconds is None:
            return min(max_runs, self.budget.runs)
        left = self.budget.seconds - (time.monotonic() - self.begun)
        if left <= 0:
            return 0
        if not self.rate:
            self.rate.append(speed(self.box, pair.first, min(max_runs, self.budget.runs) // 4))
        return min(max_runs, self.budget.runs, int(left / parts / 2 * self.rate[0]))


def speed(box: Box, data: Any, max_runs: int) -> float:
    """Runs a second, of as few as tell; the best of a few times, since whatever else runs slows down some."""
    size = 1
    while True:
        seconds = math.inf
        for _ in range(TRIES):
            begun = time.monotonic()
            box.run(data, size)
            seconds = min(seconds, time.monotonic() - begun)
            if seconds < NOTICEABLE:
                break
        if seconds >= NOTICEABLE or size >= max_runs:
            return size / max(seconds, 1e-6)
        size *= 4


def with_bound(
    result: AuditResult, pace: Pace, pair: Pair, *, parts: int, watch: Watch | None
) -> AuditResult:
    """The result with a lower bound of epsilon, or with the reason why there is none."""
    runs = pace.runs(pair, BOUND_RUNS, parts=parts)
    if runs < MIN_RUNS:
        return _too_late(result, "lower bound")
    tell(watch, f"a lower bound from {runs:,} runs")
    verdict = result.verdict
    found = lower_bound(
        _unused(pace.box), pair, delta=own_delta(verdict), runs=runs, confidence=verdict.confidence
    )
    return replace(result, bound=found)


def with_band(result: AuditResult, pace: Pace, pair: Pair, *, watch: Watch | None) -> AuditResult:
    """The result with a band of delta, or with the reason why there is none."""
    runs = pace.runs(pair, BAND_RUNS, parts=1)
    if runs < MIN_RUNS:
        return _too_late(result, "band")
    tell(watch, f"a band from {runs:,} runs")
    verdict = result.verdict
    found = profile(
        _unused(pace.box),
        pair,
        epsilons=band_epsilons(verdict.claim),
        runs=runs,
        confidence=verdict.confidence,
    )
    return replace(result, band=found)


def _too_late(result: AuditResult, name: str) -> AuditResult:
    message = f"no {name}: there is no time left for {MIN_RUNS} runs; give a larger budget"
    return replace(result, diagnostics=(*result.diagnostics, message))


def _unused(box: Box) -> Box:
    """Samples are used once more: there is one pair, chosen by nobody, so what they say is valid again."""
    return replace(box, taken=[0, 0]) if isinstance(box, SampleBox) else box


def worst_pair(verdict: Verdict, inputs: Sequence[Pair] | Inputs) -> Pair:
    """The pair to look at closer: that of the witness, or the first."""
    if verdict.witness is not None:
        return verdict.witness.pair
    if verdict.pairs:
        return verdict.pairs[0]
    return (inputs if isinstance(inputs, Sequence) else inputs.patterns())[0]


def own_delta(verdict: Verdict) -> float:
    """The delta at which epsilon is bounded: that of the statement that was broken, or a middling one."""
    if verdict.witness is not None:
        return verdict.witness.statement.delta
    statements = implied(verdict.claim)
    return statements[len(statements) // 2].delta


def band_epsilons(claim: Claim) -> list[float]:
    """Where a band is looked at: from 0 to well beyond what is claimed, the claimed epsilon among them."""
    statements = implied(claim)
    top = max(2 * statements[len(statements) // 2].epsilon, 0.2)
    return [top * number / (BAND_POINTS - 1) for number in range(BAND_POINTS)]


def tell(watch: Watch | None, message: str) -> None:
    """Say what begins, to whoever watches."""
    if watch is not None:
        watch(message)
