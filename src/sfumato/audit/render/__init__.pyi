from .page import PageSection
from .report import report_sections
from .words import (
    LIMITS,
    MANY_RUNS,
    look_line,
    plan_lines,
    replay_lines,
    result_lines,
    selftest_lines,
)

__all__ = [
    "LIMITS",
    "MANY_RUNS",
    "PageSection",
    "look_line",
    "plan_lines",
    "replay_lines",
    "report_sections",
    "result_lines",
    "selftest_lines",
]
