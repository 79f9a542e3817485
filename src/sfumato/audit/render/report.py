"""The report of an audit, as sections of a page that a privacy reviewer can read, file and repeat."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from sfumato import __version__
from sfumato.audit.boxes.given import input_names
from sfumato.audit.claims import allowed_deltas, implied
from sfumato.audit.fixed.ratio import lower_limit, upper_limit
from sfumato.audit.render.page import PageSection
from sfumato.audit.render.words import (
    LIMITS,
    allowance,
    allowed_share,
    bound_line,
    confirmed_line,
    counted,
    evidence_line,
    headline,
    low_bits_lines,
    meaning,
    sure,
    tested,
    witness_lines,
)
from sfumato.audit.results import AuditResult
from sfumato.audit.verdict import DeltaBand, Verdict, Witness
from sfumato.figures import draw_band, draw_wealth, draw_witness
from sfumato.privacy import Claim

MAX_PAIRS = 12


def report_sections(
    result: AuditResult, *, command: Sequence[str] = (), budget: str = ""
) -> list[PageSection]:
    """The whole report: verdict, witness, bet, bound and band, inputs, and how to repeat it.

    Args:
        result: Of `audit_claim`.
        command: The words that made it, where a command did.
        budget: What the audit was allowed, in words.

    Returns:
        Sections with text, tables and PNG pictures.
    """
    return [*result_sections(result), _inputs(result.verdict), _repeat(command, budget)]


def result_sections(result: AuditResult) -> list[PageSection]:
    """What was found: verdict, witness, bet, bound and band."""
    return [_verdict(result), *_evidence(result), *_estimates(result)]


def _verdict(result: AuditResult) -> PageSection:
    verdict = result.verdict
    table = [
        ["asked", "answered"],
        ["claimed", f"{verdict.claim.loss}"],
        ["between neighbors", f"{verdict.claim.neighbors}"],
        ["of", result.target],
        ["verdict", verdict.kind.replace("_", " ")],
        [
            "confidence",
            f"{sure(verdict.confidence)}, over all pairs, both directions and all looks",
        ],
        ["runs", f"{verdict.runs:,} in {verdict.seconds:.3g} s"],
        ["date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())],
    ]
    if verdict.proximity is not None:
        table.append(["proximity", f"{verdict.proximity:g}"])
    if verdict.gamma is not None:
        table.append(["share of random data that may fail, as claimed", f"{verdict.gamma:g}"])
    if verdict.certified is not None:
        table.append(["certified", f"{verdict.certified}"])
    paragraphs = [headline(result), *meaning(verdict), tested(verdict)]
    if verdict.kind == "REFUTED":
        paragraphs.append(LIMITS)
    return PageSection("Verdict", "\n\n".join(map(_sentence, paragraphs)), table)


def _evidence(result: AuditResult) -> list[PageSection]:
    verdict, found = result.verdict, list[PageSection]()
    if verdict.witness is not None:
        again = verdict.confirmed
        counted_on = verdict.witness
        if again is not None:
            counted_on = replace(verdict.witness, hits=again.hits, runs=(again.runs, again.runs))
        picture, description = witness_picture(counted_on, verdict.confidence)
        words = [f"Event: {verdict.witness.event.words}.", _sentence(witness_lines(counted_on)[-1])]
        words += map(_sentence, low_bits_lines(verdict.witness))
        if again is not None:
            words.append(_sentence(confirmed_line(again)))
        if verdict.evidence is not None and verdict.kind == "REFUTED":
            words.append(_sentence(evidence_line(*verdict.evidence)))
        if verdict.wealth is not None:
            words.append(
                "The evidence is of all runs of the bet, the counts here are "
                + ("those of fresh ones." if again else "of those since this event was chosen.")
            )
        table = [["input", "runs that reach the event", "share", "between (exact, both at once)"]]
        table += _shares(counted_on, verdict.confidence)
        found.append(PageSection("Witness", "\n\n".join(words), table, picture, description))
    if verdict.wealth is not None and verdict.wealth.size:
        text = (
            "Somebody bets, run by run, that the claim is false, at odds that are fair or worse if it is "
            "true, and begins with 1. If the claim is true, they ever reach "
            f"{1 / (1 - verdict.confidence):,.4g} with chance at most {1 - verdict.confidence:.3g}, whenever "
            "one looks: that is the level of this audit."
        )
        description = (
            "The wealth of a bet against the claim, by runs, with the line at which it is refuted"
        )
        found.append(
            PageSection("Wealth", text, picture=wealth_picture(verdict), description=description)
        )
    return found


def _sentence(words: str) -> str:
    """A line of the command's as a sentence of a page."""
    text = words.strip()
    return f"{text[:1].upper()}{text[1:]}."


