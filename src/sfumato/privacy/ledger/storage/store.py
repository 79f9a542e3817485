"""What was asked and drawn, beside the ledger that paid: so that nothing paid for is lost.

    city.ledger.d/000012-<hash>.jsonl     asked, on the disk before the charge
                                          drawn, on the disk before anybody sees the values
                                          delivered, when they were written where they belong

Whoever draws holds a lock on the file until the values are in it. So a file that is not locked and
says nothing of values is of a process that died, and nobody has seen what it may have drawn.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import LedgerBusy, LedgerDamaged, LedgerError
from sfumato.files import sync_folder
from sfumato.privacy.accounting.codec import canonical
from sfumato.privacy.ledger.release import Entry, Release, release_from_json
from sfumato.privacy.ledger.storage.disk import is_locked, put, read_from, taken

NAME = re.compile(r"(\d{6,})-([0-9a-f]{12})\.jsonl")
TICK = '{"kind":"delivered"}'
DELIVERED = f"{hashlib.sha256(TICK.encode()).hexdigest()} {TICK}\n".encode()
LONGEST = 253  # bytes of a name that ".d" is put behind


@dataclass(frozen=True, slots=True)
class Kept:
    """A release that was asked for and paid, and how far it got.

    Attributes:
        entry: The entry that paid.
        request: What was asked for, as it was given to `Ledger.release`.
        drawn: Whether its values are there: `Ledger.recover` has them. If not, `Ledger.redraw`.
        delivered: Whether its caller said that it was delivered.
        alive: Whether a process is drawing them just now.
        attached: What its caller made of the values when they were drawn, and had kept with them.
        ledger: The id of the ledger that was asked.
    """

    entry: Entry
    request: Any
    drawn: bool
    delivered: bool
    alive: bool
    attached: Any = None
    ledger: str = ""


def folder_of(real: Path) -> Path:
    """The folder beside a ledger."""
    return real.with_name(f"{os.fsdecode(os.fsencode(real.name)[:LONGEST])}.d")


def opened_in(real: Path, path: Path, flags: int) -> int:
    """The handle of a file in the folder, made with the rights of the ledger if there is none.

    The folder may be taken away, empty, by another process while the file is made.
    """
    while True:
        like = real.stat()
        with suppress(FileNotFoundError):
            _make_folder(folder_of(real), like)
            handle = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with suppress(PermissionError):  # it is somebody else's already
                _give(path, like)
                os.fchmod(handle, _rights(like))
            return handle


def _make_folder(folder: Path, like: os.stat_result) -> None:
    if folder.is_symlink():
        raise LedgerError(
            f"{folder} is a link, and counts are kept beside the ledger; nothing was charged or released"
        )
    # Not `exist_ok`, which fails where another process takes the folder away between two looks.
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        _give(folder, like)
        mode = _rights(like)
        folder.chmod(mode | (mode & 0o444) >> 2)
        sync_folder(folder.parent)


def file_of(real: Path, entry: Entry) -> Path:
    """The file of one entry."""
    return folder_of(real) / f"{entry.number:06d}-{entry.hash[:12]}.jsonl"


def files(real: Path) -> list[Path]:
    """All that lie beside a ledger, by number."""
    try:
        found = [file for file in folder_of(real).iterdir() if NAME.fullmatch(file.name)]
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda file: (int(file.name.split("-")[0]), file.name))


def ask(real: Path, ledger: str, entry: Entry, request: Any) -> int:
    """Write down what is asked, before it is paid; the handle of the file, locked."""
    import fcntl

    path = file_of(real, entry)
    handle = opened_in(real, path, os.O_RDWR | os.O_EXCL)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        _add(
            handle,
            {"kind": "asked", "ledger": ledger, "entry": entry.to_json(), "request": request},
            at=0,
        )
        sync_folder(path.parent)
        # Whoever made the folder just now may not have waited for it yet.
        sync_folder(real.parent)
    except BaseException:
        os.close(handle)
        path.unlink(missing_ok=True)
        raise
    return handle


def keep(handle: int, release: Release[Any], attached: Any = None) -> str:
    """Write down what was drawn, and wait for the disk; the SHA-256 of the line."""
    line = {"kind": "drawn", "release": release.to_json()}
    told = line if attached is None else {**line, "attached": attached}
    return _add(handle, told, at=os.fstat(handle).st_size)


def read(path: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """The lines of a file by kind, and where what is whole ends."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return _lines(read_from(handle, 0), path.name)
    finally:
        os.close(handle)


