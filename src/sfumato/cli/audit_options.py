"""What is audited, and on what: claims, targets, pairs and budgets as a command line spells them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.audit_words import FILES, shown
from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError

if TYPE_CHECKING:
    from sfumato.audit.boxes import Box, Inputs, Pair
    from sfumato.audit.sequential import Budget
    from sfumato.privacy import Claim

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
MOST = 20_000_000
"""Runs, where only time is limited: the outputs of so many fit in memory."""
SHORT = 40


class Relation(StrEnum):
    """Between which data sets a claim is made."""

    added = "added"
    replaced = "replaced"


ClaimOption = Annotated[
    str,
    typer.Option(
        help="What is claimed: epsilon=1 or epsilon=1,delta=1e-6; rho=0.5 (zCDP); mu=1 (Gaussian DP); with "
        "gamma=0.05, except on so large a share of random data.",
        show_default=False,
    ),
]
RelationOption = Annotated[
    Relation,
    typer.Option(help="Neighbors: one user added or removed, or one user's data replaced."),
]
TargetArgument = Annotated[
    str,
    typer.Argument(
        help="module:function; the current folder is looked in. Given `runs` (or `n`, `size`), the function "
        "returns so many outputs.",
        show_default=False,
    ),
]
CommandOption = Annotated[
    str,
    typer.Option(
        help="Instead: a program that prints one output, e.g. 'prog {data}'.", show_default=False
    ),
]
SamplesOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        help="Instead: outputs on two neighbors, two files with one output a line.",
        show_default=False,
    ),
]
WeightOption = Annotated[
    float, typer.Option(help="With gamma: how much of a proximity in gamma counts as one in delta.")
]
RoundOption = Annotated[
    int | None,
    typer.Option(
        "--round",
        help="Round outputs to multiples of 2**-BITS first, to look past leaks of low bits.",
        metavar="BITS",
        min=-60,
        max=60,
        show_default=False,
    ),
]


def claim_of(text: str, relation: Relation) -> Claim:
    """The claim that a text states."""
    from sfumato.privacy import (
        ZCDP,
        AddRemoveUser,
        ApproxDP,
        Claim,
        GaussianDP,
        PureDP,
        RandomApproxDP,
        RandomPureDP,
        ReplaceUser,
    )

    kinds: dict[frozenset[str], Callable[..., Any]] = {
        frozenset(["epsilon"]): PureDP,
        frozenset(["epsilon", "delta"]): ApproxDP,
        frozenset(["rho"]): ZCDP,
        frozenset(["mu"]): GaussianDP,
        frozenset(["epsilon", "gamma"]): RandomPureDP,
        frozenset(["epsilon", "delta", "gamma"]): RandomApproxDP,
    }
    parts = [part.partition("=") for part in text.split(",")]
    numbers = {name.strip(): value.strip() for name, _, value in parts}
    kind = kinds.get(frozenset(numbers))
    if kind is None or len(numbers) < len(parts):
        raise InvalidParameter(
            "a claim is epsilon=, epsilon=,delta=, rho= or mu=, perhaps with gamma= after an epsilon, got "
            f"{text!r}; nothing was run"
        )
    return Claim(kind(**numbers), AddRemoveUser() if relation is Relation.added else ReplaceUser())


def budget_of(text: str) -> Budget:
    """How long an audit may take: 60s, 200000 runs, or both as 60s,200000."""
    from sfumato.audit.sequential import Budget

    runs: int | None = None
    seconds: float | None = None
    for part in text.split(","):
        time = re.fullmatch(r"\s*(\d+(?:\.\d+)?)([smh])\s*", part)
        count = re.fullmatch(r"\s*([1-9]\d*)\s*", part)
        if time and seconds is None and float(time[1]) > 0:
            seconds = float(time[1]) * SECONDS[time[2]]
        elif count and runs is None:
            runs = int(count[1])
        else:
            raise InvalidParameter(
                "a budget is a time such as 60s or 5m, a number of runs, or both as 60s,200000, got "
                f"{text!r}; nothing was run"
            )
    return Budget(MOST if runs is None else runs, seconds)


def box_of(target: str, command: str, samples: tuple[Path, Path] | None) -> Box:
    """What is to be run."""
    from sfumato.audit.boxes import CommandBox, FunctionBox, function_box, read_samples

    if sum(map(bool, (target, command, samples))) != 1:
        raise InvalidParameter(
            "an audit is of a module:function, of a --command or of --samples, and of one of them; "
            "nothing was run"
        )
    if samples is not None:
        found = read_samples(*samples)
        if not (found.first and found.second):
            raise InvalidInput(
                f"{samples[0] if not found.first else samples[1]} holds no output; nothing was run"
            )
        return found
    if command:
        if "{data}" not in command:
            raise InvalidParameter(
                f"a command says where {{data}} goes, got {command!r}; nothing was run"
            )
        return CommandBox(command, command)
    if (module := target.partition(":")[0]).endswith(".py"):
        name = module.removesuffix(".py").replace("/", ".") + target.removeprefix(module)
        raise InvalidParameter(
            f"a target is module:function, got {target!r}; try {name}; nothing was run"
        )
    with_function = loaded(function_box, target)
    return FunctionBox(careful(with_function.function, target), target)


def loaded(load: Callable[[str], Any], target: str) -> Any:
    """What a module:function names, in the current folder too; what its module raises is one sentence."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return load(target)
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
                f"{name} failed on {_given(args)}: {type(problem).__name__}: {problem}; nothing was concluded"
            ) from problem

    return run


