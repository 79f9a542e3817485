"""The one place from which compiled functions take `njit`, and where their machine code is kept.

numba keeps machine code beside the source, or in a folder of all its users where it cannot write
there. Ours is kept in the user's own cache folder, `sfumato/<version>-<digest of all kernels>`, so
that a second process compiles nothing, from a read-only installation too, and so that a kernel is
compiled again when another one that it calls has changed. It is found by the name of the module, not by
where that is installed: a new environment or a fresh clone of the same kernels compiles nothing either.
A folder named by `NUMBA_CACHE_DIR` is used as it is, with numba's own names. Where nothing can be
written functions are compiled in each process, and nothing is said. Machine code is kept with its digest:
a damaged file is compiled again. A numba whose parts are other than those used here keeps it in its own way.

numba itself, half a second of a processor, is loaded when a compiled function is first called: a
command that calls none does without it. What numba knows of Python and numpy, half of that, is loaded
when something has to be compiled: machine code that is kept has no need of it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache, partial, update_wrapper
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

from sfumato import __version__

HERE = Path(__file__).parent
LATE = (
    b"_hashsecret_", b"numba_parallel_for", b"do_scheduling", b"_sched", b"_num_threads",
    b"get_thread_id", b"_parallel_chunksize",
)  # fmt: skip
"""Parts of names of functions that numba provides only once all of it is loaded."""
TRIED = (0, 68)
"""The last numba of which these are known to be all: of a later one, all of it is loaded."""
# Threads that need a function at once wait for one of them to make it: where machine code is kept is a
# setting of all of numba, and no thread may see that of another's function.
MAKING = RLock()


@lru_cache(maxsize=1)
def _numba() -> Any:
    """numba, which from then on sees what it made of a function of ours where it sees the function."""
    import numba
    from numba.core.types import Dispatcher
    from numba.extending import typeof_impl

    for kind in (Outer, Inner):
        typeof_impl.register(kind)(lambda value, _: Dispatcher(value.compiled))
    return numba


@lru_cache(maxsize=1)
def cache_folder() -> str:
    """Where machine code is kept: `NUMBA_CACHE_DIR`, or a folder of this very source in the user's cache."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return chosen
    digest = hashlib.sha256()
    # numba looks at the file of a function alone; what functions of other files call is in these, and
    # in the modules that these take constants from.
    files = set(HERE.rglob("*kernel.py"))
    imported = re.compile(r"^from sfumato\.([\w.]+) import", re.MULTILINE)
    for file in tuple(files):
        names = imported.findall(file.read_text("utf-8"))
        files.update(HERE / f"{name.replace('.', '/')}.py" for name in names)
    for file in sorted(one for one in files if one.is_file()):
        digest.update(file.relative_to(HERE).as_posix().encode() + b"\0" + file.read_bytes())
    return str(_user_cache() / f"{__version__}-{digest.hexdigest()[:12]}")


def _user_cache() -> Path:
    """The folder of this user for what can be made again."""
    try:
        from numba.misc import appdirs
    except ImportError:  # another numba
        return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "sfumato"
    folders: Any = appdirs
    return Path(folders.user_cache_dir("sfumato", appauthor=False))


