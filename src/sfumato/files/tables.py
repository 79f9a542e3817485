"""Tables: CSV, TSV, JSON lists and Parquet read into rows and columns; CSV written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.files.atomic import write_file

Rows = list[dict[str, Any]]


def write_table(
    path: str | Path,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    overwrite: bool = False,
    private: bool = False,
) -> None:
    r"""Write a CSV file, its lines ended by \n, that is there whole or not at all.

    Args:
        path: Where; the folder must exist.
        header: Names of the columns.
        rows: Rows of as many values.
        overwrite: Whether a file of that name gives way; it keeps who may read it.
        private: Whether only its owner may read it; otherwise as the umask says.

    Raises:
        InvalidInput: The file exists already, or cannot be written; nothing was written.

    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_file(path, text.getvalue(), overwrite=overwrite, private=private)


def read_rows(path: str | Path, *, empty: bool = False) -> Rows:
    """Read a table of public or private rows.

    Args:
        path: CSV with a header line (tabs where the name ends in .tsv), or a JSON list of objects
            where it ends in .json; UTF-8, with or without a byte order mark. Or Parquet, where it ends
            in .parquet.
        empty: Whether a table without rows is allowed.

    Returns:
        One dictionary for each row, by the names of the columns.

    Raises:
        InvalidInput: The file cannot be read or is no such table. No value of the file is quoted.

    """
    file = Path(path)
    if file.suffix == ".parquet":
        held = _parquet_rows(file)
        if not held and not empty:
            raise InvalidInput(f"{path} has no rows; nothing was charged")
        return held
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}; nothing was charged") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text in UTF-8; nothing was charged") from None
    rows: Any
    if file.suffix == ".json":
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError):
            rows = None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InvalidInput(f"{path} is not a JSON list of objects; nothing was charged")
    else:
        reader = csv.DictReader(text.splitlines(), delimiter="\t" if file.suffix == ".tsv" else ",")
        try:
            rows = list(reader)
        except csv.Error:  # a text of 100,000 letters, say; what it says is not repeated
            raise InvalidInput(
                f"{path} is not a table with a header line; nothing was charged"
            ) from None
    if not rows and not empty:
        raise InvalidInput(f"{path} has no rows; nothing was charged")
    found: Rows = rows
    return found


def _parquet_rows(file: Path) -> Rows:
    import pyarrow.parquet

    try:
        found: Rows = pyarrow.parquet.read_table(file).to_pylist()
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "it is not Parquet"
        raise InvalidInput(f"cannot read {file}: {why}; nothing was charged") from None
    return found


def column_of(rows: Rows, name: str, path: str | Path) -> list[Any]:
    """One column of a table.

    Args:
        rows: The rows, as `read_rows` gives them; at least one.
        name: The column.
        path: The file, for messages.

    Returns:
        One value for each row; blanks around text are removed.

    Raises:
        InvalidInput: No row has the column, or one row lacks it (named by its number). Names of
            columns are not quoted: a table without a header has readings in its first line.

    """
    if not any(name in row for row in rows):
        raise InvalidInput(
            f"there is no column {name!r} among the {len(rows[0])} of {path}; nothing was charged"
        )
    for number, row in enumerate(rows, 1):
        if row.get(name) in (None, ""):
            raise InvalidInput(f"{path} has no {name!r} in row {number}; nothing was charged")
    found = [row[name] for row in rows]
    return [value.strip() if isinstance(value, str) else value for value in found]


def has_column(rows: Rows, name: str) -> bool:
    """Whether any row has a column; `column_of` then demands it of all.

    Args:
        rows: The rows, as `read_rows` gives them.
        name: The column.

    Returns:
        True if at least one row has it.

    """
    return any(name in row for row in rows)


def numbers_of(rows: Rows, name: str, path: str | Path) -> list[float]:
    """One column of finite numbers.

    Args:
        rows: The rows, as `read_rows` gives them; at least one.
        name: The column.
        path: The file, for messages.

    Returns:
        One number for each row.

    Raises:
        InvalidInput: A value is missing or no finite number; the row is named, the value not quoted.

    """
    found: list[float] = []
    for number, value in enumerate(column_of(rows, name, path), 1):
        try:
            found.append(float(value))
        except (TypeError, ValueError, OverflowError):
            found.append(math.nan)
        if not math.isfinite(found[-1]):
            raise InvalidInput(
                f"the {name} in row {number} of {path} is not a finite number; nothing was charged"
            )
    return found


def unique_names(names: Iterable[str]) -> list[str]:
    """Each name once: sorted by number if all are numbers, else in the order they come.

    >>> unique_names(["10", "9", "10"]), unique_names(["b", "a", "b"])
    (['9', '10'], ['b', 'a'])
    """
    once = list(dict.fromkeys(names))
    return sorted(once, key=int) if all(name.isdecimal() for name in once) else once
