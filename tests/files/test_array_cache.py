"""Kept arrays: what stands at their name is never written through, and what is damaged is made again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.files import cached_array

pytestmark = pytest.mark.fault


def test_an_array_is_never_kept_through_a_link_of_another_user(tmp_path: Path) -> None:
    """In a folder that others may write to, its name can be foreseen."""
    folder, victim = tmp_path / "kept", tmp_path / "victim"
    cached_array(folder, "ones", b"", lambda: np.ones(3))
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.unlink()
    victim.write_text("precious", "utf-8")
    file.symlink_to(victim)
    assert cached_array(folder, "ones", b"", lambda: np.ones(3)).tolist() == [1, 1, 1]
    assert victim.read_text("utf-8") == "precious"
    assert [file] == list(folder.iterdir())
    assert not file.is_symlink()
    assert file.read_bytes() == whole


def test_it_is_made_once_for_all_that_decides_it(tmp_path: Path) -> None:
    made = list[int]()

    def make() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        made.append(1)
        return np.arange(3.0)

    for what in (b"a", b"a", b"b", b"a"):
        assert cached_array(tmp_path, "steps", what, make).tolist() == [0, 1, 2]
    assert len(made) == 2
    nowhere = tmp_path / "file" / "kept"
    nowhere.parent.write_text("in the way", "utf-8")
    assert cached_array(nowhere, "steps", b"a", make).tolist() == [0, 1, 2]
    assert len(made) == 3
