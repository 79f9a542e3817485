"""Run all graphon experiments; write points, findings, pictures and report.html.

python -m experiments.graphon --out FOLDER [--quick]
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.graphon import distances, errors, places, private, sources
from experiments.sensors.claims import Claim, Finding, as_json, decide, verdicts
from experiments.sensors.points import Part, write_rows

from sfumato.report import Section, write_report

PARTS: tuple[Callable[..., Part], ...] = (distances.run, errors.run, places.run, private.run, sources.run)
TITLE = "Block graphons: Part II again"


def main(argv: Sequence[str] | None = None) -> None:
    """Run, write, print, and fail when a claim does not come out as expected.toml says."""
    parser = argparse.ArgumentParser(description="The distances and limits of Part II", prog="graphon")
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
    parser.add_argument("--out", type=Path, default=Path("demo/graphon"), help="folder for what is made")
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    done: list[Part] = []
    for run in PARTS:
        begin = time.monotonic()
        done.append(run(quick=given.quick))
        print(f"{done[-1].name}: {time.monotonic() - begin:.1f} s")
    findings = conclude(given.out, done, quick=given.quick)
    surprises = [finding for finding in findings if not finding.expected(quick=given.quick)]
    for finding in surprises:
        claim = finding.claim
        print(f"SURPRISE: {claim.name}: {finding.verdict}, not {claim.verdict}: {finding.measured}")
    if surprises:
        raise SystemExit(1)


def read_claims(*, quick: bool) -> list[Claim]:
    """All claims of expected.toml; a quick run leaves out those marked `full`."""
    tables = tomllib.loads((Path(__file__).parent / "expected.toml").read_text("utf-8"))["claim"]
    return [
        Claim(**{"metric": "value", **_fields(table)})
        for table in tables
        if not (quick and table.get("full", False))
    ]


def _fields(table: dict[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in table.items()
        if key != "full"
    }


def conclude(out: Path, parts: Sequence[Part], *, quick: bool) -> list[Finding]:
    """Decide all claims and write everything that was found."""
    points = [point for part in parts for point in part.points]
    findings = [decide(claim, points) for claim in read_claims(quick=quick)]
    write_rows(out / "points.csv", points)
    (out / "findings.json").write_text(json.dumps(as_json(findings), indent=1) + "\n", encoding="utf-8")
    sections: list[Section] = []
    for part in parts:
        sections.append(Section(part.heading, part.text))
        for picture in part.pictures:
            (out / f"{picture.name}.png").write_bytes(picture.png)
            sections.append(
                Section(picture.description, "", picture=picture.png, description=picture.description)
            )
        sections += [Section(title or "Numbers", "", table=rows) for title, rows in part.tables]
    plain = [[cell.replace("**", "") for cell in row] for row in verdicts(findings)]
    sections.append(Section("What the thesis says, and what we say", "", table=plain))
    write_report(out / "report.html", TITLE, sections=sections)
    return findings
