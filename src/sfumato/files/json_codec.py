"""JSON files, one way: read strictly, with one shape of error, and written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.files.atomic import write_file


def read_json(path: str | Path, what: str, *, undone: str = "") -> Any:
    """Read what a JSON file holds.

    Args:
        path: The file, UTF-8 text.
        what: What the file should be, for messages, with its article: "a whole release".
        undone: What was not done because of a refusal: "nothing was checked".

    Returns:
        The data: dictionaries, lists, strings, numbers, booleans and None.

    Raises:
        InvalidInput: The file cannot be read, is no text or is not what `parse_json` takes.

    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as problem:
        raise InvalidInput(_ended(f"cannot read {path}: {problem.strerror}", undone)) from None
    except UnicodeDecodeError:
        raise InvalidInput(_ended(f"{path} is not {what}: it is no text", undone)) from None
    return parse_json(text, what, path=path, undone=undone)


def parse_json(text: str, what: str, *, path: str | Path = "", undone: str = "") -> Any:
    """Parse a JSON text.

    Args:
        text: The text.
        what: What it should be, for messages, with its article.
        path: Where it came from, for messages; empty where it is no file.
        undone: What was not done because of a refusal.

    Returns:
        The data.

    Raises:
        InvalidInput: The text is no JSON or too deep, an object has a name twice, or a number is
            NaN or Infinity, which JSON does not have.

    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except _Refused as problem:
        raise InvalidInput(_ended(f"{_not(path, what)}: {problem}", undone)) from None
    except (ValueError, RecursionError):
        raise InvalidInput(_ended(f"{_not(path, what)}: it is no JSON", undone)) from None


class _Refused(ValueError):
    """Python reads it, and JSON has no such thing."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of two values of one name readers take one or the other, and a signature holds for either."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise _Refused(f"it has {twice[:80]!r} twice")
    return found


def _no_number(text: str) -> Any:
    raise _Refused(f"{text} is no number in JSON")


def write_json(
    path: str | Path,
    data: Any,
    *,
    overwrite: bool = False,
) -> None:
    """Write data as indented JSON, whole or not at all.

    Args:
        path: The file; its folder must exist.
        data: What JSON holds; numbers must be finite.
        overwrite: Whether a file of that name gives way.

    Raises:
        InvalidInput: The file exists already, or cannot be written; nothing was written.
        ValueError: A number is infinite or not a number; nothing was written.

    """
    text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    write_file(path, text, overwrite=overwrite)


def indented(data: Any) -> str:
    """What `json.dumps(data, indent=1, allow_nan=False)` gives, lists of numbers many times as fast.

    The standard library has no compiled code for indented text: it walks through a map of 65,000
    tiles in Python.

    Args:
        data: What JSON holds, with text for keys; numbers must be finite.

    Returns:
        The text, without a line end.

    Raises:
        ValueError: A number is infinite or not a number.

    Example:
        >>> data = {"a": [1, 2.5, None], "b": {"c": [], "d": [[1], "x, y"]}}
        >>> indented(data) == json.dumps(data, indent=1)
        True

    """
    return _indented(data, "\n")


def _indented(data: Any, start: str) -> str:
    """The text of a value whose lines begin with `start`, a line end and the blanks of its depth."""
    below = f"{start} "
    if isinstance(data, dict) and data:
        items = [f"{json.dumps(key)}: {_indented(value, below)}" for key, value in data.items()]
        return f"{{{below}{f',{below}'.join(items)}{start}}}"
    flat = json.dumps(data, allow_nan=False)
    if not isinstance(data, list | tuple) or not data:
        return flat
    # Without text and without more lists every comma is one between two numbers.
    if not any(sign in flat for sign in '"{') and flat.rfind("[") == 0:
        return f"[{below}{flat[1:-1].replace(', ', f',{below}')}{start}]"
    return f"[{below}{f',{below}'.join(_indented(one, below) for one in data)}{start}]"


@contextmanager
def decoding(what: str, *, path: str | Path = "", undone: str = "") -> Iterator[None]:
    """Turn what goes wrong while data becomes a value into one sentence.

    Args:
        what: What the data should be, for messages, with its article: "a whole release".
        path: The file the data came from; empty where it is no file.
        undone: What was not done because of a refusal.

    Yields:
        Nothing; decode inside the block.

    Raises:
        InvalidInput: The block raised KeyError (the message names the part), TypeError, ValueError,
            ArithmeticError, LookupError or RecursionError (the message quotes it).

    Example:
        >>> with decoding("a whole point"):
        ...     {"x": 1}["y"]
        Traceback (most recent call last):
        sfumato.errors.InvalidInput: not a whole point: it has no 'y'

    """
    try:
        yield
    except KeyError as problem:
        raise InvalidInput(_ended(f"{_not(path, what)}: it has no {problem}", undone)) from problem
    except RecursionError:
        raise InvalidInput(_ended(f"{_not(path, what)}: it is nested too deeply", undone)) from None
    except (TypeError, ValueError, ArithmeticError, LookupError) as problem:
        raise InvalidInput(_ended(f"{_not(path, what)}: {problem}", undone)) from problem


def _not(path: str | Path, what: str) -> str:
    return f"{path} is not {what}" if str(path) else f"not {what}"


def _ended(sentence: str, undone: str) -> str:
    return f"{sentence}; {undone}" if undone else sentence
