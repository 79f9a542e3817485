"""The folder a page works in: ledgers and released maps stay there, uploads go with the server."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypedDict

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import scratch_folder, whole_file, write_file

LARGEST_UPLOAD = 2**30
KEY = re.compile(r"[0-9a-f]{16}")
SAVED, MANY, SAVED_MAPS, ABOUT = "map.json", "map-{by}.json", "map*.json", "about.json"
PUBLIC, OUTLINE = "public", "outline.geojson"


class Ground(TypedDict):
    """Public files under maps, as pipelines take them."""

    over: Path | None
    outline: Path | None


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

    def named(self, text: str) -> str:
        """The same words with uploads called as their owner calls them: where they lie is not told."""
        if self._scratch is None:
            return text
        return re.sub(rf"{re.escape(str(self._scratch[0]))}/[0-9a-f]{{16}}/", "", text)

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

    def split(self, ref: str) -> tuple[str, int | None]:
        """The key of a release and which of its maps is meant: `KEY`, or `KEY_2` for the second of several."""
        key, _, which = ref.partition("_")
        self.place(key)
        if not which:
            return key, None
        if not re.fullmatch(r"[1-9]\d{0,3}", which):
            raise InvalidParameter(
                f"maps of a release count from 1, got {which[:20]!r}; nothing was read"
            )
        return key, int(which)

    def files(self, key: str) -> list[Path]:
        """The saved maps of a release, in order."""
        place = self.place(key)
        names = self.about(key).get("files") or sorted(one.name for one in place.glob(SAVED_MAPS))
        found = [path for name in names if (path := place / Path(name).name).is_file()]
        if not found:
            raise InvalidInput(f"there is no map {key} in {self.folder}; nothing was read")
        return found

    def saved(self, ref: str) -> Path:
        """One saved map."""
        key, which = self.split(ref)
        found = self.files(key)
        if which is None and len(found) > 1:
            raise InvalidParameter(
                f"{key} has {len(found)} maps: name one as {key}_1 to {key}_{len(found)}; nothing was read"
            )
        if which is not None and which > len(found):
            raise InvalidInput(f"{key} has {len(found)} maps, not {which}; nothing was read")
        return found[(which or 1) - 1]

    def keep(self, key: str, about: dict[str, Any]) -> None:
        """Note what a release is, so that the list need not read it."""
        write_file(self.place(key) / ABOUT, json.dumps(about, indent=1).encode(), overwrite=True)

    def about(self, key: str) -> dict[str, Any]:
        """What was noted of a release."""
        try:
            found: dict[str, Any] = json.loads((self.place(key) / ABOUT).read_text("utf-8"))
        except (OSError, ValueError):
            return {"key": key, "name": key, "statement": "", "rehearsal": False}
        return found

    def maps(self) -> list[dict[str, Any]]:
        """What was noted of every release, the latest first."""
        latest: dict[str, float] = {}
        for one in (self.folder / "maps").glob(f"*/{SAVED_MAPS}"):
            latest[one.parent.name] = max(one.stat().st_mtime, latest.get(one.parent.name, 0.0))
        keys = sorted(latest, key=latest.__getitem__, reverse=True)
        return [self.about(key) for key in keys if KEY.fullmatch(key)]

    def public_copy(self, key: str, source: Path, name: str) -> Path:
        """A public file kept beside the maps that are drawn on it."""
        target = self.place(key) / PUBLIC / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, source.read_bytes(), overwrite=True)
        return target

    def ground(self, key: str) -> Ground:
        """The public files under the maps of a release, as pipelines take them."""
        place, about = self.place(key) / PUBLIC, self.about(key)
        over, outline = about.get("over"), place / OUTLINE
        return {
            "over": place / Path(over).name if over else None,
            "outline": outline if outline.is_file() else None,
        }

    def ledgers(self) -> list[str]:
        """The ledgers in the folder."""
        return sorted(map(str, self.folder.glob("*.ledger")))
