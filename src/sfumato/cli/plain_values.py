"""Words of the command line as values: what is plain is taken as it stands, all else is typer's.

Typer checks every option with Pydantic, whose loading takes longer than most commands' own code. A
word that is a name, a path or a number of the usual form means the same to both; whatever may not is
left to typer, with all that it says of mistakes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from types import GenericAlias
from typing import Any, get_args

UNSURE = object()
"""What `_plain` gives back for a value that typer shall see."""
NUMBERS = {
    int: re.compile(r"-?[1-9][0-9]{0,14}|0"),
    float: re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?"),
}


def take_plainly(parameters: Iterable[Any]) -> None:
    """Let these parameters of typer take plain values without Pydantic.

    A typer that converts in another way than that of 2026 does as it does.
    """
    for parameter in parameters:
        descriptor = getattr(parameter, "type_descriptor", None)
        if getattr(parameter, "_runtime_param", UNSURE) is None and _is_usual(descriptor):
            parameter._runtime_param = _Plainly(parameter, descriptor)


def _is_usual(descriptor: Any) -> bool:
    """Whether a parameter has nothing of its own to say about its values but their type."""
    about = getattr(descriptor, "parameter_info", None)
    unusual = ("parser", "clamp", "exists", "resolve_path", "writable", "allow_dash",
               "path_type")  # fmt: skip
    try:
        return all(
            getattr(about, name) is None or getattr(about, name) is False for name in unusual
        )
    except AttributeError:
        return False


def _is_open_or_nowhere(path: str) -> bool:
    """Whether a file can be read or is not there, of which a command will speak."""
    try:
        os.stat(path)
    except OSError:
        return True
    return os.access(path, os.R_OK)


class _Plainly:
    """In the place of what typer makes to convert the values of a parameter."""

    def __init__(self, parameter: Any, descriptor: Any) -> None:
        self.parameter, self.descriptor = parameter, descriptor
        about = descriptor.parameter_info
        self.any_place = about.file_okay and about.dir_okay
        self.readable, self.least, self.most = about.readable, about.min, about.max

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value, or what typer makes or says of it."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        found = self._found(value, several)
        if found is not UNSURE:
            return found
        if self.parameter._runtime_param is self:
            self.parameter._runtime_param = None  # typer makes its own
        return self.parameter.get_runtime_param().coerce(value, param=param, ctx=ctx)

    def _found(self, value: Any, several: bool) -> Any:
        kind = self.descriptor.annotation
        if not several:
            return self._plain(kind, value)
        if not isinstance(kind, GenericAlias) or kind.__origin__ is not list:
            return UNSURE
        if not isinstance(value, list | tuple):
            return UNSURE
        (kind,) = get_args(kind)
        all_found = [self._plain(kind, one) for one in value]
        return UNSURE if any(one is UNSURE for one in all_found) else all_found

    def _plain(self, kind: Any, value: Any) -> Any:
        """One value of this type, or UNSURE."""
        if not isinstance(kind, type):
            return UNSURE
        if issubclass(kind, Enum) and type(value) is kind:
            return value
        if kind in NUMBERS and type(value) is kind:
            return self._within(value)
        if type(value) is not str or not value.isascii():
            return UNSURE
        if kind is str:
            return value
        if kind is Path and self.any_place and "\0" not in value:
            return Path(value) if not self.readable or _is_open_or_nowhere(value) else UNSURE
        if kind in NUMBERS and NUMBERS[kind].fullmatch(value):
            return self._within(kind(value))
        return UNSURE

    def _within(self, number: Any) -> Any:
        """A number that is not too small or too large, nor none at all."""
        low = self.least is None or number >= self.least
        return number if low and (self.most is None or number <= self.most) else UNSURE
