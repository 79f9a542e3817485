"""A ledger in words and tables: for terminals by rich, for notebooks as HTML."""

from __future__ import annotations

from html import escape as escape_html
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.privacy.ledger.budget import at_most

if TYPE_CHECKING:
    from sfumato.privacy.ledger.release import Entry
    from sfumato.privacy.ledger.statement import LedgerStatement
    from sfumato.privacy.ledger.verify import LedgerCheck

COLUMNS = ("#", "time (UTC)", "mechanism", "cost", "note", "hash")


def render_statement(statement: LedgerStatement, name: str | Path) -> Any:
    """A statement for a terminal.

    Args:
        statement: What the ledger says.
        name: What the ledger is called: its file.

    Returns:
        A renderable of rich: two lines, and a table with a row for each entry.

    """
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    terms, money = _terms(statement), _money(statement)
    lines = [
        f"[bold]{escape(str(name))}[/bold]  {escape(terms)}",
        f"{money[0]}; [bold]{money[1]}[/bold]",
    ]
    if not statement.entries:
        return Group(*lines, "no entries yet")
    table = Table(*COLUMNS)
    for entry in statement.entries:
        table.add_row(*map(escape, _row(entry)))
    return Group(*lines, table)


def statement_html(statement: LedgerStatement) -> str:
    """A statement for a notebook.

    Args:
        statement: What the ledger says.

    Returns:
        A paragraph and a table, as HTML.

    """
    money = "; ".join(_money(statement))
    words = f"<p>{escape_html(_terms(statement))}<br>{escape_html(money)}</p>"
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape_html(cell)}</td>" for cell in _row(entry)) + "</tr>"
        for entry in statement.entries
    )
    return f"{words}<table><tr>{head}</tr>{rows}</table>"


def render_check(check: LedgerCheck) -> str:
    """One line for a ledger that was verified.

    Args:
        check: What `verify_ledger` found.

    Returns:
        The sentence.

    """
    paid = f", {check.receipts} release(s) paid for" if check.releases else ""
    return (
        f"{check.ledger}: chain of {check.entries} entries is whole{paid}, head {check.head[:16]}"
    )


def _terms(statement: LedgerStatement) -> str:
    header = statement.header
    clock = "" if statement.clock is None else f" by the clock {statement.clock}"
    return f"{header.source}, per {header.unit}{clock}, {header.neighbors}, {header.model} model"


def _money(statement: LedgerStatement) -> tuple[str, str]:
    spent = f"budget {statement.header.budget}; spent {statement.spent}"
    return spent, f"left {at_most(statement.left)}"


def _row(entry: Entry) -> tuple[str, ...]:
    return (
        str(entry.number),
        entry.time[:19],
        entry.mechanism,
        str(entry.cost) + (" (keyed)" if entry.computational is not None else ""),
        entry.note,
        entry.hash[:12],
    )
