"""Ledgers of format 1 as earlier versions wrote them: for tests of reading and converting them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sfumato.privacy.accounting import canonical
from sfumato.privacy.ledger.storage import book
from sfumato.privacy.ledger.storage.format1 import APPLICATION
from sfumato.privacy.ledger.storage.rows import GENESIS, link

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
CREATE TABLE chain (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TRIGGER no_edit BEFORE UPDATE ON chain
    BEGIN SELECT RAISE(ABORT, 'a ledger is only appended to'); END;
CREATE TRIGGER no_removal BEFORE DELETE ON chain
    BEGIN SELECT RAISE(ABORT, 'a ledger is only appended to'); END;
"""


def as_format1(path: Path) -> None:
    """Put a file of format 1 in the place of one of format 2, with the same entries."""
    found = book.opened(path, whole=True)
    bodies = [found.first.body, *(row.body for row in found.rows if row.kind == "entry")]
    bodies[0].pop("format")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        head = GENESIS[1]
        for number, body in enumerate(bodies):
            text = canonical(body)
            head = link(head, text)
            connection.execute("INSERT INTO chain VALUES (?, ?, ?)", (number, text, head))
        connection.commit()
        path.write_bytes(connection.serialize())


def rows(path: Path) -> list[tuple[int, str, str]]:
    """Number, body and hash of every row."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.execute("SELECT number, body, hash FROM chain ORDER BY number"))


def append_in_place(path: Path, body: dict[str, Any]) -> None:
    """A charge as the first versions made it: by SQLite, in the file itself, with a journal beside it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("BEGIN IMMEDIATE")
    number, _, head = list(connection.execute("SELECT * FROM chain ORDER BY number"))[-1]
    text = canonical({**body, "number": number + 1})
    row = (number + 1, text, link(head, text))
    connection.execute("INSERT INTO chain VALUES (?, ?, ?)", row)
    connection.execute("COMMIT")
    connection.close()


def last_body(path: Path) -> dict[str, Any]:
    """What the last row says."""
    found: dict[str, Any] = json.loads(rows(path)[-1][1])
    return found
