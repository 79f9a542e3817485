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

from sfumato.errors import LedgerBusy, LedgerDamaged
from sfumato.files import sync_folder
from sfumato.privacy.accounting.codec import canonical
from sfumato.privacy.ledger.release import Entry, Release, release_from_json
from sfumato.privacy.ledger.storage.disk import put, read_from

NAME = re.compile(r"(\d{6,})-([0-9a-f]{12})\.jsonl")
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
    """

    entry: Entry
    request: Any
    drawn: bool
    delivered: bool
    alive: bool
    attached: Any = None


def folder_of(real: Path) -> Path:
    """The folder beside a ledger."""
    return real.with_name(f"{os.fsdecode(os.fsencode(real.name)[:LONGEST])}.d")


def made_folder(real: Path) -> Path:
    """The same, made if there is none, with the rights of the ledger."""
    folder, like = folder_of(real), real.stat()
    if not folder.is_dir():
        mode = stat.S_IMODE(like.st_mode) & 0o666
        folder.mkdir(mode=mode | (mode & 0o444) >> 2, exist_ok=True)
        _give(folder, like)
        sync_folder(folder.parent)
    return folder


def opened_in(real: Path, path: Path, flags: int, mode: int) -> int:
    """The handle of a new file in the folder, which may be taken away empty while it is made."""
    while True:
        made_folder(real)
        with suppress(FileNotFoundError):
            return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)


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

    like, path = real.stat(), file_of(real, entry)
    mode = stat.S_IMODE(like.st_mode) & 0o666
    handle = opened_in(real, path, os.O_RDWR | os.O_EXCL, mode)
    try:
        _give(path, like)
        fcntl.flock(handle, fcntl.LOCK_EX)
        _add(
            handle,
            {"kind": "asked", "ledger": ledger, "entry": entry.to_json(), "request": request},
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
    return _add(handle, line if attached is None else {**line, "attached": attached})


def read(path: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """The lines of a file by kind, and where what is whole ends."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return _lines(read_from(handle, 0), path.name)
    finally:
        os.close(handle)


def kept(path: Path) -> Kept | None:
    """How far a release got; None where nothing was asked."""
    found, _ = read(path)
    if "asked" not in found:
        return None
    asked = found["asked"]
    drawn, delivered = "drawn" in found, "delivered" in found
    entry = Entry.from_json(asked["entry"])
    alive = not drawn and _is_locked(path)
    if alive is False and not drawn:
        # It may have been drawn, and let go, between the two looks.
        found = read(path)[0]
        drawn = "drawn" in found
    attached = found["drawn"].get("attached") if drawn else None
    return Kept(entry, asked["request"], drawn, delivered, alive, attached)


def values(path: Path) -> Release[Any]:
    """What was drawn."""
    found, _ = read(path)
    if "drawn" not in found:
        raise LedgerDamaged(f"{path} holds no values: they were never drawn")
    return release_from_json(found["drawn"]["release"])


def take_over(path: Path) -> int:
    """The handle of a file to draw into again, locked, what is torn cut off; LedgerBusy if somebody draws."""
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LedgerBusy(
                f"{path.name} is being drawn by another process; nothing was drawn again, try later"
            ) from None
        found, end = _lines(read_from(handle, 0), path.name)
        if "drawn" in found or "asked" not in found:
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
        if "delivered" not in _lines(read_from(handle, 0), path.name)[0]:
            _add(handle, {"kind": "delivered"})
    finally:
        os.close(handle)


def forget(path: Path) -> None:
    """Remove what was asked and never paid, unless somebody is at it."""
    with suppress(OSError):
        if not _is_locked(path):
            path.unlink()


def request_hash(request: Any) -> str:
    """The SHA-256 of a request, however its keys are ordered, but for what is no part of what is asked.

    Under "delivery" is where and how values are written, at no cost; under "run" which attempt it
    is.
    """
    if isinstance(request, dict):
        request = {key: one for key, one in request.items() if key not in ("delivery", "run")}
    return hashlib.sha256(canonical(request).encode()).hexdigest()


def _add(handle: int, data: dict[str, Any]) -> str:
    text = json.dumps(data, separators=(",", ":"), default=_plain, allow_nan=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    put(handle, f"{digest} {text}\n".encode(), os.fstat(handle).st_size)
    os.fsync(handle)
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
        found[line["kind"]] = line
        at = end + 1
    return found, at


def _give(path: Path, like: os.stat_result) -> None:
    """Let whose the ledger is have what lies beside it, where the system lets us."""
    with suppress(OSError):
        os.chown(path, like.st_uid, like.st_gid)


def _is_locked(path: Path) -> bool:
    import fcntl

    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
