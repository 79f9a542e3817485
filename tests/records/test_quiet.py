"""Engines are silent whoever else is at work: warnings of a process are not those of a thread."""

from __future__ import annotations

import sys
import threading
import warnings

import pytest

from sfumato.records.quiet import quietly

pytestmark = pytest.mark.unit


def test_a_thread_that_ends_leaves_the_others_their_silence() -> None:
    """As two releases on the page: what one engine warned of was an unreadable file to the other."""
    warnings.simplefilter("error")
    before = list(warnings.filters)
    begun, inside, left = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert inside.wait(600)

    def second() -> str:
        inside.set()
        assert left.wait(600)
        warnings.warn("an engine's own", DeprecationWarning, stacklevel=1)
        return "read"

    def beside() -> None:
        quietly(first, "not read")
        left.set()

    other = threading.Thread(target=beside)
    other.start()
    # The other came first and goes first, in the middle of ours.
    assert begun.wait(600)
    assert quietly(second, "not read") == "read"
    other.join()
    assert list(warnings.filters) == before


def test_who_saves_filters_meanwhile_does_not_keep_the_silence() -> None:
    """As a GeoTIFF that is written while a table is read: what it put back was the silence."""
    warnings.simplefilter("error")
    before = list(warnings.filters)
    begun, go_on = threading.Event(), threading.Event()

    def read() -> None:
        begun.set()
        assert go_on.wait(600)

    other = threading.Thread(target=lambda: quietly(read, "not read"))
    other.start()
    assert begun.wait(600)
    with warnings.catch_warnings():
        go_on.set()
        other.join()
        assert list(warnings.filters) == before
    assert list(warnings.filters) == before


def test_who_saves_filters_all_the_while_makes_nothing_unreadable() -> None:
    """The list of filters may be another one between two steps: 8 of 10,000 readings failed of that."""
    warnings.simplefilter("error")
    before, ended, pace = list(warnings.filters), threading.Event(), sys.getswitchinterval()

    def save() -> None:
        while not ended.is_set():
            with warnings.catch_warnings():
                warnings.simplefilter("error")

    other = threading.Thread(target=save)
    sys.setswitchinterval(1e-6)
    try:
        other.start()
        assert all(quietly(lambda: True, "not read") for _ in range(10_000))
    finally:
        ended.set()
        other.join()
        sys.setswitchinterval(pace)
    assert list(warnings.filters) == before
