"""Write a file so that it is there whole or not at all, and through nobody's link.

    draft, new and of a name nobody can foresee, in the folder of the result
      -> written, on the disk -> takes the result's name in one step -> the folder on the disk

A result never goes through a link. A link is a file that exists: without `overwrite` it is kept,
with it the link itself gives way to the file, and what it points to is left alone. Devices, pipes
and folders are refused.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sfumato.errors import ExistsAlready, InvalidInput
from sfumato.files.leftovers import removed_after

# O_EXCL: what is there already, a link too, is not ours. O_NOFOLLOW says the same to who reads
# this.
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
LONGEST = 200  # bytes of the result's name in that of its draft: a name may have 255
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def write_file(
    path: str | Path,
    data: bytes | str,
    *,
    overwrite: bool = False,
    private: bool = False,
    kept: str = "choose another file",
    lost: str = "",
) -> None:
    """Write a file that is there whole or not at all.

    Args:
        path: Where; the folder must exist.
        data: Bytes, or text to be written as UTF-8.
        overwrite: Whether a file of that name gives way; it keeps who may read it.
        private: Whether only its owner may read it; otherwise as the umask says.
        kept: What to do instead, said where a file exists already.
        lost: What else to say where the file cannot be written.

    Raises:
        InvalidInput: The file exists already, or cannot be written; nothing was written.

    """
    with whole_file(path, overwrite=overwrite, private=private, kept=kept, lost=lost) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def whole_file(
    path: str | Path,
    *,
    overwrite: bool = False,
    private: bool = False,
    kept: str = "choose another file",
    lost: str = "",
) -> Iterator[BinaryIO]:
    """A file to write to, which takes its name when the block ends, and is gone if the block fails.

    Args:
        path: Where; the folder must exist.
        overwrite: Whether a file of that name gives way; it keeps who may read it.
        private: Whether only its owner may read it; otherwise as the umask says.
        kept: What to do instead, said where a file exists already.
        lost: What else to say where the file cannot be written.

    Yields:
        The file, open for bytes.

    Raises:
        InvalidInput: The file exists already, or cannot be written; nothing was written.

    """
    try:
        with drafted(path, overwrite=overwrite, private=private) as file:
            yield file
    except FileExistsError:
        raise ExistsAlready(f"{path} exists already and is kept; {kept}") from None
    except OSError as problem:
        raise _unwritable(path, problem, lost) from None


@contextmanager
def drafted(
    path: str | Path, *, overwrite: bool = False, private: bool = False
) -> Iterator[BinaryIO]:
    """The same for who has words of their own for what goes wrong.

    Raises OSError where the file exists already, or cannot be written: nothing was written then.
    """
    target = Path(path)
    mode = _admitted(target, overwrite=overwrite)
    with draft_beside(target) as draft:
        handle = os.open(draft, NEW, 0o666 if mode is None and not private else 0o600)
        with os.fdopen(handle, "wb") as file:
            if mode is not None and not private:
                os.fchmod(handle, mode)
            yield file
            file.flush()
            os.fsync(handle)
        _publish(draft, target, overwrite=overwrite)
    _sync_if_possible(target.parent)


def check_writable(path: str | Path, *, overwrite: bool = False, lost: str = "") -> None:
    """Refuse now what could not be written later: before anything is run, or paid, for it.

    Args:
        path: A file that will be written.
        overwrite: Whether a file of that name will give way.
        lost: What was not done, said where the file cannot be written.

    Raises:
        InvalidInput: The file exists already, or cannot be written.

    """
    target = Path(path)
    try:
        _admitted(target, overwrite=overwrite)
        with draft_beside(target) as draft:
            os.close(os.open(draft, NEW, 0o600))
    except FileExistsError:
        raise ExistsAlready(
            f"{path} exists already and is kept{f'; {lost}' if lost else ''}"
        ) from None
    except OSError as problem:
        raise _unwritable(path, problem, lost) from None


def check_private(path: str | Path) -> None:
    """Refuse a file with a secret that others than its owner may read or write.

    Args:
        path: A file of a key or a password.

    Raises:
        InvalidInput: Its mode lets others open it.

    """
    mode = os.stat(path).st_mode & 0o777
    if mode & 0o077:
        raise InvalidInput(
            f"{path} has the mode {mode:04o}: others than its owner may open it, and it holds a secret; "
            "run chmod 600 on it; nothing was done"
        )


def remove_drafts(path: str | Path) -> None:
    """Remove drafts of a file that a process killed by force left beside it; only for who holds its lock.

    Args:
        path: The file whose drafts they are.

    """
    for draft in drafts_beside(path):
        draft.unlink(missing_ok=True)


@contextmanager
def draft_beside(path: str | Path, kind: str = ".part") -> Iterator[Path]:
    """A name for a draft of a file, for who puts it in its place in a way of their own.

    Args:
        path: The file whose draft it is.
        kind: How the name ends.

    Yields:
        A path in the same folder, with 128 random bits in its name; what is there when the block
        ends, by an exception or by a signal that can be caught too, is removed.

    """
    draft = _draft(Path(path), kind)
    with removed_after(draft):
        yield draft


def drafts_beside(path: str | Path, kind: str = ".part") -> list[Path]:
    """Drafts of a file that are there: of who writes it just now, or left by a process killed by force.

    Args:
        path: The file whose drafts they are.
        kind: How their names end.

    Returns:
        Their paths; earlier versions had fewer random letters in them.

    """
    target = Path(path)
    ours = re.compile(
        re.escape(_stem(target)) + r"([0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{32})" + re.escape(kind)
    )
    return [other for other in target.parent.iterdir() if ours.fullmatch(other.name)]


def _draft(target: Path, kind: str = ".part") -> Path:
    return target.with_name(f"{_stem(target)}{secrets.token_hex(16)}{kind}")


def _stem(target: Path) -> str:
    """How the names of a file's drafts begin; hidden, and short enough."""
    return f".{os.fsdecode(os.fsencode(target.name)[:LONGEST])}."


