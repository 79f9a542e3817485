"""The report of an audit: one HTML file that a privacy reviewer can read, file and repeat."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato import __version__
from sfumato.cli.audit_words import (
    LIMITS,
    PAIRS,
    allowance,
    allowed_share,
    bound_line,
    confirmed_line,
    counted,
    evidence_line,
    headline,
    input_names,
    low_bits_lines,
    meaning,
    sure,
    tested,
    witness_lines,
)

if TYPE_CHECKING:
    from sfumato.audit import SavedVerdict, Verdict, Witness
    from sfumato.audit.fixed import DeltaBand
    from sfumato.privacy import Claim
    from sfumato.report import Section

POINTS = 9
"""Epsilons of a band; each takes its share of the error that is allowed."""


def result_of(saved: SavedVerdict, lines: Sequence[str]) -> dict[str, Any]:
    """The verdict as JSON to print: everything but what only `audit replay` reads, and the words."""
    found = saved.to_json()
    del found["wealth"]
    for one in (found["witness"], (found["bound"] or {}).get("witness")):
        if one is not None:
            del one["event"]["test"]
    return {**found, "said": list(lines)}


def band_epsilons(claim: Claim) -> list[float]:
    """Where a band is looked at: from 0 to well beyond what is claimed, the claimed epsilon among them."""
    from sfumato.audit import implied

    statements = implied(claim)
    top = max(2 * statements[len(statements) // 2].epsilon, 0.2)
    return [top * number / (POINTS - 1) for number in range(POINTS)]


def write_audit_report(
    path: Path, saved: SavedVerdict, *, command: Sequence[str], budget: str, overwrite: bool
) -> None:
    """Write the report."""
    from sfumato.report import write_report

    sections = [_verdict(saved), *_evidence(saved), *_further(saved)]
    sections += [_inputs(saved.verdict), _repeat(command, budget)]
    write_report(path, f"Privacy audit of {saved.target}", sections=sections, overwrite=overwrite)


def _verdict(saved: SavedVerdict) -> Section:
    from sfumato.report import Section

    verdict = saved.verdict
    table = [
        ["asked", "answered"],
        ["claimed", f"{verdict.claim.loss}"],
        ["between neighbors", f"{verdict.claim.neighbors}"],
        ["of", saved.target],
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
    paragraphs = [headline(saved), *meaning(verdict), tested(verdict)]
    if verdict.kind == "REFUTED":
        paragraphs.append(LIMITS)
    return Section("Verdict", "\n\n".join(map(_sentence, paragraphs)), table)


def _evidence(saved: SavedVerdict) -> list[Section]:
    from sfumato.report import Section

    verdict, found = saved.verdict, list[Section]()
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
        found.append(Section("Witness", "\n\n".join(words), table, picture, description))
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
            Section("Wealth", text, picture=wealth_picture(verdict), description=description)
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
    from sfumato.audit.fixed import lower_limit, upper_limit

    level = (1 - confidence) / 4
    both = list(zip(found.hits, found.runs, strict=True))
    low = [lower_limit(hits, runs, level=level) for hits, runs in both]
    return low, [upper_limit(hits, runs, level=level) for hits, runs in both]


def _further(saved: SavedVerdict) -> list[Section]:
    from sfumato.report import Section

    found: list[Section] = []
    if saved.bound is not None:
        found.append(Section("Lower bound of epsilon", _sentence(bound_line(saved.bound))))
    if saved.band is not None:
        text = (
            "delta(epsilon) is the least delta with which the pair is (epsilon, delta)-private. It lies in "
            f"the band at all of these epsilons at once, with confidence {saved.band.confidence:g}, from "
            f"{saved.band.runs:,} runs. Where outputs are many the upper end is 1: samples of such "
            "outputs say nothing from above."
        )
        rows = zip(saved.band.epsilons, saved.band.lower, saved.band.upper, strict=True)
        table = [["epsilon", "delta at least", "delta at most"]]
        table += [[f"{e:.4g}", f"{low:.4g}", f"{high:.4g}"] for e, low, high in rows]
        description = (
            "A band that holds delta at every epsilon, with the curve that the claim allows"
        )
        picture = band_picture(saved.band, saved.verdict.claim)
        found.append(Section("DeltaBand", text, table, picture, description))
    return found


def _inputs(verdict: Verdict) -> Section:
    from sfumato.report import Section

    table = [["pair", "first input", "second input"]]
    table += [[pair.name, *input_names(pair)] for pair in verdict.pairs[:PAIRS]]
    if len(verdict.pairs) > PAIRS:
        table.append([f"and {len(verdict.pairs) - PAIRS} more", "", ""])
    text = (
        "All of them must be neighbors in the sense of the claim; the audit takes that from whoever chose "
        "them. Nothing else of any data was used."
    )
    return Section("Inputs", text, table if verdict.pairs else ())


def _repeat(command: Sequence[str], budget: str) -> Section:
    from importlib.metadata import version

    from sfumato.report import Section

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
        "verdict saved with --out holds the witness, which `sfumato audit replay` runs again on fresh runs."
    )
    return Section("How to repeat it", text, table)


def wealth_picture(verdict: Verdict) -> bytes:
    """The wealth of the bet after so many runs."""
    import numpy as np

    from sfumato.figures import draw_wealth

    path = np.asarray(verdict.wealth, dtype=np.float64).reshape(-1, 2)
    return draw_wealth(
        path[:, 0],
        path[:, 1],
        needed=1 / (1 - verdict.confidence),
        caption=f"claimed: {verdict.claim.loss}. If that is true, wealth ever reaches the line with chance "
        f"at most {1 - verdict.confidence:.3g}.",
    )


def witness_picture(found: Witness, confidence: float) -> tuple[bytes, str]:
    """Two shares with their intervals and what the claim allows, and the same in words."""
    from sfumato.figures import draw_witness

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
    from sfumato.audit import allowed_deltas, implied
    from sfumato.figures import draw_band

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
