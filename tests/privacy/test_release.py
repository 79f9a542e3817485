"""A release says whether its value is as it came, also after it was saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.errors import InvalidInput
from sfumato.privacy import (
    REHEARSAL,
    ZCDP,
    DiscreteGaussian,
    Ledger,
    Release,
    histogram,
    read_release,
)


def released() -> Release[npt.NDArray[np.int64]]:
    visits = histogram(np.array([0, 1, 1]), 2, source=REHEARSAL)
    return Ledger.rehearsal(ZCDP(1)).release(DiscreteGaussian(10), visits)


@pytest.mark.unit
def test_what_then_has_changed_is_marked_also_in_a_file(tmp_path: Path) -> None:
    plain = released()
    changed = plain.then(lambda value: value + 1)
    assert (plain.processed, changed.processed, changed.then(np.sort).processed) == (
        False,
        True,
        True,
    )
    plain.write(tmp_path / "plain.json")
    changed.write(tmp_path / "changed.json")
    assert not read_release(tmp_path / "plain.json").processed
    assert read_release(tmp_path / "changed.json").processed


@pytest.mark.unit
def test_a_file_from_before_the_mark_reads_as_it_did(tmp_path: Path) -> None:
    old: dict[str, Any] = released().to_json()
    assert "processed" not in old
    (tmp_path / "old.json").write_text(json.dumps(old), encoding="utf-8")
    assert not read_release(tmp_path / "old.json").processed
    (tmp_path / "odd.json").write_text(json.dumps({**old, "processed": "no"}), encoding="utf-8")
    with pytest.raises(InvalidInput, match="processed is neither true nor false"):
        read_release(tmp_path / "odd.json")
