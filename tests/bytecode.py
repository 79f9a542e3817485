"""What Python and pytest make of the source of all tests and of the package: each worker makes a part.

In a fresh clone every worker would compile all of it, and rewrite all assertions: twice what it takes to
collect the tests. What was made of other source is made anew where it is read, as always.
"""

from __future__ import annotations

import compileall
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def make_part(config: pytest.Config, files: Iterable[Path]) -> None:
    """Compile these files where that was not done since they were changed."""
    rewrites = rewrite.assertstate_key in config.stash  # not with --assert=plain
    for file in files:
        if file.name == "conftest.py" or file.name.startswith("test_"):
            # Source that is none is told of where it is collected.
            with suppress(SyntaxError, ValueError):
                if rewrites:
                    _rewrite(config, file)
        else:
            compileall.compile_file(file, quiet=2)


def _rewrite(config: pytest.Config, file: Path) -> None:
    """What pytest's own import of a test keeps, without running it."""
    folder = rewrite.get_cache_dir(file)
    kept = folder / (file.name[:-3] + rewrite.PYC_TAIL)
    if kept.exists() and kept.stat().st_mtime >= file.stat().st_mtime:
        return
    if rewrite.try_makedirs(folder):
        digest, code = rewrite._rewrite_test(file, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, kept)


def part_of(worker: str, workers: int, *folders: Path) -> list[Path]:
    """The files of a worker, by its name in pytest-xdist: gw0, gw1, ..."""
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    return files[int(worker.removeprefix("gw")) :: workers]
