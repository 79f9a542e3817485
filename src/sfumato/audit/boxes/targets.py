"""Mechanisms as users give them: a function, its name, a command with {data} in it, or two samples."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.audit.boxes.box import (
    Box,
    CommandBox,
    FunctionBox,
    Outputs,
    SampleBox,
    function_box,
    read_samples,
    shuffled,
)
from sfumato.audit.boxes.given import shown
from sfumato.audit.boxes.runs import as_box
from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError

Mechanism = Box | Callable[..., Any] | str | tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class CountedBox:
    """A box with the number of its runs, and outputs rounded to multiples of 2**-bits if asked."""

    box: Box
    bits: int | None = None
    made: list[int] = field(default_factory=lambda: [0])

    @property
    def name(self) -> str:
        """The box's own, with the rounding: that makes it another mechanism."""
        return self.box.name + _suffix(self.bits)

    def run(self, data: Any, runs: int) -> Outputs:
        """So many independent outputs."""
        self.made[0] += runs
        outputs = self.box.run(data, runs)
        return outputs if self.bits is None else rounded(outputs, self.bits)


def as_mechanism(mechanism: Mechanism) -> Box:
    """What is to be run.

    A box; a function of the data; `module:function`; a shell command with {data} in it; or two samples
    of outputs, as arrays, lists or files with one output a line.
    """
    if isinstance(mechanism, str):
        return command_box(mechanism) if "{data}" in mechanism else target_box(mechanism)
    if isinstance(mechanism, tuple) and len(mechanism) == 2:
        return sample_box(*mechanism)
    return as_box(mechanism)


def target_box(target: str) -> FunctionBox:
    """A box of the function that `module:function` names; its mistakes end an audit in one sentence.

    Args:
        target: As in `survey:mean`; the current folder is looked in.

    Returns:
        The box.

    Raises:
        InvalidParameter: If the target is not of this form.
        InvalidInput: If it cannot be loaded.
    """
    if (module := target.partition(":")[0]).endswith(".py"):
        name = module.removesuffix(".py").replace("/", ".") + target.removeprefix(module)
        raise InvalidParameter(
            f"a target is module:function, got {target!r}; try {name}; nothing was run"
        )
    return FunctionBox(careful(load_function(target), target), target)


def command_box(template: str) -> CommandBox:
    """A box of a shell command, in which {data} stands for the input.

    Args:
        template: The command.

    Returns:
        The box.

    Raises:
        InvalidParameter: If {data} is not in it.
    """
    if "{data}" not in template:
        raise InvalidParameter(
            f"a command says where {{data}} goes, got {template!r}; nothing was run"
        )
    return CommandBox(template, template)


def sample_box(first: Any, second: Any) -> SampleBox:
    """A box of outputs drawn beforehand on two neighbors: arrays, columns, lists, or files.

    Args:
        first: Outputs on one input: an array, a list, or a file with one output a line.
        second: Outputs on its neighbor.

    Returns:
        The box; its outputs are in a fixed order, as if shuffled.

    Raises:
        InvalidInput: If a file cannot be read, or there is no output.
    """
    if isinstance(first, str | Path) and isinstance(second, str | Path):
        held = read_samples(Path(first), Path(second))
        names: tuple[Any, Any] = (first, second)
    else:
        plain = (one.to_numpy() if hasattr(one, "to_numpy") else one for one in (first, second))
        one, other = (
            [sample[at] for at in shuffled(len(sample), side)] for side, sample in enumerate(plain)
        )
        held = SampleBox(one, other, "first sample and second sample", [0, 0])
        names = ("the first sample", "the second sample")
    if not (len(held.first) and len(held.second)):
        empty = names[0] if not len(held.first) else names[1]
        raise InvalidInput(f"{empty} holds no output; nothing was run")
    return held


def prepared(box: Box, bits: int | None) -> Box:
    """The box to audit: counted, and rounded if asked; samples run by themselves and are only rounded."""
    if not isinstance(box, SampleBox):
        return CountedBox(box, bits)
    if bits is None:
        return box
    first, second = rounded(box.first, bits), rounded(box.second, bits)
    return replace(box, first=first, second=second, name=box.name + _suffix(bits))


def runs_made(box: Box) -> int:
    """How often a prepared box was run in all, what was thrown away included; 0 of samples."""
    return box.made[0] if isinstance(box, CountedBox) else 0


def rounded(value: Any, bits: int) -> Any:
    """Numbers as multiples of 2**-bits, in whatever holds them; all else as it is.

    >>> rounded([0.3, (1.26, "yes")], 2)
    [0.25, (1.25, 'yes')]
    """
    match value:
        case np.ndarray() if value.dtype.kind == "f":
            scaled = np.ldexp(value, bits)
            return np.where(np.isfinite(scaled), np.ldexp(np.rint(scaled), -bits), value)
        case np.ndarray() if value.dtype.kind == "O":
            return np.array([rounded(part, bits) for part in value], dtype=object)
        case float() | np.floating() if abs(float(value)) < math.ldexp(1.0, 900):
            return math.ldexp(round(math.ldexp(float(value), bits)), -bits)
        case tuple():
            return tuple(rounded(part, bits) for part in value)
        case Sequence() if not isinstance(value, str | bytes):
            return [rounded(part, bits) for part in value]
        case _:
            return value


def load_function(target: str) -> Callable[..., Any]:
    """The function that `module:function` names, also in the current folder.

    Args:
        target: As in `survey:mean`.

    Returns:
        The function; what its module raises is told in one sentence.

    Raises:
        InvalidInput: If there is no such function, or its module cannot be loaded.
        InvalidParameter: If the target is not of this form.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return function_box(target).function
    except SfumatoError:
        raise
    except Exception as problem:
        raise InvalidInput(
            f"cannot load {target}: {type(problem).__name__}: {problem}; nothing was run"
        ) from problem


def careful(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function, whose own mistakes end the audit in one sentence; its signature stays to be seen."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except SfumatoError:
            raise
        except Exception as problem:
            raise InvalidInput(
                f"{name} failed on {_argument(args)}: {type(problem).__name__}: {problem}; nothing was "
                "concluded"
            ) from problem

    return run


def _argument(args: tuple[Any, ...]) -> str:
    """The first argument in words: an input, or a generator, of which there is nothing to see."""
    one = args[0] if args else None
    return "a generator" if type(one).__name__ == "Generator" else f"the input {shown(one)}"


def _suffix(bits: int | None) -> str:
    return "" if bits is None else f", rounded to multiples of 2**{-bits}"
