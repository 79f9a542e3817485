"""What each test costs in CPU seconds, its processes included: `pytest -p tests.cpu_of_tests`.

Seconds by the clock say how busy the machine was. A test that starts something which others use later
(a fixture of its module, a compiled kernel) pays for all of them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

NAME = "cpu"
SHOWN = 60
BEFORE = pytest.StashKey[float]()


def spent() -> float:
    """CPU seconds of this process, and of those it waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Remember what was spent before the test."""
    item.stash[BEFORE] = spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Say what was spent on it, fixtures included."""
    try:
        return (yield)
    finally:
        item.user_properties.append((NAME, spent() - item.stash[BEFORE]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The files and the tests that cost most, and all of it."""
    files, tests = Counter[str](), Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                cost = dict(report.user_properties).get(NAME, 0.0)
                files[report.nodeid.partition("::")[0]] += cost
                tests[report.nodeid] += cost
    terminalreporter.section(f"{files.total():.0f} CPU seconds")
    for counted in (files, tests):
        for name, cost in counted.most_common(SHOWN):
            terminalreporter.line(f"{cost:8.1f} {name}")
