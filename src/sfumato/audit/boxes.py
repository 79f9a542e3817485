"""Black boxes: whatever can be run on some data again and again. What is inside is never looked at."""

from __future__ import annotations

import inspect
import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput, InvalidParameter

Outputs = Sequence[Any] | npt.NDArray[Any]


class Box(Protocol):
    """A mechanism that can be run: `run(data, runs)` gives that many independent outputs on the data."""

    @property
    def name(self) -> str:
        """What verdicts and reports call it."""

    def run(self, data: Any, runs: int) -> Outputs:
        """So many independent outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two neighboring inputs; a violation may be in either direction."""

    first: Any
    second: Any
    name: str = "given"


@dataclass(frozen=True, slots=True)
class FunctionBox:
    """A Python function of the data; with a parameter `runs` (or `n`, `size`) it gives many at once."""

    function: Callable[..., Any]
    name: str

    def run(self, data: Any, runs: int) -> Outputs:
        """So many independent outputs."""
        many = _many(self.function)
        if many is None:
            return [self.function(data) for _ in range(runs)]
        found: Outputs = self.function(data, **{many: runs})
        if len(found) != runs:
            raise InvalidParameter(
                f"{self.name} must give {runs} outputs when asked for them, got {len(found)}"
            )
        return found


@dataclass(frozen=True, slots=True)
class CommandBox:
    """A shell command run once for each output, with {data} in it replaced; what it prints is the output."""

    template: str
    name: str
    seconds: float = 60.0

    def run(self, data: Any, runs: int) -> Outputs:
        """What so many runs print; numbers where all of it is numbers."""
        words = [part.replace("{data}", _text(data)) for part in shlex.split(self.template)]
        return [self._once(words) for _ in range(runs)]

    def _once(self, words: list[str]) -> Any:
        try:
            # The user's own command, split as a shell would, never given to one.
            done = subprocess.run(words, capture_output=True, text=True, timeout=self.seconds, check=True)  # noqa: S603
        except (OSError, subprocess.SubprocessError) as problem:
            raise InvalidInput(f"the command {words[0]!r} did not run to its end: {problem}") from None
        return parse_output(done.stdout)


@dataclass(frozen=True, slots=True)
class SampleBox:
    """Outputs drawn beforehand: inputs are 0 and 1; they run out."""

    first: Outputs
    second: Outputs
    name: str
    taken: list[int]

    def run(self, data: Any, runs: int) -> Outputs:
        """The next so many outputs of this input; fewer are an error."""
        held = self.second if data else self.first
        begin = self.taken[bool(data)]
        if begin + runs > len(held):
            raise InvalidInput(f"{self.name} holds {len(held)} outputs, asked for {begin + runs}")
        self.taken[bool(data)] = begin + runs
        return held[begin : begin + runs]


def _text(data: Any) -> str:
    """Data as one word of a command line: words as they are, all else as JSON."""
    if isinstance(data, str):
        return data
    return json.dumps(data.tolist() if isinstance(data, np.ndarray | np.generic) else data)


def parse_output(text: str) -> Any:
    """Printed output as numbers where it is numbers, else as words.

    >>> parse_output("1.5\\n"), parse_output("1 2, 3"), parse_output("yes")
    (1.5, (1.0, 2.0, 3.0), 'yes')
    """
    words = text.replace(",", " ").split()
    try:
        found = tuple(float(word) for word in words)
    except ValueError:
        return text.strip()
    return found[0] if len(found) == 1 else found or text.strip()


def function_box(target: str | Callable[..., Any]) -> FunctionBox:
    """A box of a function, or of the one that `module:function` names."""
    if callable(target):
        return FunctionBox(target, getattr(target, "__qualname__", repr(target)))
    module, _, name = target.partition(":")
    if not (module and name):
        raise InvalidParameter(f"a target is module:function, got {target!r}; nothing was run")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as problem:
        raise InvalidInput(f"cannot load {target}: {problem}; nothing was run") from None
    if not callable(found):
        raise InvalidInput(f"{target} is not a function; nothing was run")
    return FunctionBox(found, target)


def read_samples(first: Path, second: Path) -> SampleBox:
    """A box of two files with one output on each line."""
    lines = []
    for path in (first, second):
        try:
            lines.append(
                [parse_output(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
            )
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidInput(f"cannot read {path}: {problem}; nothing was tested") from None
    return SampleBox(lines[0], lines[1], f"{first} and {second}", [0, 0])


def _many(function: Callable[..., Any]) -> str | None:
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    return next((name for name in ("runs", "n", "size") if name in names), None)
