"""What must be gone when its work ends, however it ends: drafts of results, folders of spilled rows.

An exception and Ctrl-C run the code that removes; SIGTERM and SIGHUP run nothing of ours unless
somebody asks them to. So while there is something to remove, and only then, they are asked. A
signal that somebody handles or ignores already stays theirs. kill -9 asks nobody, and signals can
be asked in the main thread only.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

SIGNALS = tuple(
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if name in signal.Signals.__members__
)

# Names are noted before they exist, so that no moment is between; and by process, since a fork has
# a copy of the notes and not of the work.
_noted: dict[Path, int] = {}


@contextmanager
def removed_after(path: Path) -> Iterator[None]:
    """Remove a file or folder of ours when the block ends, however it ends; it need not be there any more."""
    try:
        note(path)
        yield
    finally:
        remove(path)


def scratch_folder() -> tuple[Path, Callable[[], None]]:
    """A new temporary folder that only its owner may enter, and what removes it.

    Returns:
        The folder, of a name nobody can foresee, and a function that removes it with all that is in
        it; an end of the process that can be noticed removes it too.
    """
    while True:
        path = Path(tempfile.gettempdir()) / f"sfumato-{secrets.token_hex(16)}"
        note(path)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:  # not ours, whoever made it
            _forget(path)
        except BaseException:
            _forget(path)
            raise
        else:
            return path, partial(remove, path)


def note(path: Path) -> None:
    """Ask that a path be removed at the end of this process, also if that is a signal."""
    _noted[path] = os.getpid()
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end_by_signal)


def remove(path: Path) -> None:
    """Remove what was noted, unless a fork of the process that noted it asks."""
    if _noted.get(path) == os.getpid():
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
    _forget(path)


def _forget(path: Path) -> None:
    _noted.pop(path, None)
    if not _noted and threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is end_by_signal:
                signal.signal(number, signal.SIG_DFL)


def _remove_all() -> None:
    for path in list(_noted):
        remove(path)


def end_by_signal(number: int, _: object = None) -> None:
    """Remove what must be gone, and then end by the signal itself: whoever waits for us sees how we ended.

    Args:
        number: The signal.
        _: Where it came, as handlers are told; not used.

    """
    signal.signal(number, signal.SIG_IGN)  # the same once more does not interrupt the removing
    _remove_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


atexit.register(_remove_all)
