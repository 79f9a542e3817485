"""What an audit found, in words a privacy reviewer understands.

Where a sentence names a parameter that would help, it stands between backticks; a command line
makes its flag of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sfumato.audit.boxes.given import cut, input_names
from sfumato.audit.results import AuditPlan, AuditResult, ReplayResult
from sfumato.audit.sequential.bet import Look
from sfumato.audit.verdict import LowerBound, Replay, Verdict, Witness
from sfumato.privacy.accounting import exact, plain

if TYPE_CHECKING:
    from sfumato.audit.catalogue.self_test import SelfTest

LIMITS = (
    "An audit can refute a claim; no audit can prove one. Verifying privacy is as hard as distinguishing the "
    "inputs, which privacy is there to prevent (docs/explain/audit-limits.md)"
)
MANY_RUNS = 10**12
"""More runs than a machine makes in a year, a hundred thousand each second."""
FEW_AUDITS = 60
"""Fewer audits of each mechanism without any error are too few to show its level."""


def result_lines(result: AuditResult) -> list[str]:
    """An audit in words.

    Args:
        result: Of `audit_claim`.

    Returns:
        One sentence a line, the verdict first.
    """
    verdict = result.verdict
    lines = [headline(result)]
    if verdict.witness is not None:
        lines += witness_lines(verdict.witness)
        lines += low_bits_lines(verdict.witness)
        if verdict.confirmed is not None:
            lines.append(confirmed_line(verdict.confirmed))
    if verdict.kind == "REFUTED" and verdict.evidence is not None:
        lines.append(evidence_line(*verdict.evidence))
    lines += meaning(verdict)
    lines.append(tested(verdict))
    if result.bound is not None:
        lines.append(bound_line(result.bound))
    if result.total_runs > verdict.runs:
        lines.append(
            f"{result.total_runs:,} runs in all, with those that followed and those to see how fast"
        )
    return lines


def headline(result: AuditResult) -> str:
    """What was claimed of what, and the verdict."""
    verdict = result.verdict
    claim = f"{verdict.claim.loss} ({verdict.claim.neighbors})"
    match verdict.kind:
        case "REFUTED":
            level = (
                f" with confidence {sure(verdict.confidence)}"
                if verdict.proximity is not None
                else ""
            )
            return f"REFUTED{level}: {result.target} does not keep what is claimed, {claim}"
        case "NOT_REFUTED":
            return f"NOT REFUTED: {result.target}, claimed to be {claim}"
        case "CERTIFIED":
            # Never the claim itself: what is certified has the proximity in it.
            return (
                f"CERTIFIED with confidence {sure(verdict.confidence)}: {result.target} keeps "
                f"{verdict.certified} ({verdict.claim.neighbors}) on what was tested; claimed was "
                f"{verdict.claim.loss}, and this is it up to a proximity of {verdict.proximity:g}"
            )
        case "INCONCLUSIVE":
            return f"INCONCLUSIVE: {result.target}, claimed to be {claim}"


def meaning(verdict: Verdict) -> list[str]:
    """What a verdict says and, above all, what it does not."""
    match verdict.kind:
        case "REFUTED":
            return list(verdict.notes)
        case "NOT_REFUTED":
            caught = verdict.notes or (
                "only plain leaks are sure to have been caught; a larger `budget` would show more",
            )
            return [
                *caught,
                "this does not mean that the claim holds: other inputs, and outputs too rare to be met, were "
                "not seen. " + LIMITS,
            ]
        case "CERTIFIED":
            return [
                "had it kept less than what is certified, on what was tested, it would have been rejected "
                f"with probability {sure(verdict.confidence)}; no other input was tested. "
                + LIMITS,
                *verdict.notes,
            ]
        case "INCONCLUSIVE":
            if verdict.notes and verdict.required_runs is None:
                return list(verdict.notes)
            more = "" if verdict.proximity is not None else " more"
            runs = verdict.required_runs
            asked = "" if runs is None else f": {runs:,}{more} runs are needed"
            return [
                *verdict.notes,
                f"so few runs can neither refute nor certify{asked}; give a larger `budget`",
            ]


def witness_lines(witness: Witness) -> list[str]:
    """Which event, how often it was seen on either input, and how often it may be."""
    first, second = input_names(witness.pair)
    return [
        f"witness, pair {witness.pair.name!r}: {witness.event.words}",
        f"  on {first}: {counted(witness.hits[0], witness.runs[0])}",
        f"  on {second}: {counted(witness.hits[1], witness.runs[1])}",
        f"  the claim allows the first at most {allowance(witness)}; {witness.hits[0]:,} were seen",
    ]


def low_bits_lines(found: Witness) -> list[str]:
    """Where a leak of the low bits of floats is known, and what mends it; nothing of other witnesses."""
    if "multiple of 2**" not in found.event.words:
        return []
    return [
        "  this is about the low bits, as the leak of floating-point noise is [mironov12]. Noise on "
        "integers or a lattice mends it, as rounding the output may (docs/explain/noise.md); "
        "`round_bits` looks past it"
    ]


def allowance(found: Witness) -> str:
    """How many hits of the first input a statement allows, given those of the second.

    As a sum in full: "e^1 x 12 of 10,000, that is 32.6".
    """
    ratio, delta = f"e^{found.statement.epsilon:.4g}", found.statement.delta
    (_, others), (runs, other_runs) = found.hits, found.runs
    parts = (
        f"{ratio} x {others:,} of {other_runs:,}"
        if runs == other_runs
        else f"{ratio} x {others / other_runs:.3g}"
    )
    if delta:
        parts += f" and {delta:.3g} more of all runs"
    return f"{parts}, that is {allowed_share(found) * runs:,.1f} of {runs:,}"


def allowed_share(found: Witness, other: float | None = None) -> float:
    """The share of the first input's runs that a statement allows, given that of the second's, or another."""
    share = found.hits[1] / found.runs[1] if other is None else other
    return min(1.0, math.exp(min(found.statement.epsilon, 600.0)) * share + found.statement.delta)


def evidence_line(name: str, value: float) -> str:
    """What the evidence says of chance."""
    if name == "e-value":
        chance = f"{math.floor(value):,}" if value < 1e9 else f"{value:.1e}"
        return f"evidence: e-value {value:.4g}; were the claim true, at most 1 of {chance} audits came to that"
    return f"evidence: {name} {value:.3g}; were the claim true, so much would come with at most this chance"


def tested(verdict: Verdict) -> str:
    """On what, how often, and how often this procedure refutes what is true."""
    count = len(verdict.pairs)
    pairs = f"{count} pair{'s' * (count != 1)} of inputs, " if count else ""
    often = f"{verdict.runs:,} runs in {verdict.seconds:.3g} s"
    if verdict.kind == "CERTIFIED":
        return f"tested: {pairs}{often}"
    return (
        f"tested: {pairs}both directions, {often}; a true claim is refuted with chance at most "
        f"{1 - verdict.confidence:.3g}, over all pairs, directions and looks"
    )


def bound_line(found: LowerBound) -> str:
    """A lower bound in one sentence."""
    at = f" at delta {found.delta:.3g}" if found.delta else ""
    return (
        f"epsilon is at least {found.epsilon:.4g}{at} on the pair {found.witness.pair.name!r} (confidence "
        f"{found.confidence:g}, {found.runs:,} runs; "
        f"{counted(found.witness.hits[0], found.witness.runs[0])} against {found.witness.hits[1]:,}: "
        f"{found.witness.event.words})"
    )


def confirmed_line(found: Replay) -> str:
    """What the same event showed on fresh runs, right after the audit."""
    return (
        f"  the same event on {found.runs:,} fresh runs of either: {found.hits[0]:,} against "
        f"{found.hits[1]:,}, which would allow {found.allowed:,.1f} ({found.message}, to be compared with "
        f"{found.level:.3g})"
    )


def replay_lines(result: ReplayResult) -> list[str]:
    """What fresh runs of a witness say.

    Args:
        result: Of `replay_verdict`.

    Returns:
        One sentence a line.
    """
    found = result.replay
    again = "REFUTED again" if found.refuted else "not refuted by these runs alone"
    return [
        f"{again}: {found.message}, to be compared with {found.level:.3g}; one event, fixed "
        "before, fresh runs, an exact test",
        *witness_lines(result.witness),
    ]


def plan_lines(plan: AuditPlan) -> list[str]:
    """How many runs verify a claim, or why none do.

    Args:
        plan: Of `plan_audit`.

    Returns:
        One sentence a line.
    """
    loss = plan.claim.loss
    if not plan.verifiable:
        lines = [f"cannot be verified: {plan.unverifiable}"]
        if plan.instead_runs is not None:
            lines.append(
                f"what can be certified is less: {loss}, delta 0 up to a delta of 0.01, with "
                f"{plan.instead_runs:,} runs"
            )
        return lines
    pairs = f", on {plan.pairs:,} random pairs" if plan.pairs > 1 else ""
    return [
        f"{loss}, decided up to {plan.proximity:g} with confidence {plan.confidence:.3g}, "
        f"{plan.outputs:,} outputs:",
        f"  no test does with fewer than {_many(plan.min_runs)} runs of each input",
        f"  enough are {_many(plan.enough_runs)} runs of each input of a pair{pairs}: "
        f"{_many(plan.total_runs)} runs in all",
        *(f"  ({reason})" for reason in plan.reasons),
        LIMITS,
        *["nobody makes so many runs: it cannot be verified in practice"]
        * (plan.total_runs > MANY_RUNS),
    ]


def selftest_lines(result: SelfTest) -> list[str]:
    """How the auditor did on mechanisms of which everything is known.

    Args:
        result: Of `selftest`.

    Returns:
        A table, one line a row, then one sentence a line.
    """
    rows = result.table()
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    for one in result.catches:
        runs = f"{one.runs:,} runs"
        word = f"caught after {runs}" if one.caught else f"NOT caught in {runs}"
        lines.append(f"{one.mechanism}, broken: {word}")
    lines.append(
        f"an error rate of {result.noticed:.0%} or more in one row would have been noticed"
    )
    if not result.passed:
        return [*lines, "FAILED: do not rely on this auditor"]
    audits = min((one.audits for one in result.levels), default=0)
    few = f": nothing speaks against it, but {audits} audits are too few to say; give `audits=100`"
    return [*lines, "passed" + few * (audits < FEW_AUDITS)]


def look_line(look: Look) -> str:
    """Where a bet stands, on one line.

    Args:
        look: Of a bet.

    Returns:
        One line.
    """
    return (
        f"{look.runs:,} runs  {look.seconds:.0f} s  wealth {look.wealth:.3g} of {look.target:.4g} (most "
        f"{look.best:.3g})  {cut(look.pair)}: {cut(look.event)}"
    )


def sure(confidence: float) -> str:
    """A confidence to six digits, never more than it is."""
    return plain(exact(confidence), rounding="ROUND_FLOOR")


def counted(hits: int, runs: int) -> str:
    """So many of so many runs."""
    return f"{hits:,} of {runs:,} runs"


def _many(runs: int) -> str:
    """A number of runs, whole while somebody could make them."""
    return f"{runs:,}" if runs <= MANY_RUNS else f"about {runs:.0e}"
