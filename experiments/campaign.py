"""Run the experiments of one part of the thesis: points, findings, pictures and report.html."""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.sensors.claims import Claim, Finding, as_json, decide, verdicts
from experiments.sensors.points import Part, write_rows

from sfumato.report import Section, write_report


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is run, and under which name; its claims are in experiments/NAME/expected.toml."""

    name: str
    title: str
    about: str
    parts: tuple[Callable[..., Part], ...]

    def main(self, argv: Sequence[str] | None = None) -> None:
        """Run, write, print, and fail when a claim does not come out as expected.toml says."""
        parser = argparse.ArgumentParser(description=self.about, prog=self.name)
        parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
        out = Path("demo") / self.name
        parser.add_argument("--out", type=Path, default=out, help="folder for what is made")
        given = parser.parse_args(argv)
        given.out.mkdir(parents=True, exist_ok=True)
        done: list[Part] = []
        for run in self.parts:
            begin = time.monotonic()
            done.append(run(quick=given.quick))
            print(f"{done[-1].name}: {time.monotonic() - begin:.1f} s")
        findings = self.conclude(given.out, done, claims=self.claims(quick=given.quick))
        surprises = [finding for finding in findings if not finding.expected(quick=given.quick)]
        for finding in surprises:
            claim = finding.claim
            print(
                f"SURPRISE: {claim.name}: {finding.verdict}, not {claim.verdict}: {finding.measured}"
            )
        if surprises:
            raise SystemExit(1)

    def claims(self, *, quick: bool) -> list[Claim]:
        """All claims of expected.toml; a quick run leaves out those marked `full`."""
        text = (Path(__file__).parent / self.name / "expected.toml").read_text("utf-8")
        return [
            Claim(**{"metric": "value", **_fields(table)})
            for table in tomllib.loads(text)["claim"]
            if not (quick and table.get("full", False))
        ]

    def conclude(
        self, out: Path, parts: Sequence[Part], *, claims: Sequence[Claim]
    ) -> list[Finding]:
        """Decide the claims and write everything that was found."""
        points = [point for part in parts for point in part.points]
        findings = [decide(claim, points) for claim in claims]
        write_rows(out / "points.csv", points)
        (out / "findings.json").write_text(
            json.dumps(as_json(findings), indent=1) + "\n", encoding="utf-8"
        )
        sections: list[Section] = []
        for part in parts:
            sections.append(Section(part.heading, part.text))
            for picture in part.pictures:
                (out / f"{picture.name}.png").write_bytes(picture.png)
                sections.append(
                    Section(
                        picture.description,
                        "",
                        picture=picture.png,
                        description=picture.description,
                    )
                )
            sections += [Section(title or "Numbers", "", table=rows) for title, rows in part.tables]
        plain = [[cell.replace("**", "") for cell in row] for row in verdicts(findings)]
        sections.append(Section("What the thesis says, and what we say", "", table=plain))
        write_report(out / "report.html", self.title, sections=sections)
        return findings


def _fields(table: dict[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in table.items()
        if key != "full"
    }
