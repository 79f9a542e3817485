"""Which table rows come from, as far as that is public: what a ledger keeps to notice another one."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from sfumato.privacy.ledger import Table
from sfumato.records.columns import Columns
from sfumato.records.connections import public_connection
from sfumato.records.file_names import is_file_list


def table_identity(source: Any, columns: Columns, *, connection: str | None = None) -> Table | None:
    """The name of a file or of a table in a database, and the column of users; None for one in memory.

    Folders, hosts and passwords are not in it. Digits, and the signs of patterns, count as `#`: the
    days and parts of one table differ in them. A list of files has all their names.

    Args:
        source: What `open_table` takes.
        columns: Which columns hold users, places, weights and groups.
        connection: The URL of the database, if it is one.

    Returns:
        What a ledger keeps of the table.

    Example:
        >>> table_identity("trips/2026-01-05.parquet", Columns("cab", "lon", "lat"))
        Table(name='#.parquet', user='cab')
        >>> print(table_identity("town.duckdb::trips_2026", Columns("cab", "lon", "lat")))
        town.duckdb::trips_# by 'cab'

    """
    if is_file_list(source):
        told = (table_identity(one, columns, connection=connection) for one in source)
        names = sorted({one.name for one in told if one is not None})
        return Table(" ".join(names), columns.user or "")
    if not isinstance(source, str | PurePath):
        return None
    file, _, table = str(source).partition("::")
    if "://" in file:
        file = file.partition("?")[0]
    name = PurePath(file.rstrip("/")).name or file
    if connection is not None and "://" in connection:
        found = public_connection(connection)
        name = f"{found.scheme}:{found.database}::{name}"
    elif table:
        name = f"{name}::{table}"
    varying = re.sub(r"[0-9*?]+", "#", name)
    return Table(re.sub(r"#([-_.:T]?#)+", "#", varying), columns.user or "")