def kept(path: Path) -> Kept | None:
    """How far a release got; None where nothing was asked, or all is gone."""
    try:
        found, _ = read(path)
        if "asked" not in found:
            return None
        alive = "drawn" not in found and is_locked(path)
        if not alive:
            found, _ = read(path)  # it may have been drawn, and let go, between the two looks
    except FileNotFoundError:  # delivered just now
        return None
    asked, drawn = found["asked"], "drawn" in found
    return Kept(
        Entry.from_json(asked["entry"]),
        asked["request"],
        drawn,
        "delivered" in found,
        alive,
        found["drawn"].get("attached") if drawn else None,
        asked["ledger"],
    )


def values(path: Path) -> tuple[Release[Any], str]:
    """What was drawn, and the SHA-256 of its line."""
    found, _ = read(path)
    if "drawn" not in found:
        raise LedgerDamaged(f"{path} holds no values: they were never drawn")
    return release_from_json(found["drawn"]["release"]), found["drawn"]["sha256"]


def take_over(path: Path) -> int:
    """The handle of a file to draw into again, locked, what is torn cut off; LedgerBusy if somebody draws."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if not taken(handle):
            raise LedgerBusy(
                f"{path.name} is being drawn by another process; nothing was drawn again, try later"
            )
        found, end = _lines(read_from(handle, 0), path.name)
        # Values that no file holds are handed out, and their file is taken away.
        if "drawn" in found or "asked" not in found or not os.fstat(handle).st_nlink:
            raise LedgerBusy(
                f"{path.name} was drawn meanwhile; nothing was drawn again, recover it"
            )
        os.ftruncate(handle, end)
    except BaseException:
        os.close(handle)
        raise
    return handle


def deliver(path: Path, *, remove: bool) -> None:
    """Say that values were delivered: by a line, or by taking the file away."""
    if remove:
        path.unlink(missing_ok=True)
        return
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        found, end = _lines(read_from(handle, 0), path.name)
        if "delivered" not in found:
            _add(handle, json.loads(TICK), at=end)
    finally:
        os.close(handle)


def is_delivered(path: Path) -> bool:
    """Whether the last line of a file says so; nothing else of it is read."""
    try:
        with path.open("rb") as file:
            file.seek(-min(len(DELIVERED), os.fstat(file.fileno()).st_size), os.SEEK_END)
            return file.read() == DELIVERED
    except FileNotFoundError:  # delivered just now
        return True


def forget(path: Path) -> None:
    """Remove what was asked and never paid, unless somebody is at it; under the ledger's lock."""
    with suppress(OSError):
        if not is_locked(path):
            path.unlink()


def request_hash(request: Any) -> str:
    """The SHA-256 of a request, however its keys are ordered, but for what is no part of what is asked.

    Under "delivery" is where and how values are written, at no cost; under "run" which attempt it
    is.
    """
    if isinstance(request, dict):
        request = {key: one for key, one in request.items() if key not in ("delivery", "run")}
    return hashlib.sha256(canonical(request).encode()).hexdigest()


def _add(handle: int, data: dict[str, Any], *, at: int) -> str:
    """Write a line behind those that are whole, and wait for the disk; nothing of it where that fails."""
    text = json.dumps(data, separators=(",", ":"), default=_plain, allow_nan=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    try:
        os.ftruncate(handle, at)  # what a process that died has left
        put(handle, f"{digest} {text}\n".encode(), at)
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, at)
        raise
    return digest


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if hasattr(value, "to_json"):
        return value.to_json()
    raise TypeError(f"it holds a {type(value).__name__}")


def _lines(data: bytes, name: str) -> tuple[dict[str, dict[str, Any]], int]:
    """The lines by kind, and where they end; a last one without an end is what a process that died has left."""
    found: dict[str, dict[str, Any]] = {}
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        digest, _, text = data[at:end].partition(b" ")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            # Values that somebody has seen may have been in it.
            raise LedgerDamaged(f"{name} is damaged; nothing was drawn")
        line = json.loads(text)
        found[line["kind"]] = {**line, "sha256": digest.decode()}
        at = end + 1
    return found, at


def _rights(like: os.stat_result) -> int:
    return stat.S_IMODE(like.st_mode) & 0o666


def _give(path: Path, like: os.stat_result) -> None:
    """Let whose the ledger is have what lies beside it, where the system lets us."""
    with suppress(OSError):
        os.chown(path, like.st_uid, like.st_gid)
