"""The examples in the documentation do what they show: Python sessions, and commands with their output."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from tests.docs.test_readme import broken, ours, steps

from sfumato._registry import Registry
from sfumato.heatmap import check_ins
from sfumato.heatmap.export.formats import FORMATS
from sfumato.heatmap.methods.registry import METHODS
from sfumato.records.engines.registry import ENGINES
from sfumato.sensing.model.operators.registry import OPERATORS
from sfumato.sensing.recovery.estimators.registry import ESTIMATORS

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


class Fenced(doctest.DocTestParser):
    """Reads sessions between the fences of Markdown; a fence ends what a statement prints."""

    def parse(self, string: str, name: str = "<string>") -> list[str | doctest.Example]:
        """The examples of a page; line numbers stay those of the page."""
        return super().parse(re.sub(r"^```.*$", "", string, flags=re.MULTILINE), name)


def sessions(page: Path) -> doctest.TestResults:
    """Run all sessions of a page, one after the other, in one namespace."""
    flags = doctest.ELLIPSIS | doctest.REPORT_NDIFF
    registries: tuple[Registry[Any], ...] = (ENGINES, ESTIMATORS, FORMATS, METHODS, OPERATORS)
    before = [dict(registry.added) for registry in registries]
    try:
        return doctest.testfile(
            str(page), module_relative=False, optionflags=flags, parser=Fenced(), encoding="utf-8"
        )
    finally:
        # What a page registers is the page's: a later test in this process is to find none of it.
        for registry, added in zip(registries, before, strict=True):
            registry.added.clear()
            registry.added.update(added)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if ">>>" in page.read_text("utf-8")], ids=named
)
def test_sessions_print_what_they_show(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    results = sessions(page)
    assert results.attempted
    assert not results.failed, capsys.readouterr().out


def test_the_readmes_session_prints_what_it_shows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rng: np.random.Generator,
) -> None:
    monkeypatch.chdir(tmp_path)
    # What `sfumato heatmap city` has made before, in its console part.
    parquet.write_table(
        check_ins(500, bounds=(11.20, 43.74, 11.32, 43.81), rng=rng), "checkins.parquet"
    )
    results = sessions(ROOT / "README.md")
    assert results.attempted
    assert not results.failed, capsys.readouterr().out


@pytest.mark.parametrize(
    "page", [page for page in PAGES if steps(page.read_text("utf-8"))], ids=named
)
def test_commands_print_what_they_show(
    page: Path, warm: Path, lukewarm: Path, tmp_path: Path
) -> None:
    before = [ROOT / "README.md", *PAGES[: PAGES.index(page)]]
    known = {
        name
        for one in before
        for command, _, _ in steps(one.read_text("utf-8"))
        for name in ours(command)
    }
    faults = broken(page.read_text("utf-8"), tmp_path, warm=warm, lukewarm=lukewarm, known=known)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_tests_a_page_names_exist(page: Path) -> None:
    for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text("utf-8")):
        assert (ROOT / path).is_file(), path
        assert f"\ndef {name}(" in (ROOT / path).read_text("utf-8") or not name, f"{path}::{name}"


@pytest.mark.parametrize("session", [">>> 1 + 1\n3", ">>> 1 / 0", ">>> print(1)\n"])
def test_a_false_session_fails(
    session: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.md").write_text(f"```python\n{session}\n```\n")
    assert sessions(tmp_path / "page.md").failed == 1
    assert "Failed example" in capsys.readouterr().out


def test_what_a_page_registers_ends_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = """\
>>> from sfumato.sensing.recovery.estimators.registry import ESTIMATORS
>>> ESTIMATORS.add("of a page", object())
>>> "of a page" in ESTIMATORS.names()
True
"""
    (tmp_path / "page.md").write_text(f"```python\n{session}```\n")
    assert not sessions(tmp_path / "page.md").failed, capsys.readouterr().out
    assert "of a page" not in ESTIMATORS.names()


def test_a_fence_is_not_printed(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("Text.\n\n```python\n>>> a = 1\n>>> a + 1\n2\n```\n\nMore.\n")
    assert sessions(tmp_path / "page.md") == (0, 2)
