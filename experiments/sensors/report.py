"""Run all experiments; write draws, points, findings, pictures, report.html and, if asked, the docs page.

python -m experiments.sensors --out FOLDER [--quick] [--page FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.sensors import coverage, delta, examples, many, network, noisy, private
from experiments.sensors.claims import Finding, Verdict, as_json, decide, read_claims, verdicts
from experiments.sensors.points import Part, markdown, write_rows

from sfumato.report import Section, write_report

PARTS: tuple[Callable[..., Part], ...] = (
    coverage.run, examples.run, noisy.run, delta.run, private.run, many.run, network.run,
)  # fmt: skip
FAILED = 0.005
"""The share of recoveries of a panel that may end without a proven answer."""
TITLE = "The sensor experiments again"
HEAD = f"""# {TITLE}

The figures of [gilbert17], [gilbert18], [gilbertheat17] and Part III of [mcmillan18], run with sfumato.
This page is made by

```
python -m experiments.sensors --out demo/sensors --page docs/explain/sensor-experiments.md
```

in some minutes; pictures, every draw as CSV and the same in one HTML file are in its folder.

`papers` is σ = 2 ln(1.25/δ) Δ/ε and the radius σ √m, `ours` the smallest σ there is [balle18, thm. 8] and the
default radius of `sfumato.sensing.recover`; `exact noise, papers' radius` is between them. μ = 1/2, so that
T = t/2. EMD is that of vectors scaled to mass 1, on [0, 1]. Sources and noise come from SHA-256 of what they
are for, the same for all methods. Noise is numpy's: these are simulations, and protect nobody.

**Draws without an answer.** Where no sources in the box explain the readings (`infeasible`), or no sources at
all do (`zero`), there is no vector to scale. The papers do not say what they did. Means here are of draws
with an answer, and the share of these is in brackets; ± is half of a 95 % interval. In comparisons that say
so, a draw without an answer counts as mass spread evenly, which is what can be said without readings.

**Verdicts.** A claim holds if 95 % intervals lie where it says, does not hold if one lies elsewhere, and is
undecided otherwise. Points that share sources and noise are compared draw by draw, on draws that both
answered. Intervals of slopes come from drawing the trials again 2,000 times. A bound O(.) that grows faster
than what is measured is kept, and *not attained*. With some sixty claims at 95 %, one or two may be decided
wrongly.

**Left open by our copies of the papers, and chosen here**: the values on all axes, the sources of Figures 1
and 2a, which of σ and ε Figure 5 uses where and what "enough sensors" are, the panels of Figure 6 but for m,
the number and sizes of communities.
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run, write, print; fail if a claim comes out otherwise than expected or the solver fails too often."""
    parser = argparse.ArgumentParser(
        description="The papers' experiments on private sensors", prog="sensors"
    )
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
    parser.add_argument(
        "--out", type=Path, default=Path("demo/sensors"), help="folder for what is made"
    )
    parser.add_argument("--page", type=Path, help="the page of the docs to write")
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    done: list[Part] = []
    for run in PARTS:
        begin = time.monotonic()
        done.append(run(quick=given.quick))
        print(f"{done[-1].name}: {time.monotonic() - begin:.1f} s")
        print(f"{done[-1].name}: not proven: {told(done[-1])}")
    findings = conclude(given.out, done, quick=given.quick)
    if given.page is not None:
        given.page.write_text(page(done, findings), encoding="utf-8")
    surprises = [finding for finding in findings if not finding.expected(quick=given.quick)]
    for finding in surprises:
        claim = finding.claim
        print(f"SURPRISE: {claim.name}: {finding.verdict}, not {claim.verdict}: {finding.measured}")
    unproven = [panel for part in done for panel in part.failures() if panel[1] > FAILED * panel[2]]
    for name, failed, tried in unproven:
        print(f"SOLVER: {failed} of {tried} recoveries of {name} ended without a proven answer")
    if surprises or unproven:
        raise SystemExit(1)


def told(part: Part) -> str:
    """Recoveries that ended without a proven answer, panel by panel."""
    panels = [f"{failed} of {tried} of {name}" for name, failed, tried in part.failures()]
    return ", ".join(panels) or "nothing was to be recovered"


def conclude(out: Path, parts: Sequence[Part], *, quick: bool) -> list[Finding]:
    """Decide all claims and write everything that was found."""
    points = [point for part in parts for point in part.points]
    draws = [draw for part in parts for draw in part.draws]
    findings = [decide(claim, points, draws) for claim in read_claims(quick=quick)]
    write_rows(out / "points.csv", points)
    write_rows(out / "draws.csv", draws)
    (out / "findings.json").write_text(
        json.dumps(as_json(findings), indent=1) + "\n", encoding="utf-8"
    )
    for part in parts:
        for picture in part.pictures:
            (out / f"{picture.name}.png").write_bytes(picture.png)
    write_report(out / "report.html", TITLE, sections=sections(parts, findings))
    return findings


def about(part: Part, findings: Sequence[Finding]) -> list[Finding]:
    """The findings on figures of a part."""
    figures = {point.figure for point in part.points}
    return [finding for finding in findings if finding.claim.figure in figures]


def sections(parts: Sequence[Part], findings: Sequence[Finding]) -> list[Section]:
    """The report: each part with its pictures, tables and claims."""
    out: list[Section] = []
    for part in parts:
        out.append(Section(part.heading, part.text))
        out += [
            Section(picture.description, "", picture=picture.png, description=picture.description)
            for picture in part.pictures
        ]
        out += [Section(title or "Numbers", "", table=rows) for title, rows in part.tables]
        if some := about(part, findings):
            plain = [[cell.replace("**", "") for cell in row] for row in verdicts(some)]
            out.append(Section("What the papers say", "", table=plain))
    return out


def listed(findings: Sequence[Finding], verdict: Verdict, *, ours: bool = False) -> str:
    """Sentences of the papers, or of ours, with one verdict and the numbers that decided."""
    some = [
        f"- {claim.text} ({claim.where}): {finding.measured}.{f' {claim.note}.' if claim.note else ''}"
        for finding in findings
        if finding.verdict == verdict and ((claim := finding.claim).where == "ours") == ours
    ]
    return "\n".join(some) or "None."


def unsettled(parts: Sequence[Part]) -> str:
    """How many recoveries had no proven answer, over all panels."""
    panels = [panel for part in parts for panel in part.failures()]
    failed, tried = sum(panel[1] for panel in panels), sum(panel[2] for panel in panels)
    said = f"Of {tried:,} recoveries {failed} ended without a proven answer"
    where = [f"{count} of {total} of {name}" for name, count, total in panels if count]
    return f"{said}: {', '.join(where)}." if where else f"{said}."


def page(parts: Sequence[Part], findings: Sequence[Finding]) -> str:
    """The page of the docs: words, tables and claims, no pictures."""
    out = [
        HEAD.rstrip(),
        unsettled(parts),
        *("## Where the papers and this run disagree", listed(findings, "does not hold")),
        *("## Bounds that are kept and not attained", listed(findings, "not attained")),
        *("## Undecided", listed(findings, "undecided")),
        *("## Where ours is not better", listed(findings, "does not hold", ours=True)),
    ]
    for part in parts:
        out += [f"## {part.heading}", part.text]
        for title, rows in part.tables:
            out += ([f"### {title}"] if title else []) + [markdown(rows)]
        if some := about(part, findings):
            out += [f"### What the papers say of it: {part.name}", markdown(verdicts(some))]
    return "\n\n".join(out) + "\n"
