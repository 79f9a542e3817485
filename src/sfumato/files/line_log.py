"""A file of lines that is only appended to: each line is whole, whatever ends the process."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.errors import InvalidInput


class LineLog:
    """Appends lines to a file; one that a crash cut short is ended first, so that it spoils no other."""

    def __init__(self, path: str | Path, *, undone: str) -> None:
        """Open the file, or make it.

        Args:
            path: The file.
            undone: What is not done where it cannot be opened: "nothing was collected".

        Raises:
            InvalidInput: It cannot be opened for appending.
        """
        try:
            self.path = Path(path)
            self._cut = False
            self._file = open(path, "ab+", buffering=0)  # noqa: SIM115 - as long as this lives
            size = self._file.seek(0, os.SEEK_END)
            self._file.seek(max(0, size - 1))
            if size and self._file.read(1) != b"\n":
                self._file.write(b"\n")
        except OSError as problem:
            raise InvalidInput(f"cannot append to {path}: {problem.strerror}; {undone}") from None

    def add(self, line: str) -> None:
        """Append a line in one write.

        Args:
            line: The line, without its end.

        Raises:
            InvalidInput: It could not be written whole; what was written of it is ended before the next.
        """
        data = (b"\n" if self._cut else b"") + line.encode() + b"\n"
        try:
            written = self._file.write(data)
        except OSError as problem:
            raise InvalidInput(
                f"cannot append to {self.path}: {problem.strerror}; a line is lost"
            ) from None
        self._cut = written != len(data) and (self._cut or bool(written))
        if written != len(data):
            raise InvalidInput(f"cannot append to {self.path}: it is full; a line is lost")

    def sync(self) -> None:
        """Wait until the disk holds all lines."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
