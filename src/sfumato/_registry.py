"""Things by name: the package's own, those a program registers, and those of installed packages."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """What users may add to: names, and what they stand for. Nothing is loaded before it is asked for.

    Attributes:
        what: What it holds, in a word or two, for messages.
        group: Entry points of this group are things that installed packages add.
        own: Where each of the package's things is, as "module:name".
        added: Those that a program registered.
        made: What an object that was loaded becomes; itself by default.

    >>> numbers = Registry[float]("number", "sfumato.numbers", {"pi": "math:pi"})
    >>> numbers.add("two", 2.0)
    >>> numbers.names(), numbers.get("pi") > numbers.get("two")
    (('pi', 'two'), True)
    """

    def __init__(
        self,
        what: str,
        group: str,
        own: Mapping[str, str],
        *,
        made: Callable[[str, Any], T] = lambda _, found: found,
    ) -> None:
        self.what, self.group, self.own, self.made = what, group, own, made
        self.added: dict[str, T] = {}
        self._loaded: dict[str, T] = {}

    def names(self) -> tuple[str, ...]:
        """The package's own, those that were registered, then those of installed packages."""
        return tuple(dict.fromkeys([*self.own, *self.added, *self._installed()]))

    def get(self, name: str) -> T:
        """What a name stands for; KeyError if nobody knows it, and whose it is if it cannot be loaded."""
        if name in self.added:
            return self.added[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> T:
        if name in self.own:
            module, _, found = self.own[name].partition(":")
            return self.made(name, getattr(importlib.import_module(module), found))
        point = self._installed()[name]
        try:
            return self.made(name, point.load())
        except Exception as problem:
            raise InvalidParameter(
                f"the {self.what} {name!r} of an installed package ({point.value}) cannot be loaded: "
                f"{type(problem).__name__}: {problem}; nothing was done"
            ) from problem

    def add(self, name: str, thing: T, *, replace: bool = False) -> None:
        """Make a thing known by a name that is free, or of itself."""
        if not replace and (name in self.own or self.added.get(name, thing) is not thing):
            raise InvalidParameter(
                f"there is {_a(self.what)} {name!r} already; choose another name; nothing was registered"
            )
        self.added[name] = thing

    def remove(self, name: str) -> None:
        """Forget what was registered by a name; the package's own stay."""
        if self.added.pop(name, None) is None:
            raise InvalidParameter(f"no {self.what} {name!r} was registered; nothing was forgotten")

    def _installed(self) -> dict[str, EntryPoint]:
        import importlib.metadata  # a megabyte that a sensor never needs

        points = _points(importlib.metadata.entry_points, self.group, tuple(sys.path))
        return {one.name: one for one in points}


@lru_cache(maxsize=64)
def _points(
    look: Callable[..., Iterable[EntryPoint]], group: str, path: tuple[str, ...]
) -> tuple[EntryPoint, ...]:
    """What installed packages add to a group: looked up once, it reads a file of every one of them."""
    del path  # another one has other packages
    return tuple(look(group=group))


def _a(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"