def _unwritable(path: str | Path, problem: OSError, lost: str) -> InvalidInput:
    said = f"; {lost}" if lost else ""
    return InvalidInput(f"cannot write {path}: {problem.strerror or problem}{said}")


def _admitted(target: Path, *, overwrite: bool) -> int | None:
    """Refuse what must not give way; of an ordinary file that does, who may read it."""
    try:
        there = target.lstat()
    except FileNotFoundError:
        return None
    if not overwrite:
        raise FileExistsError
    # Behind a link may be a device: /dev/stdout is one.
    behind = target.stat() if target.exists() else there
    if stat.S_ISDIR(behind.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(behind.st_mode) and not stat.S_ISLNK(behind.st_mode):
        raise OSError(errno.EINVAL, "it is no ordinary file")
    if stat.S_ISLNK(there.st_mode):
        return None
    if not os.access(
        target, os.W_OK
    ):  # a new file would take its name, but it says that it is kept
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return stat.S_IMODE(there.st_mode) & 0o777


def _publish(draft: Path, target: Path, *, overwrite: bool) -> None:
    """Give the draft the name of the result, in one step; a file that came meanwhile is kept."""
    if not overwrite:
        try:
            os.link(draft, target, follow_symlinks=False)
        except OSError as problem:
            if problem.errno not in NO_LINKS:
                raise
            _take(draft, target)
        return
    draft.replace(target)


def _take(draft: Path, target: Path) -> None:
    """The same where files have one name each: the name is taken by an empty file, which then gives way."""
    os.close(os.open(target, NEW, 0o600))
    try:
        draft.replace(target)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def sync_folder(folder: str | Path) -> None:
    """Wait until the disk holds the names in a folder.

    Args:
        folder: The folder.

    Raises:
        OSError: It cannot be waited for, so what is in it may have another name after a loss of
        power.

    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_if_possible(folder: Path) -> None:
    """The same where folders can be opened and waited for: a result may be lost with the power, no charge."""
    try:
        sync_folder(folder)
    except PermissionError:  # a folder to put things into and not to look into
        return
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
