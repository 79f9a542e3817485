"""Packets that the broker has not acknowledged: on the disk before they are sent, and sent as they are."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sfumato.errors import InvalidInput
from sfumato.files import write_file
from sfumato.network.wire import MAX_BYTES

_KIND = ".packet"
_ROUND = re.compile("[0-9]{1,15}")


class Outbox:
    """A folder with one file for each packet, named by its round. A packet in it is never made again."""

    def __init__(self, folder: Path, *, limit: int) -> None:
        self.folder, self.limit = folder, limit
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.iterdir():
            if left.suffix != _KIND:  # a draft of a process that was killed
                left.unlink()

    def put(self, round_ms: int, payload: bytes) -> None:
        """Keep a packet; it is on the disk when this returns."""
        write_file(
            self._file(round_ms),
            payload,
            private=True,
            lost="the round was paid for and is not sent",
        )

    def rounds(self) -> list[int]:
        """The rounds whose packets wait, oldest first."""
        names = [file.stem for file in self.folder.glob(f"*{_KIND}")]
        return sorted(int(name) for name in names if _ROUND.fullmatch(name))  # others are not ours

    def payload(self, round_ms: int) -> bytes:
        """The packet of a round, as it was made."""
        try:
            payload = self._file(round_ms).read_bytes()
        except OSError as problem:
            raise InvalidInput(
                f"cannot read {self._file(round_ms)}: {problem.strerror}; it was not sent"
            ) from None
        if not payload or len(payload) > MAX_BYTES:
            raise InvalidInput(f"{self._file(round_ms)} is not a packet; it was not sent")
        return payload

    @property
    def is_full(self) -> bool:
        """Whether so many packets wait that no more are made."""
        return sum(1 for _ in os.scandir(self.folder)) >= self.limit

    def sent(self, round_ms: int) -> None:
        """Forget a packet that the broker has."""
        self._file(round_ms).unlink(missing_ok=True)

    def _file(self, round_ms: int) -> Path:
        return self.folder / f"{round_ms}{_KIND}"
