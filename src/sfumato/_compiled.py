"""The one place from which compiled functions take `njit`, and where their machine code is kept.

numba keeps machine code beside the source, or in a folder of all its users where it cannot write
there. Ours is kept in the user's own cache folder, `sfumato/<version>-<digest of all kernels>`, so
that a second process compiles nothing, from a read-only installation too, and so that a kernel is
compiled again when another one that it calls has changed. A folder named by `NUMBA_CACHE_DIR` is
used as it is. Where nothing can be written functions are compiled in each process, and nothing is said.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numba
from numba.core.types import Dispatcher
from numba.extending import typeof_impl
from numba.misc import appdirs

from sfumato import __version__

HERE = Path(__file__).parent
CONFIG: Any = numba.config
NJIT: Any = numba.njit
FOLDERS: Any = appdirs


@lru_cache(maxsize=1)
def cache_folder() -> str:
    """Where machine code is kept: `NUMBA_CACHE_DIR`, or a folder of this very source in the user's cache."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return chosen
    digest = hashlib.sha256()
    # numba looks at the file of a function alone; what functions of other files call is in these.
    for file in sorted(HERE.rglob("*kernel.py")):
        digest.update(file.relative_to(HERE).as_posix().encode() + b"\0" + file.read_bytes())
    return str(
        Path(FOLDERS.user_cache_dir("sfumato", appauthor=False))
        / f"{__version__}-{digest.hexdigest()[:12]}"
    )


def njit(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """`numba.njit(cache=True, **options)`, kept in `cache_folder()` or, if that cannot be, nowhere."""
    if function is None:
        return partial(njit, **options)
    # Read when a function is decorated: what others compile stays where they want it.
    before, CONFIG.CACHE_DIR = CONFIG.CACHE_DIR, cache_folder()
    try:
        return NJIT(cache=True, **options)(function)
    except RuntimeError:  # no locator: there is no folder to write to
        return NJIT(**options)(function)
    finally:
        CONFIG.CACHE_DIR = before


class Inner:
    """A function for compiled functions, which see what numba made of it; Python calls it as it was written."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        self.compiled = NJIT(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)

    def __call__(self, *values: Any) -> Any:
        """Run without being compiled."""
        return self.function(*values)


@typeof_impl.register(Inner)
def _type(value: Inner, _: object) -> Any:
    return Dispatcher(value.compiled)


def inner(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """`numba.njit` for what only compiled functions call: it is part of their machine code, and kept with it.

    Nothing is made for calls from Python, which halves what a first process compiles.
    """
    return partial(inner, **options) if function is None else Inner(function, options)
