"""The folder a page works in: ledgers and released maps stay there, uploads go with the server."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import scratch_folder, whole_file, write_file

LARGEST_UPLOAD = 2**30
KEY = re.compile(r"[0-9a-f]{16}")
SAVED, ABOUT = "map.json", "about.json"


class TooLarge(InvalidInput):
    """More was sent than the page takes."""


class Desk:
    """Files of a page: what was uploaded, what was released, and which request is being answered.

    Args:
        folder: Where ledgers and maps are kept; made when something is.
        largest: How many bytes of a file are taken at most.

    """

    def __init__(self, folder: str | Path, *, largest: int = LARGEST_UPLOAD) -> None:
        self.folder = Path(folder)
        self.largest = largest
        self._scratch: tuple[Path, Callable[[], None]] | None = None
        self._uploads: dict[str, Path] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    # what was uploaded

    async def take(self, name: str, body: AsyncIterator[bytes], *, largest: int = 0) -> str:
        """Stream a file into the private folder; its key comes back.

        Args:
            name: What its owner calls it; only letters, digits and `_.-` of it are kept.
            body: Its bytes, as they come.
            largest: How many are taken at most; as the desk says, if 0.

        Returns:
            The key, by which `uploaded` finds it.

        Raises:
            TooLarge: More came; nothing is kept.

        """
        most = largest or self.largest
        folder = self.private() / (key := secrets.token_hex(8))
        folder.mkdir(mode=0o700)
        # The ledger knows a table by its name, so the name stays; patterns and folders do not.
        path = folder / (
            re.sub(r"[^\w.-]+", "_", Path(name).name)[-100:].lstrip(".") or "table.csv"
        )
        size = 0
        try:
            with whole_file(path) as file:
                async for piece in body:
                    size += len(piece)
                    if size > most:
                        raise TooLarge(
                            f"a file has at most {most:,} bytes here, more came; nothing was kept"
                        )
                    file.write(piece)
        except BaseException:
            folder.rmdir()
            raise
        with self._guard:
            self._uploads[key] = path
        return key

    def private(self) -> Path:
        """The folder of uploads, which nobody else may enter and which goes when the server does."""
        with self._guard:
            if self._scratch is None:
                self._scratch = scratch_folder()
            return self._scratch[0]

    def close(self) -> None:
        """Remove what was uploaded."""
        with self._guard:
            if self._scratch is not None:
                self._scratch[1]()
            self._scratch, self._uploads = None, {}

    def uploaded(self, key: str) -> Path:
        """The file that was uploaded under a key."""
        with self._guard:
            if key not in self._uploads:
                raise InvalidInput(
                    "that file was uploaded to a server that has ended since: choose it again; "
                    "nothing was read"
                )
            return self._uploads[key]

    def source(self, file: str) -> str:
        """The path of a table as forms name it: a path, or `upload:KEY`."""
        if not file.strip():
            raise InvalidParameter("choose a file, or say its path; nothing was read")
        if file.startswith("upload:"):
            return str(self.uploaded(file.removeprefix("upload:")))
        return file

    # what was released

    def at_work(self, key: str) -> threading.Lock:
        """The lock of a request: who presses twice waits for the first press."""
        with self._guard:
            return self._locks.setdefault(key, threading.Lock())

    def place(self, key: str) -> Path:
        """The folder of a map, by the key of its request."""
        if not KEY.fullmatch(key):
            raise InvalidParameter(
                f"a key has 16 hexadecimal digits, got {key!r}; nothing was done"
            )
        return self.folder / "maps" / key

    def saved(self, key: str) -> Path:
        """The saved map of a key."""
        path = self.place(key) / SAVED
        if not path.is_file():
            raise InvalidInput(f"there is no map {key} in {self.folder}; nothing was read")
        return path

    def keep(self, key: str, about: dict[str, Any]) -> None:
        """Note what a map is, so that the list need not read it."""
        write_file(self.place(key) / ABOUT, json.dumps(about, indent=1).encode(), overwrite=True)

    def about(self, key: str) -> dict[str, Any]:
        """What was noted of a map."""
        try:
            found: dict[str, Any] = json.loads((self.place(key) / ABOUT).read_text("utf-8"))
        except (OSError, ValueError):
            return {"key": key, "name": key, "statement": "", "rehearsal": False}
        return found

    def maps(self) -> list[dict[str, Any]]:
        """What was noted of every map, the latest first."""
        found = sorted(
            (self.folder / "maps").glob(f"*/{SAVED}"), key=lambda one: one.stat().st_mtime
        )
        keys = [one.parent.name for one in reversed(found)]
        return [self.about(key) for key in keys if KEY.fullmatch(key)]

    def ledgers(self) -> list[str]:
        """The ledgers in the folder."""
        return sorted(map(str, self.folder.glob("*.ledger")))
