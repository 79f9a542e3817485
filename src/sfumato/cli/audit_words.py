"""What an audit found, in words a privacy reviewer understands."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.audit import Replay, SavedVerdict, Verdict, Witness
    from sfumato.audit.boxes import Pair
    from sfumato.audit.fixed import LowerBound
    from sfumato.audit.sequential import Look

LIMITS = (
    "An audit can refute a claim; no audit can prove one. Verifying privacy is as hard as distinguishing the "
    "inputs, which privacy is there to prevent (docs/explain/audit-limits.md)"
)
FILES = "first file and second file"
"""The pair of --samples."""
LONGEST = 60
PAIRS = 12


def told(saved: SavedVerdict) -> list[str]:
    """The verdict, one sentence a line, the answer first."""
    verdict = saved.verdict
    lines = [headline(saved)]
    if verdict.witness is not None:
        lines += witness_lines(verdict.witness)
        lines += low_bits_lines(verdict.witness)
        if verdict.confirmed is not None:
            lines.append(confirmed_line(verdict.confirmed))
    if verdict.kind == "REFUTED" and verdict.evidence is not None:
        lines.append(evidence_line(*verdict.evidence))
    lines += meaning(verdict)
    lines.append(tested(verdict))
    if saved.bound is not None:
        lines.append(bound_line(saved.bound))
    return lines


def headline(saved: SavedVerdict) -> str:
    """What was claimed of what, and the verdict."""
    verdict = saved.verdict
    claim = f"{verdict.claim.loss} ({verdict.claim.neighbors})"
    match verdict.kind:
        case "REFUTED":
            level = (
                f" with confidence {sure(verdict.confidence)}"
                if verdict.proximity is not None
                else ""
            )
            return f"REFUTED{level}: {saved.target} does not keep what is claimed, {claim}"
        case "NOT_REFUTED":
            return f"NOT REFUTED: {saved.target}, claimed to be {claim}"
        case "CERTIFIED":
            # Never the claim itself: what is certified has the proximity in it.
            return (
                f"CERTIFIED with confidence {sure(verdict.confidence)}: {saved.target} keeps "
                f"{verdict.certified} ({verdict.claim.neighbors}) on what was tested; claimed was "
                f"{verdict.claim.loss}, and this is it up to a proximity of {verdict.proximity:g}"
            )
        case "INCONCLUSIVE":
            return f"INCONCLUSIVE: {saved.target}, claimed to be {claim}"


def meaning(verdict: Verdict) -> list[str]:
    """What a verdict says and, above all, what it does not."""
    match verdict.kind:
        case "REFUTED":
            return list(verdict.notes)
        case "NOT_REFUTED":
            caught = verdict.notes or (
                "only plain leaks are sure to have been caught; a larger --budget would show more",
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
            if verdict.notes and verdict.needed is None:
                return list(verdict.notes)
            more = "" if verdict.proximity is not None else " more"
            asked = "" if verdict.needed is None else f": {verdict.needed:,}{more} runs are needed"
            return [
                *verdict.notes,
                f"so few runs can neither refute nor certify{asked}; give a larger --budget",
            ]


def witness_lines(found: Witness, *, what: str = "the claim") -> list[str]:
    """Which event, how often it was seen on either input, and how often it may be."""
    first, second = input_names(found.pair)
    return [
        f"witness, pair {found.pair.name!r}: {found.event.words}",
        f"  on {first}: {counted(found.hits[0], found.runs[0])}",
        f"  on {second}: {counted(found.hits[1], found.runs[1])}",
        f"  {what} allows the first at most {allowance(found)}; {found.hits[0]:,} were seen",
    ]


def input_names(pair: Pair) -> tuple[str, str]:
    """What the two inputs are called: samples by their file, all others as they are."""
    if pair.name == FILES:
        first, second = (
            f"the {'second' if data else 'first'} file" for data in (pair.first, pair.second)
        )
        return first, second
    return shown(pair.first), shown(pair.second)


def low_bits_lines(found: Witness) -> list[str]:
    """Where a leak of the low bits of floats is known, and what mends it; nothing of other witnesses."""
    if "multiple of 2**" not in found.event.words:
        return []
    return [
        "  this is about the low bits, as the leak of floating-point noise is [mironov12]. Noise on "
        "integers or a lattice mends it, as rounding the output may (docs/explain/noise.md); --round BITS "
        "looks past it"
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
        f"{found.hits[1]:,}, which would allow {found.allowed:,.1f} ({found.said}, to be compared with "
        f"{found.level:.3g})"
    )


def replay_lines(found: Replay, witness: Witness) -> list[str]:
    """What fresh runs of a witness say."""
    again = "REFUTED again" if found.refuted else "not refuted by these runs alone"
    return [
        f"{again}: {found.said}, to be compared with {found.level:.3g}; one event, fixed "
        "before, fresh runs, an exact test",
        *witness_lines(witness),
    ]


def look_line(look: Look) -> str:
    """Where a bet stands, on one line."""
    return (
        f"{look.runs:,} runs  {look.seconds:.0f} s  wealth {look.wealth:.3g} of {look.needed:.4g} (most "
        f"{look.best:.3g})  {cut(look.pair)}: {cut(look.event)}"
    )


def sure(confidence: float) -> str:
    """A confidence to six digits, never more than it is."""
    from sfumato.privacy.accounting import exact, plain

    return plain(exact(confidence), rounding="ROUND_FLOOR")


def counted(hits: int, runs: int) -> str:
    """So many of so many runs."""
    return f"{hits:,} of {runs:,} runs"


def shown(data: Any) -> str:
    """An input on one short line."""
    plain = data.tolist() if hasattr(data, "tolist") else data
    text = repr(plain)
    if len(text) > LONGEST and isinstance(plain, list):
        # What tells two long inputs apart is often at their end: say how often a value repeats.
        groups = ((value, len(list(same))) for value, same in groupby(plain))
        text = f"[{', '.join(f'{often} x {value!r}' if often > 1 else repr(value) for value, often in groups)}]"
    return cut(text)


def cut(text: str) -> str:
    """A text, or as much of it as fits."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."