def _shares(found: Witness, confidence: float) -> list[list[str]]:
    low, high = _limits(found, confidence)
    names = input_names(found.pair)
    return [
        [name, counted(hits, runs), f"{hits / runs:.4g}", f"{begin:.4g} and {end:.4g}"]
        for name, hits, runs, begin, end in zip(
            names, found.hits, found.runs, low, high, strict=True
        )
    ]


def _limits(found: Witness, confidence: float) -> tuple[list[float], list[float]]:
    """Ends of intervals that hold both shares at once; a quarter of the error for each end."""
    level = (1 - confidence) / 4
    both = list(zip(found.hits, found.runs, strict=True))
    low = [lower_limit(hits, runs, level=level) for hits, runs in both]
    return low, [upper_limit(hits, runs, level=level) for hits, runs in both]


def _estimates(result: AuditResult) -> list[PageSection]:
    found: list[PageSection] = []
    if result.bound is not None:
        found.append(PageSection("Lower bound of epsilon", _sentence(bound_line(result.bound))))
    if result.band is not None:
        text = (
            "delta(epsilon) is the least delta with which the pair is (epsilon, delta)-private. It lies in "
            f"the band at all of these epsilons at once, with confidence {result.band.confidence:g}, from "
            f"{result.band.runs:,} runs. Where outputs are many the upper end is 1: samples of such "
            "outputs say nothing from above."
        )
        rows = zip(result.band.epsilons, result.band.lower, result.band.upper, strict=True)
        table = [["epsilon", "delta at least", "delta at most"]]
        table += [[f"{e:.4g}", f"{low:.4g}", f"{high:.4g}"] for e, low, high in rows]
        description = (
            "A band that holds delta at every epsilon, with the curve that the claim allows"
        )
        picture = band_picture(result.band, result.verdict.claim)
        found.append(PageSection("Band of delta", text, table, picture, description))
    return found


def _inputs(verdict: Verdict) -> PageSection:
    table = [["pair", "first input", "second input"]]
    table += [[pair.name, *input_names(pair)] for pair in verdict.pairs[:MAX_PAIRS]]
    if len(verdict.pairs) > MAX_PAIRS:
        table.append([f"and {len(verdict.pairs) - MAX_PAIRS} more", "", ""])
    text = (
        "All of them must be neighbors in the sense of the claim; the audit takes that from whoever chose "
        "them. Nothing else of any data was used."
    )
    return PageSection("Inputs", text, table if verdict.pairs else ())


def _repeat(command: Sequence[str], budget: str) -> PageSection:
    table = [
        ["what", "which"],
        ["command", shlex.join(command)],
        ["budget", budget],
        ["sfumato", __version__],
        ["python", platform.python_version()],
        *[[name, version(name)] for name in ("numpy", "scipy")],
    ]
    text = (
        "The mechanism draws anew each time, so counts will differ, and a verdict near the limit may too. A "
        "saved verdict holds the witness, which `sfumato audit replay` runs again on fresh runs."
    )
    return PageSection("How to repeat it", text, table)


def wealth_picture(verdict: Verdict) -> bytes:
    """The wealth of the bet after so many runs."""
    path = np.asarray(verdict.wealth, dtype=np.float64).reshape(-1, 2)
    return draw_wealth(
        path[:, 0],
        path[:, 1],
        required=1 / (1 - verdict.confidence),
        caption=f"claimed: {verdict.claim.loss}. If that is true, wealth ever reaches the line with chance "
        f"at most {1 - verdict.confidence:.3g}.",
    )


def witness_picture(found: Witness, confidence: float) -> tuple[bytes, str]:
    """Two shares with their intervals and what the claim allows, and the same in words."""
    both = list(zip(found.hits, found.runs, strict=True))
    low, high = _limits(found, confidence)
    inputs = input_names(found.pair)
    names = [f"{name}: {counted(*count)}" for name, count in zip(inputs, both, strict=True)]
    picture = draw_witness(
        names,
        [hits / runs for hits, runs in both],
        low=low,
        high=high,
        allowed=(allowed_share(found), allowed_share(found, low[1]), allowed_share(found, high[1])),
        allowance=f"allowed: at most {allowance(found)}",
        caption=f"Event: {found.event.words}.\nIntervals: exact, both hold with confidence {confidence:g}.",
    )
    return picture, f"{names[0]}; {names[1]}; allowed: at most {allowance(found)}"


def band_picture(band: DeltaBand, claim: Claim) -> bytes:
    """The band with what the claim allows."""
    stated = implied(claim)
    own = (stated[0].epsilon, stated[0].delta) if len(stated) == 1 else None
    return draw_band(
        band.epsilons,
        lower=band.lower,
        upper=band.upper,
        allowed=allowed_deltas(claim, band.epsilons),
        claim=own,
        caption=f"claimed: {claim.loss}. Confidence {band.confidence:g} at all epsilons together; "
        f"{band.runs:,} runs.",
    )
