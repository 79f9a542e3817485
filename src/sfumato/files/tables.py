"""Write a table as CSV, whole or not at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sfumato.files.atomic import write_file


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