@lru_cache(maxsize=1)
def _function_cache() -> Any:
    """A cache of one function, in a folder that is named after its module and not after its path."""
    from numba import __version__ as version
    from numba import version_info
    from numba.core import caching, serialize
    from numba.core.runtime import rtsys  # type: ignore[attr-defined]

    parts: Any = caching
    # Up to 0.61 it has an underscore.
    found = getattr(parts, "UserProvidedCacheLocator", None)
    given: Any = found or parts._UserProvidedCacheLocator

    class Locator(given):  # type: ignore[misc]
        @classmethod
        def get_suitable_cache_subpath(cls, py_file: str) -> str:
            if os.environ.get("NUMBA_CACHE_DIR") or not Path(py_file).is_relative_to(HERE):
                return str(super().get_suitable_cache_subpath(py_file))
            return ".".join(Path(py_file).relative_to(HERE).with_suffix("").parts)

        def get_source_stamp(self) -> bytes:
            # Up to 0.67 numba takes the time of the file: that of an installation, not of a kernel.
            return hashlib.sha256(Path(self._py_file).read_bytes()).digest()

    class Kept(parts.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes: ClassVar[list[Any]] = [Locator]

        def reduce(self, cres: Any) -> tuple[str, bytes, bytes]:
            dumps: Any = serialize.dumps
            body: bytes = dumps(super().reduce(cres))
            return version, hashlib.sha256(body).digest(), body

        def rebuild(self, target_context: Any, payload: Any) -> Any:
            made_by, digest, body = payload
            if made_by != version or hashlib.sha256(body).digest() != digest:
                raise ValueError("this is not what was kept")
            payload = pickle.loads(body)  # noqa: S301 - as numba does, from a folder of this user
            if version_info.short > TRIED or not _stands_alone(payload):
                target_context.refresh()
            return super().rebuild(target_context, payload)

    class FunctionCache(parts.FunctionCache):  # type: ignore[misc]
        _impl_class = Kept

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                # numba's own loads all it knows of Python and numpy first, for whatever it may have kept.
                rtsys.initialize(target_context)
                found = self._load_overload(sig, target_context)
            except Exception:  # a damaged file raises anything; none is ever worth a release
                with suppress(Exception):
                    self.flush()
                return None
            # Of two processes that kept two types at once, one may have written the file of the other.
            return found if found and tuple(found.signature.args) == tuple(sig) else None

        def save_overload(self, sig: Any, data: Any) -> None:
            with suppress(Exception):  # a full disk, or an index that another process damaged
                super().save_overload(sig, data)

    return FunctionCache


def _keep(made: Any, function: Callable[..., Any]) -> None:
    """Let numba keep the machine code of a function, or compile it in each process where that cannot be."""
    try:
        made._cache = _function_cache()(function)
    except RuntimeError:  # no locator: there is no folder to write to
        pass
    except (AttributeError, ImportError, TypeError):  # another numba, which keeps it in its own way
        with suppress(RuntimeError):
            made.enable_caching()


def _stands_alone(payload: Any) -> bool:
    """Whether kept machine code calls nothing but what numba provides from the start.

    The secret of Python's hashes and threads come with modules that are loaded to compile.
    """
    try:
        (_, kind, (machine_code, _)), *_ = payload
        return kind == "object" and not any(name in machine_code for name in LATE)
    except (TypeError, ValueError):  # another numba keeps it in another way
        return False


class Outer:
    """A function that is compiled when it is first called, from Python or from another one."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self.options = function, options
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Any:
        """What numba made of it, kept in `cache_folder()` or, if that cannot be, nowhere."""
        with MAKING:
            if (made := self.__dict__.get("compiled")) is not None:
                return made
            numba = _numba()
            # Read when a function is decorated: what others compile stays where they want it.
            before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, cache_folder()
            made = numba.njit(**self.options)(self.py_func)
            try:
                if not numba.config.DISABLE_JIT:
                    _keep(made, self.py_func)
            finally:
                numba.config.CACHE_DIR = before
            self.__dict__["compiled"] = made
        return made

    def __call__(self, *values: Any) -> Any:
        """Run what was compiled."""
        return self.compiled(*values)


def njit(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """`numba.njit(**options)` at the first call, with what it makes kept in `cache_folder()`."""
    return partial(njit, **options) if function is None else Outer(function, options)


class Inner:
    """A function for compiled functions, which see what numba made of it; Python calls it as it was written."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options = function, options

    @cached_property
    def compiled(self) -> Any:
        """What numba made of it; nothing is made for calls from Python."""
        quick = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        with MAKING:
            if (made := self.__dict__.get("compiled")) is None:
                made = _numba().njit(**quick, **self.options)(self.function)
                self.__dict__["compiled"] = made
        return made

    def __call__(self, *values: Any) -> Any:
        """Run without being compiled."""
        return self.function(*values)


def inner(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """`numba.njit` for what only compiled functions call: it is part of their machine code, and kept with it.

    Nothing is made for calls from Python, which halves what a first process compiles.
    """
    return partial(inner, **options) if function is None else Inner(function, options)
