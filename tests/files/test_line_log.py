"""Lines that are appended: whole, or said to be lost, and never two in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.errors import InvalidInput
from sfumato.files import LineLog

pytestmark = pytest.mark.fault


def test_a_line_that_was_cut_short_is_said_and_spoils_no_other(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "a.jsonl", undone="nothing was done")
    whole = log._file

    class Short:
        def write(self, data: bytes) -> int:
            return whole.write(data[:4])

    log.add("first")
    log._file = Short()  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match="it is full; a line is lost"):
        log.add("second")
    log._file = whole
    log.add("third")
    log.close()
    assert (tmp_path / "a.jsonl").read_text().splitlines() == ["first", "seco", "third"]


def test_a_full_disk_is_said() -> None:
    log = LineLog("/dev/full", undone="nothing was done")
    with pytest.raises(InvalidInput, match="No space left on device; a line is lost"):
        log.add("first")
    log.close()
