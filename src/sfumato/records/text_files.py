"""The public part of text files: the header of a CSV, the keys of JSON; never a value."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

from sfumato.errors import InvalidInput
from sfumato.records.text_rows import LONGEST_HEADER


def header(path: Path, delimiter: str) -> tuple[str, ...]:
    """The names of the columns of a CSV, from its first line; a column without a name is called column0, ...

    A file whose first line is no header holds a row there. Such a line is not taken, since names
    are shown: a header has no number among its names, and none is empty but the first.
    """
    text = _beginning(path).decode("utf-8-sig", errors="replace")
    line = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), None)
    if not line:
        raise InvalidInput(
            f"{path} must begin with a line that names its columns; nothing was read"
        )
    if "" in line[1:] or any(_reads_as_number(name) or not _is_text(name) for name in line):
        raise InvalidInput(
            f"the first line of {path} must name its columns, and it holds a number, an empty name or bytes "
            "that are no text; nothing was read"
        )
    names = tuple(name.strip() or f"column{place}" for place, name in enumerate(line))
    if len({name.lower() for name in names}) != len(names):
        raise InvalidInput(f"the header of {path} names a column twice; nothing was read")
    return names


def keys(path: Path) -> tuple[str, ...]:
    """The names of the columns of JSON, from the object in its first line; none if the file is empty.

    In a list no reader can tell where a broken object ends, so that one row could stop it.
    """
    text = _beginning(path).decode("utf-8-sig", errors="replace").lstrip()
    if text.startswith("["):
        raise InvalidInput(
            f"{path} must hold one object per line (NDJSON), not a list of them; "
            "jq -c '.[]' makes one of the other; nothing was read"
        )
    if not text:
        return ()
    try:
        # Numbers stay text: one of too many digits is an error to Python.
        first = json.loads(text.partition("\n")[0], parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        first = None
    if not isinstance(first, dict) or not first:
        raise InvalidInput(
            f"the first line of {path} must hold an object that names its columns; nothing was read"
        )
    return tuple(first)


def _beginning(path: Path) -> bytes:
    try:
        with _opened(path) as file:
            return b"".join(_pieces(file))
    except (OSError, EOFError):
        raised = InvalidInput(f"{path} could not be read as {_kind(path)}; nothing was read")
    raise raised


def _pieces(file: gzip.GzipFile | io.BufferedReader) -> Iterator[bytes]:
    """At most LONGEST_HEADER bytes; the end of a cut-off archive is the end of the file here."""
    left = LONGEST_HEADER
    while left > 0:
        try:
            piece = file.read1(left)
        except EOFError:
            return
        if not piece:
            return
        left -= len(piece)
        yield piece


def _opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _kind(path: Path) -> str:
    return "a gzip archive" if path.suffix.lower() == ".gz" else "a file"


def _reads_as_number(name: str) -> bool:
    return (
        re.fullmatch(r"\s*[+-]?([0-9]+[.,]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?\s*", name)
        is not None
    )


def _is_text(name: str) -> bool:
    return name.isprintable() and "\ufffd" not in name
