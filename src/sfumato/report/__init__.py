"""One HTML report from any results: a single file, no scripts, nothing fetched."""

from sfumato.report.page import Section, write_report

__all__ = ["Section", "write_report"]
