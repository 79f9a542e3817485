"""A disk that fails when a whole draft is to take its name: what must then be there, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.files import atomic


def fill(
    patch: pytest.MonkeyPatch,
    but: Callable[[Path], bool] = lambda _: False,
    problem: BaseException | None = None,
) -> None:
    """Let every write fail, but those to paths that are chosen."""
    publish = atomic._publish

    def failing(draft: Path, target: Path, *, overwrite: bool) -> None:
        assert draft.parent == target.parent
        assert draft.is_file()
        if not but(target):
            raise OSError(28, "No space left on device") if problem is None else problem
        publish(draft, target, overwrite=overwrite)

    patch.setattr(atomic, "_publish", failing)