def _given(args: tuple[Any, ...]) -> str:
    """The first argument in words: an input, or a generator, of which there is nothing to see."""
    one = args[0] if args else None
    return "a generator" if type(one).__name__ == "Generator" else f"the input {shown(one)}"


def pairs_of(
    box: Box, inputs: str, pair: Sequence[str], file: Path | None
) -> Sequence[Pair] | Inputs:
    """The inputs to try: a form of data, or pairs as they are given."""
    from sfumato.audit.boxes import Pair, SampleBox, inputs_of

    if isinstance(box, SampleBox):
        if inputs or pair or file:
            raise InvalidParameter(
                "--samples are of one pair already, without others; nothing was run"
            )
        return [Pair(0, 1, FILES)]
    if sum(map(bool, (inputs, pair, file))) != 1:
        raise InvalidParameter(
            "say on which neighbors to run it: --inputs numbers, queries:10, histogram:5 or list:20 for a "
            "form of data, --pair '[A, B]', or --pairs FILE, and one of them; inputs that are no neighbors "
            "would refute a true claim, so none are guessed; nothing was run"
        )
    if inputs:
        return inputs_of(inputs)
    if file is not None:
        return _read_pairs(file)
    return [_read_pair(text, number) for number, text in enumerate(pair, 1)]


def _read_pair(text: str, number: int) -> Pair:
    try:
        first, second = json.loads(text)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"a pair is a JSON list of two inputs, e.g. '[0, 1]' or '[[1, 0], [1, 1]]', got {text!r}; "
            "nothing was run"
        ) from None
    return _named(first, second, number)


def _named(first: Any, second: Any, number: int) -> Pair:
    """A pair called by its inputs, where these are short."""
    from sfumato.audit.boxes import Pair

    name = f"{json.dumps(first)} and {json.dumps(second)}"
    return Pair(first, second, name if len(name) <= SHORT else f"pair {number}")


def _read_pairs(path: Path) -> list[Pair]:
    from sfumato.audit.boxes import Pair

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is no JSON; nothing was run") from None
    found: list[Pair] = []
    for number, one in enumerate(data if isinstance(data, list) else [], 1):
        match one:
            case [first, second]:
                found.append(_named(first, second, number))
            case {"first": first, "second": second}:
                named = _named(first, second, number)
                found.append(Pair(first, second, str(one.get("name", named.name))))
            case _:
                found.clear()
                break
    if not found:
        raise InvalidInput(
            f'{path} must be a list of [first, second] or {{"name", "first", "second"}}; nothing was run'
        )
    return found
