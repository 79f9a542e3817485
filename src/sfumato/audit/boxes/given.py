"""Inputs as users give them: pairs, files of pairs, names of forms; and how inputs are shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from sfumato.audit.boxes.box import Pair
from sfumato.audit.boxes.pairs import Inputs, inputs_of
from sfumato.errors import InvalidInput, InvalidParameter

SHORT = 40
FILES = "first file and second file"
"""The name of the pair of two samples."""
MAX_LETTERS = 60


def as_inputs(inputs: object) -> Sequence[Pair] | Inputs:
    """Inputs as users give them: a form, its name, a .json file of pairs, or pairs.

    >>> as_inputs("queries:3"), as_inputs([(0, 1)])[0].name
    (Queries(count=3), '0 and 1')
    """
    if isinstance(inputs, Path) or (isinstance(inputs, str) and inputs.endswith(".json")):
        return read_pairs(Path(inputs))
    if isinstance(inputs, str):
        return inputs_of(inputs)
    if isinstance(inputs, Sequence):
        return [
            named_pair(*one, number) if isinstance(one, tuple) and len(one) == 2 else one
            for number, one in enumerate(inputs, 1)
        ]
    if hasattr(inputs, "patterns"):
        return cast(Inputs, inputs)
    raise InvalidParameter(
        "inputs are a form of data such as 'numbers', 'queries:10', 'histogram:5' or 'list:20', pairs "
        f"(first, second), or a .json file of pairs, got {inputs!r}; inputs that are no neighbors would "
        "refute a true claim, so none are guessed; nothing was run"
    )


def parse_pair(text: str, number: int = 1) -> Pair:
    """The pair that a JSON list of two inputs states.

    Args:
        text: As in `[0, 1]`.
        number: Of the pair, which names it where its inputs are long.

    Returns:
        The pair.

    Raises:
        InvalidParameter: If it is no list of two.
    """
    try:
        first, second = json.loads(text)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"a pair is a JSON list of two inputs, e.g. '[0, 1]' or '[[1, 0], [1, 1]]', got {text!r}; "
            "nothing was run"
        ) from None
    return named_pair(first, second, number)


def read_pairs(path: Path) -> list[Pair]:
    """Pairs from a .json file: a list of [first, second] or of objects with a name.

    Args:
        path: The file.

    Returns:
        At least one pair.

    Raises:
        InvalidInput: If the file cannot be read or holds no pairs.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is no JSON; nothing was run") from None
    pairs: list[Pair] = []
    for number, one in enumerate(data if isinstance(data, list) else [], 1):
        match one:
            case [first, second]:
                pairs.append(named_pair(first, second, number))
            case {"first": first, "second": second}:
                named = named_pair(first, second, number)
                pairs.append(Pair(first, second, str(one.get("name", named.name))))
            case _:
                pairs.clear()
                break
    if not pairs:
        raise InvalidInput(
            f'{path} must be a list of [first, second] or {{"name", "first", "second"}}; nothing was run'
        )
    return pairs


def named_pair(first: Any, second: Any, number: int) -> Pair:
    """A pair called by its inputs, where these are short."""
    try:
        name = f"{json.dumps(first)} and {json.dumps(second)}"
    except (TypeError, ValueError):
        name = ""
    return Pair(first, second, name if 0 < len(name) <= SHORT else f"pair {number}")


def input_names(pair: Pair) -> tuple[str, str]:
    """What the two inputs are called: samples by their file, all others as they are."""
    if pair.name == FILES:
        first, second = (
            f"the {'second' if data else 'first'} file" for data in (pair.first, pair.second)
        )
        return first, second
    return shown(pair.first), shown(pair.second)


def shown(data: Any) -> str:
    """An input on one short line.

    Args:
        data: Of any kind.

    Returns:
        At most 60 letters.
    """
    plain = data.tolist() if hasattr(data, "tolist") else data
    text = repr(plain)
    if len(text) > MAX_LETTERS and isinstance(plain, list):
        # What tells two long inputs apart is often at their end: say how often a value repeats.
        groups = ((value, len(list(same))) for value, same in groupby(plain))
        parts = (f"{often} x {value!r}" if often > 1 else repr(value) for value, often in groups)
        text = f"[{', '.join(parts)}]"
    return cut(text)


def cut(text: str) -> str:
    """A text, or as much of it as fits on a line."""
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 4]} ..."
