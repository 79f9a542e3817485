"""Black boxes: whatever can be run on some data again and again. What is inside is never looked at."""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
import os
import shlex
import signal
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
    """Two neighboring inputs; a violation may be in either direction.

    Attributes:
        first: One input.
        second: Its neighbor.
        name: What verdicts call the pair.
    """

    first: Any
    second: Any
    name: str = "given"


@dataclass(frozen=True, slots=True)
class FunctionBox:
    """A Python function of the data, run once for each output.

    With a further parameter `runs`, or `n` or `size` without a default, it gives so many outputs at
    once.

    Attributes:
        function: Of the data.
        name: What verdicts call it.
    """

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
    """A shell command run once for each output, with {data} in it replaced; what it prints is the output.

    The data stay one word of the command, or a part of the one that {data} stands in: they are
    quoted as the quotes around them ask for, and never run. Nothing is on the command's standard
    input.

    Attributes:
        template: The command, with {data} in it.
        name: What verdicts call it.
        seconds: That one run may take.
    """

    template: str
    name: str
    seconds: float = 60.0

    def run(self, data: Any, runs: int) -> Outputs:
        """What so many runs print; numbers where all of it is numbers."""
        text = _text(data)
        command = filled(self.template, text)
        return [self._once(command, text) for _ in range(runs)]

    def _once(self, command: str, text: str) -> Any:
        shown = text if len(text) <= 60 else text[:57] + "..."
        # The user's own command, for their own shell; the data in it are quoted. In a session of
        # its own, so that what the shell has started ends with it.
        running = subprocess.Popen(  # noqa: S602
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
            start_new_session=True,
        )
        try:
            printed, complaint = running.communicate(timeout=self.seconds)
        except BaseException as problem:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
            if isinstance(problem, subprocess.TimeoutExpired):
                raise InvalidInput(
                    f"the command {self.template!r} did not run to its end within {self.seconds:g} s on the "
                    f"input {shown}; nothing was concluded"
                ) from None
            raise
        if running.returncode:
            last = (complaint.strip().splitlines() or ["it said nothing"])[-1]
            raise InvalidInput(
                f"the command {self.template!r} failed with exit code {running.returncode} on the input "
                f"{shown}: {last}; nothing was concluded"
            )
        return parse_output(printed)


@dataclass(frozen=True, slots=True)
class SampleBox:
    """Outputs drawn beforehand: inputs are 0 and 1; they run out.

    Attributes:
        first: Outputs on input 0.
        second: Outputs on input 1.
        name: What verdicts call it.
        taken: How many of either were used.
    """

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


def filled(template: str, text: str) -> str:
    """A shell command with {data} replaced by a text that the shell takes as it is.

    >>> print(filled("f {data}", "a b"), filled("f '-x {data}'", "a b"), filled('f "{data}"', "$a"))
    f 'a b' f '-x a b' f "\\$a"
    """
    before, *others = template.split("{data}")
    done, quote = before, _quote_after(before, "")
    for part in others:
        if quote == "'":
            done += text.replace("'", "'\"'\"'")
        elif quote == '"':
            done += "".join("\\" + letter if letter in '\\"$`' else letter for letter in text)
        else:
            done += shlex.quote(text)
        done += part
        quote = _quote_after(part, quote)
    return done


def _quote_after(text: str, quote: str) -> str:
    """The quote that is open where a part of a shell command ends, or nothing."""
    letters = iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            next(letters, None)
        elif quote == letter:
            quote = ""
        elif not quote and letter in "'\"":
            quote = letter
    return quote


def parse_output(text: str) -> Any:
    """Printed output as numbers where it is numbers, as columns where it is a line with commas, else a word.

    >>> parse_output("1.5\\n"), parse_output("1 2, 3"), parse_output("yes"), parse_output("yes,1.5")
    (1.5, (1.0, 2.0, 3.0), 'yes', ('yes', 1.5))
    """
    line = text.strip()
    numbers = [_number(word) for word in line.replace(",", " ").split()]
    if numbers and not any(isinstance(one, str) for one in numbers):
        return numbers[0] if len(numbers) == 1 else tuple(numbers)
    if "," in line and "\n" not in line:
        columns = tuple(_number(word.strip()) for word in next(csv.reader([line])))
        if any(isinstance(one, float) for one in columns):
            return columns
    return line


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


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
    """A box of two files with one output on each line; an empty line is an empty output.

    The outputs of either file are put in a fixed order that depends on their number alone, as if
    shuffled: in a sorted file those that come first are not like the others.
    """
    held = []
    for side, path in enumerate((first, second)):
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidInput(f"cannot read {path}: {problem}; nothing was tested") from None
        # The last line ends the file; a file of a single one, as editors leave it, is empty.
        lines = text.removesuffix("\n").split("\n") if text not in ("", "\n") else []
        outputs = [parse_output(line) for line in lines]
        if len(outputs) > 1 and not _has_number(outputs[0]) and all(map(_has_number, outputs[1:])):
            raise InvalidInput(
                f"{path} has no number on its first line, {lines[0]!r}, and numbers on all others: take the "
                "line away if it is a header, put it further down if it is an output; nothing was tested"
            )
        held.append([outputs[place] for place in shuffled(len(outputs), side)])
    if first.samefile(second):
        raise InvalidInput(f"samples are two files, got {first} twice; nothing was tested")
    return SampleBox(held[0], held[1], f"{first} and {second}", [0, 0])


def _has_number(output: Any) -> bool:
    return any(
        isinstance(one, float) for one in (output if isinstance(output, tuple) else (output,))
    )


def shuffled(size: int, side: int) -> list[int]:
    """Places in an order that has nothing to do with what is there."""
    return sorted(
        range(size), key=lambda place: hashlib.sha256(f"{side} {place}".encode()).digest()
    )


def _many(function: Callable[..., Any]) -> str | None:
    """The parameter that asks for many outputs at once; the first one is the data, whatever its name."""
    try:
        found = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = {
        one.name
        for one in found
        if one.kind in by_name and (one.name == "runs" or one.default is inspect.Parameter.empty)
    }
    return next((name for name in ("runs", "n", "size") if name in names), None)
