"""The report of an audit as one file that a privacy reviewer can read and keep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.report.page import Section, write_report

if TYPE_CHECKING:
    from sfumato.audit import AuditResult


def write_audit_report(
    path: str | Path,
    result: AuditResult,
    *,
    command: Sequence[str] = (),
    budget: str = "",
    title: str = "",
    overwrite: bool = False,
) -> None:
    """Write the report of an audit as one HTML file.

    Args:
        path: The file, .html.
        result: What `audit_claim` returned.
        command: The words that made it, where a command did.
        budget: What the audit was allowed, in words.
        title: What the report is called; after what was audited, if empty.
        overwrite: Whether a file of that name may be replaced.

    Raises:
        InvalidInput: The file could not be written.
    """
    from sfumato.audit.render import report_sections

    sections = [
        Section(one.heading, one.text, one.table, one.picture, one.description)
        for one in report_sections(result, command=command, budget=budget)
    ]
    named = title or f"Privacy audit of {result.target}"
    write_report(path, named, sections=sections, overwrite=overwrite)
