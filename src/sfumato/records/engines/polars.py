"""Polars, in this process."""

from __future__ import annotations

from typing import Any, ClassVar

import ibis
import pyarrow as pa

from sfumato.errors import MissingPackage
from sfumato.records.engines.protocol import Files, table_name
from sfumato.records.quiet import quietly


def polars_engine() -> Any:
    """Polars, in this process."""
    try:
        import polars  # noqa: F401 - asked for before Ibis asks, to give our own answer
    except ImportError:
        raise MissingPackage("pip install 'sfumato[polars]'") from None
    return ibis.polars.connect()


class PolarsEngine:
    """Polars, in this process."""

    name: ClassVar[str] = "polars"
    runs_elsewhere: ClassVar[bool] = False

    def read_files(self, files: Files, *, connection: str | None) -> Any:
        """Parquet as Polars reads it, row group by row group; text in memory."""
        del connection  # it runs in this process
        database = polars_engine()
        import polars

        def scan() -> Any:
            rows = files.text
            frame = (
                polars.scan_parquet(list(files.paths), glob=False, hive_partitioning=False)
                if rows is None
                else polars.from_arrow(pa.Table.from_batches(rows.batches(), rows.schema)).lazy()  # type: ignore[union-attr]
            )
            return database.create_table(table_name(), frame)

        return quietly(scan, files.unreadable)

    def hold_table(self, rows: pa.Table, *, connection: str | None) -> Any:
        """The rows as a lazy frame."""
        del connection
        database = polars_engine()
        import polars

        return database.create_table(table_name(), polars.from_arrow(rows).lazy())  # type: ignore[union-attr]
