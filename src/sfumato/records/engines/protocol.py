"""What an engine is: who opens files and tables in memory as Ibis tables, and counts their rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from sfumato.records.text_rows import TextRows

_serial = itertools.count()


@dataclass(frozen=True, slots=True)
class Files:
    """Files of one format; text files as one reader reads them for every engine."""

    source: str
    paths: tuple[str, ...]
    text: TextRows | None = None

    @property
    def unreadable(self) -> str:
        """What is said if an engine cannot open them."""
        kind = "Parquet" if self.text is None else self.text.format
        return f"{self.source} could not be read as {kind}; nothing was read"


class RowEngine(Protocol):
    """Reads public schemas at once and private rows when it counts them; nothing of a row is printed.

    Register one with `register_engine`, or by the entry-point group `sfumato.engines`. The suite
    tests/records holds for every engine.

    Attributes:
        name: What options call it.
        runs_elsewhere: Whether `connection` says where this engine runs (the master of a Spark
            cluster), rather than which database holds the table.
    """

    name: ClassVar[str]
    runs_elsewhere: ClassVar[bool]

    def read_files(self, files: Files, *, connection: str | None) -> Any:
        """An Ibis table of the rows of some files; rows are not read yet."""

    def hold_table(self, rows: pa.Table, *, connection: str | None) -> Any:
        """An Ibis table of rows in memory."""


def table_name() -> str:
    """A name that no table of this process has yet."""
    return f"sfumato_{next(_serial)}"
