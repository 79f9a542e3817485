"""What workers make of source is what an import takes, and together it is all."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from tests.bytecode import make_part, part_of

pytestmark = pytest.mark.unit


def test_an_import_takes_what_was_made(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, plain = tmp_path / "test_case.py", tmp_path / "plain.py"
    case.write_text("def test_it():\n    assert 1 == 2\n")
    plain.write_text("answer = 42\n")
    make_part(pytestconfig, [case, plain])
    kept = rewrite.get_cache_dir(case) / f"test_case{rewrite.PYC_TAIL}"
    code = rewrite._read_pyc(case, kept)
    assert code is not None
    assert "@pytest_ar" in code.co_names  # its assertions are rewritten
    assert Path(importlib.util.cache_from_source(str(plain))).is_file()
    # Nothing is made twice, and what was made of other source is not taken.
    monkeypatch.setattr(rewrite, "_rewrite_test", None)
    make_part(pytestconfig, [case])
    case.write_text("def test_it():\n    assert 2 == 2\n")
    assert rewrite._read_pyc(case, kept) is None


def test_a_slip_in_one_file_is_no_end_of_all(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """It was an internal error of every worker: pytest tells of it when it collects the file."""
    broken, whole = tmp_path / "test_broken.py", tmp_path / "test_whole.py"
    broken.write_text("def test_it(:\n")
    whole.write_text("def test_it():\n    assert True\n")
    make_part(pytestconfig, [broken, whole])
    kept = rewrite.get_cache_dir(whole)
    assert [one.name for one in kept.iterdir()] == [f"test_whole{rewrite.PYC_TAIL}"]


def test_parts_of_all_workers_are_all_files(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in range(5):
            (tmp_path / folder / f"m{number}.py").touch()
    parts = [part_of(f"gw{n}", 3, tmp_path / "a", tmp_path / "b") for n in range(3)]
    assert [len(part) for part in parts] == [4, 3, 3]
    assert len({file for part in parts for file in part}) == 10
